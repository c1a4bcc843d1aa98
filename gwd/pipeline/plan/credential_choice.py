"""Which credentials an endpoint can be called with for one request: the organization's own keys and the platform's.

An own key serves only whom and what it was attached for, and pays its vendor itself; where one is required, the
platform's keys of its provider are not used, whatever becomes of it. Any key, own or platform, goes only to an endpoint
at the address that it was given for.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, Protocol, TypeVar

import msgspec

from gwd.catalog.snapshot import Endpoint, Model
from gwd.core.name_patterns import NamePatterns
from gwd.core.target import Credential
from gwd.credentials.service import VendorKey
from gwd.health.rests import Rest
from gwd.orgs.policy import permits
from gwd.pipeline.plan.eligibility import Exclusions
from gwd.pipeline.plan.plan_input import PlanInput

OWN_AHEAD: Final = 4
"""How many own keys that are awake come before the platform's: of the six attempts of a request two are left for it."""


class _Placed(Protocol):
    """What can be put into the order of turns. `own_place` orders own keys among themselves."""

    @property
    def turn(self) -> "Turn": ...

    @property
    def own_place(self) -> tuple[int, int]: ...

    @property
    def rests_until_s(self) -> float | None: ...


P = TypeVar("P", bound=_Placed)


class Turn(IntEnum):
    """When a credential is used: own keys, then the platform's, then own keys that are kept as a fallback."""

    OWN = 0
    PLATFORM = 1
    FALLBACK = 2


class KeyChoice(msgspec.Struct, frozen=True):
    """A credential that an endpoint can be called with. `rests_until_s` is the end of its rest, None where it is
    awake; `sort_order` is what its owner gave it."""

    credential: Credential
    turn: Turn
    sort_order: int
    rests_until_s: float | None


def choices_of(
    endpoint: Endpoint, model: Model, plan_input: PlanInput, excluded: Exclusions
) -> list[KeyChoice]:
    """The credentials for an endpoint, the platform's by the end of their prepaid credit.

    What is closed is left out, and `excluded` learns why nothing is left.
    """
    keys: Sequence[VendorKey] = plan_input.vendor_keys.get(endpoint.provider, ())
    if len(keys) > 1:
        keys = sorted(keys, key=_expiring_first)
    is_required = False
    if plan_input.own_keys.by_provider and endpoint.auth != "none":
        own = own_keys_for(endpoint.provider, model, plan_input)
        is_required = any(key.is_required for key in own)
        keys = own if is_required else [*own, *keys]
    now_us, origin = plan_input.now_us, endpoint.origin
    fitting = [key for key in keys if key.is_usable(now_us) and key.goes_to(origin)]
    trace = excluded.trace
    if trace is not None:
        trace.note_unusable(endpoint.id, [key for key in keys if key not in fitting])
    if not fitting:
        excluded.keyless.add(endpoint.provider)
        if not all(key.goes_to(origin) for key in keys):
            excluded.elsewhere.add(endpoint.provider)
    choices = []
    for key in fitting:
        rest = plan_input.health.rest(endpoint.id, key.id, plan_input.now_s)
        if rest is not None and rest.is_closed:
            excluded.close(rest.until_s - plan_input.now_s, rest.reason)
            if trace is not None:
                trace.note_unusable(endpoint.id, [key], rest)
        else:
            choices.append(_choice(endpoint.id, key, rest, plan_input))
    if not choices:
        excluded.unavailable = True
        if trace is not None:
            trace.leave_out(endpoint.id, "closed" if fitting else "no_credential")
        if is_required:
            excluded.required.add(endpoint.provider)
    return choices


def own_keys_for(provider: str, model: Model, plan_input: PlanInput) -> list[VendorKey]:
    """The organization's own keys of a provider that are meant for this model and whoever asks."""
    keys = plan_input.own_keys.by_provider.get(provider, ())
    return [key for key in keys if _is_for(key, model, plan_input)]


def own_first(found: Iterable[P]) -> list[P]:
    """Own keys before the platform's by their places, those that are a fallback after all others.

    The platform's stay in the order they have. No more own keys that are awake stand ahead of them than leave it its
    attempts; the others follow it.
    """
    by_turn: dict[Turn, list[P]] = {turn: [] for turn in Turn}
    for each in found:
        by_turn[each.turn].append(each)
    for turn in (Turn.OWN, Turn.FALLBACK):
        by_turn[turn].sort(key=lambda each: each.own_place)
    ahead: list[P] = []
    behind: list[P] = []
    awake = 0
    for each in by_turn[Turn.OWN]:
        (ahead if awake < OWN_AHEAD else behind).append(each)
        awake += each.rests_until_s is None
    return [*ahead, *by_turn[Turn.PLATFORM], *behind, *by_turn[Turn.FALLBACK]]


def _is_for(key: VendorKey, model: Model, plan_input: PlanInput) -> bool:
    asker, family_of = plan_input.asker, plan_input.own_keys.families.get
    hashes, users, models = key.allowed_api_key_hashes, key.allowed_user_ids, key.allowed_models
    return (
        (key.workspace_id is None or key.workspace_id == asker.workspace_id)
        and (hashes is None or any(family_of(each) == asker.family_id for each in hashes))
        and (users is None or asker.user_id in users)
        and (models is None or _permits(models, model, plan_input))
    )


def _permits(models: NamePatterns, model: Model, plan_input: PlanInput) -> bool:
    """Whether the model that serves, or an alias that leads to it now, is among those of the key."""
    return permits(models, model.id, plan_input.catalog.names_of(model, plan_input.now_us))


def _choice(
    endpoint_id: str, key: VendorKey, rest: Rest | None, plan_input: PlanInput
) -> KeyChoice:
    until_s = None if rest is None else rest.until_s
    if rest is None and plan_input.health.is_on_trial(endpoint_id, key.id):
        until_s = (
            plan_input.now_s
        )  # where a call is on trial after a rest, the others are tried first
    if key.organization_id is None:
        return KeyChoice(key.credential, Turn.PLATFORM, key.sort_order, until_s)
    credential = msgspec.structs.replace(
        key.credential,
        byok=True,
        is_required=key.is_required,
        fee_bps=plan_input.organization.settings.byok_fee_bps,
    )
    turn = Turn.FALLBACK if key.is_fallback else Turn.OWN
    return KeyChoice(credential, turn, key.sort_order, until_s)


def _expiring_first(key: VendorKey) -> tuple[bool, int, int]:
    """The key whose prepaid credit ends soonest first (`expiry_first`)."""
    return key.expires_at_us is None, key.expires_at_us or 0, key.sort_order
