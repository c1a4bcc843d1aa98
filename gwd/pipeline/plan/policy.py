"""Which endpoints the organization, the key and the request leave out by choice, and whose choice it was."""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from gwd.catalog import names
from gwd.catalog.snapshot import Catalog, Endpoint
from gwd.core.errors import InvalidValue
from gwd.core.request import Preferences
from gwd.orgs.policy import Policy, PolicySource, ProviderReason

Source = PolicySource | Literal["request"]


class Choice(NamedTuple):
    """Why an endpoint was left out, and by whom."""

    reason: ProviderReason
    source: Source


_WHAT_CHANGES: Final[dict[Choice, str]] = {
    Choice("allowed_providers", "organization"): (
        "an admin can add a provider to allowed_providers in the organization's settings"
    ),
    Choice("allowed_providers", "key"): "add a provider to the key's allowed_providers",
    Choice("allowed_providers", "request"): "name another provider in provider.only or order",
    Choice("ignored_providers", "organization"): (
        "an admin can take a provider out of ignored_providers in the organization's settings"
    ),
    Choice("ignored_providers", "key"): "take a provider out of the key's ignored_providers",
    Choice("ignored_providers", "request"): "take a provider out of provider.ignore",
    Choice("data_policy", "organization"): (
        "the organization's settings deny providers that train on inputs; name another model"
    ),
    Choice("data_policy", "key"): (
        "the key's data_policy denies providers that train on inputs; name another model or change it"
    ),
    Choice("data_policy", "request"): (
        "provider.data_collection denies providers that train on inputs; name another model or leave it out"
    ),
}


def left_out(
    endpoint: Endpoint, preferences: Preferences, policies: Iterable[Policy]
) -> Choice | None:
    """The first choice against an endpoint: the key's, the organization's, the request's; None without any."""
    for policy in policies:
        reason = policy.leaves_out(endpoint.names, trains=endpoint.flags.trains_on_inputs)
        if reason is not None:
            return Choice(reason, policy.source)
    if preferences.only and not is_named(endpoint, preferences.only):
        return Choice("allowed_providers", "request")
    if preferences.ignore and is_named(endpoint, preferences.ignore):
        return Choice("ignored_providers", "request")
    if preferences.data_collection == "deny" and endpoint.flags.trains_on_inputs:
        return Choice("data_policy", "request")
    return None


def unknown_provider(preferences: Preferences, catalog: Catalog) -> InvalidValue | None:
    """The refusal of a request that names a provider which the catalog does not have."""
    for field in ("order", "only", "ignore"):
        for index, name in enumerate(getattr(preferences, field)):
            if name.lower() not in catalog.provider_names:
                param = f"provider.{field}[{index}]"
                return names.unknown_provider(name, catalog.provider_names, param)
    return None


def chosen_by(choices: Iterable[Choice]) -> dict[str, list[Source]]:
    """Whose choices they were, by reason."""
    found: dict[str, list[Source]] = {}
    for reason, source in choices:
        found.setdefault(reason, []).append(source)
    return found


def what_changes(choices: Iterable[Choice]) -> str:
    """What would let the endpoints in again, in one sentence."""
    return "; ".join(_WHAT_CHANGES[choice] for choice in choices)


def is_named(endpoint: Endpoint, wanted: Iterable[str]) -> bool:
    """Whether one of the names is the endpoint's."""
    return any(matches(endpoint, name) for name in wanted)


def matches(endpoint: Endpoint, name: str) -> bool:
    """A bare slug (or display name) names every endpoint of the provider, a full tag only that one."""
    return name.lower() in endpoint.names
