"""The hot path of keys: found by digest at authentication, read again inside the admission transaction.

Plain SQL with constant text. Nothing is decided from a cached row: `admit` sees the row as it is at that moment, so
a key that was disabled, has expired, or reached its limit stops at the very next request.
"""

import hmac
from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from gwd.core.caller import Caller, KeyKind, Role
from gwd.core.clock import iso
from gwd.core.errors import (
    KeyDisabled,
    KeyExpired,
    KeyLimitExceeded,
    NotFound,
    OrganizationSuspended,
)
from gwd.core.money import usd_json, usd_text
from gwd.core.periods import Window, period_end_us
from gwd.keys.policy import KeyPolicy
from gwd.keys.secret import unknown_key
from gwd.ledger import held_by_family
from gwd.orgs import members, workspaces
from gwd.orgs.policy import DataPolicy, Sort, policy_of
from gwd.orgs.rights import rank
from gwd.orgs.settings import default_rate_limit, settings
from gwd.spend import total_nano
from gwd.store import Connection, cached

DEFAULT_RATE_LIMIT: Final = 600


class _Live(NamedTuple):
    """The columns of a live key as they are stored."""

    id: str
    organization_id: str
    workspace_id: str | None
    family_id: str
    kind: KeyKind
    role: Role | None
    user_id: str | None
    name: str
    hash: str
    digest: bytes
    disabled: int
    limit_nano: int | None
    limit_reset: Window | None
    include_byok_in_limit: int
    strict: int
    in_flight_cap: int | None
    rate_limit_per_minute: int | None
    allowed_models: str | None
    allowed_providers: str | None
    ignored_providers: str
    default_provider_sort: Sort | None
    data_policy: DataPolicy
    alert_thresholds: str
    tags: str
    expires_at: int | None
    workspace_deleted: int


_LIVE: Final = (
    f"SELECT {', '.join(_Live._fields[:-1])},"  # noqa: S608 - the names of the columns above
    " EXISTS (SELECT 1 FROM workspace WHERE id = api_key.workspace_id AND deleted_at IS NOT NULL)"
    " FROM api_key WHERE deleted_at IS NULL AND "
)
_BY_DIGEST: Final = _LIVE + "digest = ?"
_BY_ID: Final = _LIVE + "id = ?"
_names: Final = msgspec.json.Decoder(list[str])
_numbers: Final = msgspec.json.Decoder(list[int])


class KeyState(msgspec.Struct, frozen=True, kw_only=True):
    """A live key as its row is now. `limit_window` is lifetime for a limit without reset.

    One whose workspace was deleted is refused, whatever is done to it.
    """

    id: str
    organization_id: str
    workspace_id: str | None
    family_id: str
    kind: KeyKind
    role: Role | None
    user_id: str | None
    name: str
    hash: str
    disabled: bool
    limit_nano: int | None
    limit_window: Window
    include_byok_in_limit: bool
    strict: bool
    in_flight_cap: int | None
    rate_limit_per_minute: int | None
    alert_thresholds: list[int]
    expires_at_us: int | None
    workspace_deleted: bool


class KeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """What authentication needs: who calls, in what state, what it may use, and whether the organization may act."""

    caller: Caller
    state: KeyState
    policy: KeyPolicy
    organization_suspended: bool


def find_by_digest(
    connection: Connection, digest: bytes, *, rate_limit_ceiling: int = DEFAULT_RATE_LIMIT
) -> KeyRow | None:
    """The live key with this digest. A key of a member has at most the member's present role."""
    row = connection.row(_BY_DIGEST, (digest,))
    if row is None or not hmac.compare_digest((live := _Live._make(row)).digest, digest):
        return None
    return _found(connection, live, rate_limit_ceiling)


def find_by_id(
    connection: Connection, key_id: str, *, rate_limit_ceiling: int = DEFAULT_RATE_LIMIT
) -> KeyRow | None:
    """The same of a live key whose id we hold: that of a session, which stands for its key."""
    row = connection.row(_BY_ID, (key_id,))
    return None if row is None else _found(connection, _Live._make(row), rate_limit_ceiling)


def require_usable(key: KeyRow, *, now_us: int) -> None:
    """Refuse a key that authentication found but that may not act now; its holder may know why."""
    _require_live(key.state, disabled=key.caller.disabled, now_us=now_us)
    if key.organization_suspended and key.caller.role != "operator":
        raise OrganizationSuspended(
            "The organization of this key is suspended; ask the operator of this gateway."
        )


def admit(connection: Connection, key_id: str, *, now_us: int) -> KeyState:
    """The key as it is now, if it may spend: `require_live_key`, then `require_below_limit`."""
    key = require_live_key(connection, key_id, now_us=now_us)
    require_below_limit(connection, key, now_us=now_us)
    return key


def require_live_key(connection: Connection, key_id: str, *, now_us: int) -> KeyState:
    """The key's row, read inside the admission transaction. Raises the 401 that fits."""
    key = state(connection, key_id)
    if key is None:
        raise unknown_key()
    _require_live(key, disabled=key.disabled, now_us=now_us)
    return key


def require_below_limit(connection: Connection, key: KeyState, *, now_us: int) -> None:
    """Refuse once spent ≥ limit; open holds of the family count only for a strict key. Never an estimate."""
    limit_nano = key.limit_nano
    if limit_nano is None:
        return
    spent_nano = limit_spend_nano(connection, key, at_us=now_us)
    if spent_nano < limit_nano:
        if not key.strict:
            return
        if spent_nano + held_by_family(connection, key.family_id) < limit_nano:
            return
    raise _limit_exceeded(key, limit_nano, spent_nano, now_us)


def strict_room_nano(connection: Connection, key: KeyState, *, now_us: int) -> int | None:
    """What a new hold of a strict key may be at most, so that its limit cannot be overshot; None for any other key."""
    if not key.strict or key.limit_nano is None:
        return None
    spent_nano = limit_spend_nano(connection, key, at_us=now_us)
    return key.limit_nano - spent_nano - held_by_family(connection, key.family_id)


def strict_limit_exceeded(
    connection: Connection, key: KeyState, *, needed_nano: int, now_us: int
) -> KeyLimitExceeded:
    """The refusal of a request that may cost more than a strict key has left."""
    assert key.limit_nano is not None
    spent_nano = limit_spend_nano(connection, key, at_us=now_us)
    held_nano = held_by_family(connection, key.family_id)
    left = usd_text(max(0, key.limit_nano - spent_nano - held_nano))
    held = f", with {usd_text(held_nano)} USD held by running requests" if held_nano else ""
    return KeyLimitExceeded(
        f"This key is strict, and {left} USD of its {key.limit_window} limit of {usd_text(key.limit_nano)} USD are"
        f" left{held}. This request may cost up to {usd_text(needed_nano)} USD: lower max_tokens, raise the limit,"
        " or use another key.",
        metadata=_limit_metadata(key, key.limit_nano, spent_nano, now_us),
    )


@cached("key")
def state(connection: Connection, key_id: str) -> KeyState | None:
    """The live key with this id, whatever organization it is of; for callers that hold the id from us."""
    row = connection.row(_BY_ID, (key_id,))
    return None if row is None else _state(_Live._make(row))


def policy(connection: Connection, key_id: str) -> KeyPolicy | None:
    """What the live key with this id says of its requests."""
    row = connection.row(_BY_ID, (key_id,))
    return None if row is None else _policy(connection, _Live._make(row))


def families_of(
    connection: Connection, organization_id: str, hashes: Collection[str]
) -> dict[str, str]:
    """The family of each of these keys of an organization, by its hash; one that was deleted has still its own."""
    return _families(connection, organization_id, "hash", hashes)


def families_of_ids(
    connection: Connection, organization_id: str, ids: Collection[str]
) -> dict[str, str]:
    """The same by their ids."""
    return _families(connection, organization_id, "id", ids)


def _families(
    connection: Connection, organization_id: str, column: str, names: Collection[str]
) -> dict[str, str]:
    if not names:
        return {}
    marks = ", ".join("?" * len(names))
    rows = connection.rows(
        f"SELECT {column}, family_id FROM api_key WHERE organization_id = ? AND {column} IN ({marks})",  # noqa: S608
        (organization_id, *names),
    )
    return dict(rows)


def name_of(connection: Connection, key_id: str) -> str | None:
    """What a key is called, or was before it was deleted."""
    row = connection.row("SELECT name FROM api_key WHERE id = ?", (key_id,))
    return None if row is None else row[0]


def standing(connection: Connection, key_id: str, *, at_us: int) -> tuple[KeyState, int] | None:
    """The live key and what counts against its limit in the current window."""
    key = state(connection, key_id)
    return None if key is None else (key, limit_spend_nano(connection, key, at_us=at_us))


def limit_spend_nano(connection: Connection, key: KeyState, *, at_us: int) -> int:
    """What counts against the key's limit in the window that holds `at_us`."""
    return total_nano(
        connection,
        key.family_id,
        key.limit_window,
        at_us=at_us,
        include_byok=key.include_byok_in_limit,
    )


def _found(connection: Connection, live: _Live, rate_limit_ceiling: int) -> KeyRow | None:
    """What authentication needs of a live key."""
    key = _state(live)
    try:
        organization = settings(connection, key.organization_id)
    except NotFound:  # the organization was deleted, and its keys with it
        return None
    role, removed = _role(connection, key)
    default = default_rate_limit(organization.settings, rate_limit_ceiling)
    own = key.rate_limit_per_minute
    return KeyRow(
        caller=Caller(
            kind=key.kind,
            key_id=key.id,
            key_name=key.name,
            family_id=key.family_id,
            organization_id=key.organization_id,
            workspace_id=key.workspace_id,
            user_id=key.user_id,
            role=role,
            rate_limit_per_minute=default if own is None else min(own, default),
            expires_at_us=key.expires_at_us,
            disabled=key.disabled or removed,
        ),
        state=key,
        policy=_policy(connection, live),
        organization_suspended=organization.suspended,
    )


def _require_live(key: KeyState, *, disabled: bool, now_us: int) -> None:
    if key.workspace_deleted:
        raise KeyDisabled("The workspace of this API key was deleted. Use a key of another one.")
    if disabled:
        raise KeyDisabled("This API key is disabled. Enable it, or use another key.")
    if key.expires_at_us is not None and key.expires_at_us <= now_us:
        raise KeyExpired(f"This API key expired at {iso(key.expires_at_us)}. Use another key.")


def _role(connection: Connection, key: KeyState) -> tuple[Role | None, bool]:
    """The role a key has now, and whether its member is gone."""
    if key.kind == "inference" or key.user_id is None:
        return key.role, False
    member_role = members.role_within(
        connection, key.organization_id, key.user_id, key.workspace_id
    )
    if member_role is None:
        return key.role, True
    if key.role is None or key.role == "operator":
        return key.role, False
    return min(key.role, member_role, key=rank), False


def _limit_exceeded(
    key: KeyState, limit_nano: int, spent_nano: int, now_us: int
) -> KeyLimitExceeded:
    resets_at_us = period_end_us(key.limit_window, now_us)
    resets_at = None if resets_at_us is None else iso(resets_at_us)
    end = (
        "It does not reset; raise"
        if resets_at is None
        else f"It resets at {resets_at}; until then raise"
    )
    held = ", the rest is held by running requests" if spent_nano < limit_nano else ""
    return KeyLimitExceeded(
        f"The {key.limit_window} spend limit of this key ({usd_text(limit_nano)} USD) is reached:"
        f" {usd_text(spent_nano)} USD spent{held}. {end} the key's limit or use another key.",
        metadata=_limit_metadata(key, limit_nano, spent_nano, now_us),
    )


def _limit_metadata(
    key: KeyState, limit_nano: int, spent_nano: int, now_us: int
) -> dict[str, object]:
    resets_at_us = period_end_us(key.limit_window, now_us)
    return {
        "limit": usd_json(limit_nano),
        "limit_reset": None if key.limit_window == "lifetime" else key.limit_window,
        "usage": usd_json(spent_nano),
        "limit_resets_at": None if resets_at_us is None else iso(resets_at_us),
    }


def _policy(connection: Connection, row: _Live) -> KeyPolicy:
    defaults = workspaces.defaults_of(connection, row.workspace_id)
    allowed_models, allowed_providers = row.allowed_models, row.allowed_providers
    return KeyPolicy(
        restricts=policy_of(
            "key",
            allowed_models=None if allowed_models is None else _names.decode(allowed_models),
            allowed_providers=None
            if allowed_providers is None
            else _names.decode(allowed_providers),
            ignored_providers=_names.decode(row.ignored_providers),
            data_policy=row.data_policy,
        ),
        sort=row.default_provider_sort or defaults.provider_sort,
        text_model=defaults.text_model,
        tags=tuple(dict.fromkeys(_names.decode(row.tags) + defaults.tags)),
    )


def _state(row: _Live) -> KeyState:
    return KeyState(
        id=row.id,
        organization_id=row.organization_id,
        workspace_id=row.workspace_id,
        family_id=row.family_id,
        kind=row.kind,
        role=row.role,
        user_id=row.user_id,
        name=row.name,
        hash=row.hash,
        disabled=bool(row.disabled),
        limit_nano=row.limit_nano,
        limit_window="lifetime" if row.limit_reset is None else row.limit_reset,
        include_byok_in_limit=bool(row.include_byok_in_limit),
        strict=bool(row.strict),
        in_flight_cap=row.in_flight_cap,
        rate_limit_per_minute=row.rate_limit_per_minute,
        alert_thresholds=_numbers.decode(row.alert_thresholds),
        expires_at_us=row.expires_at,
        workspace_deleted=bool(row.workspace_deleted),
    )
