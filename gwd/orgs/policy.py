"""What an organization, or one of its keys, lets requests use: models, providers, and whether inputs may be trained on.

An organization and a key are two policies, and a request has to pass both: what one leaves out the other cannot bring
back. Read once from what is stored, asked at every request.
"""

from collections.abc import Collection, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gwd.core.errors import InvalidValue
from gwd.core.name_patterns import NamePatterns, is_pattern, pattern_of, patterns_of
from gwd.orgs import checks

Sort = Literal["price", "throughput", "latency"]
DataPolicy = Literal["allow", "deny"]
NameList = Annotated[list[str], Meta(max_length=checks.LIST_LENGTH)]
PolicySource = Literal["organization", "key"]
ProviderReason = Literal["allowed_providers", "ignored_providers", "data_policy"]

_FAMILY: Final = "~"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Whose it is and what it permits; None permits everything. Names of providers are in lower case."""

    source: PolicySource
    models: NamePatterns | None
    allowed_providers: frozenset[str] | None
    ignored_providers: frozenset[str]
    data_policy: DataPolicy

    def allows_model(self, model: str, aliases: Collection[str]) -> bool:
        """Whether `model`, the id that would serve, may be used; `aliases` are the names that lead to it now."""
        return permits(self.models, model, aliases)

    def leaves_out(self, names: Collection[str], *, trains: bool) -> ProviderReason | None:
        """Why an endpoint may not serve, None where it may.

        `names` are those of the endpoint and its provider in lower case; `trains` says that inputs are trained on.
        """
        if self.allowed_providers is not None and self.allowed_providers.isdisjoint(names):
            return "allowed_providers"
        if self.ignored_providers and not self.ignored_providers.isdisjoint(names):
            return "ignored_providers"
        if trains and self.data_policy == "deny":
            return "data_policy"
        return None


def policy_of(
    source: PolicySource,
    *,
    allowed_models: Sequence[str] | None,
    allowed_providers: Sequence[str] | None,
    ignored_providers: Sequence[str],
    data_policy: DataPolicy,
) -> Policy | None:
    """The policy of what is stored; None where it permits everything, so that nothing has to be asked."""
    is_open = allowed_models is None and allowed_providers is None
    if is_open and not ignored_providers and data_policy == "allow":
        return None
    return Policy(
        source=source,
        models=None if allowed_models is None else patterns_of(allowed_models),
        allowed_providers=None if allowed_providers is None else _lowered(allowed_providers),
        ignored_providers=_lowered(ignored_providers),
        data_policy=data_policy,
    )


def permits(models: NamePatterns | None, model: str, aliases: Collection[str]) -> bool:
    """Whether a list of models permits the one of this id; None permits all.

    A pattern is held against the id, and one that begins with `~` against the alias of its family: what an alias is
    called says nothing about whose model it leads to.
    """
    if models is None or models.names(model):
        return True
    return any(
        models.names(alias) if alias.startswith(_FAMILY) else alias in models.exact
        for alias in aliases
    )


def checked_models(names: list[str] | None, *, param: str = "allowed_models") -> list[str] | None:
    """A list of models as it is stored. An empty list, and a pattern that no model's id can fit, are slips."""
    kept = checks.allow_list(names, param=param)
    for index, name in enumerate(kept or ()):
        if is_pattern(name) and pattern_of(name).begins.startswith("/"):
            raise InvalidValue(
                f"{param}[{index}] fits no model: ids begin with their vendor, for example openai/* or */gpt-5*.",
                param=f"{param}[{index}]",
            )
    return kept


def _lowered(names: Sequence[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
