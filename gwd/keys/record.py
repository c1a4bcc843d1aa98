"""The key record of the API, with what the family has spent in each calendar window."""

from operator import attrgetter
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gwd.core.caller import KeyKind, Role
from gwd.core.clock import iso, iso_or_none
from gwd.core.fields import Count, Id, Moment, Usd, WholePercent
from gwd.core.money import usd_json
from gwd.core.periods import WINDOWS, Reset, Window, period_end_us
from gwd.keys.key import Key
from gwd.orgs.policy import DataPolicy, Sort
from gwd.spend import totals
from gwd.store import Connection


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An API key: what it may do and spend, and what it and its rotations have spent. Its secret is never in it."""

    id: Annotated[Id, Meta(description="`key_…` for inference keys, `mk_…` for management keys.")]
    hash: Annotated[
        str,
        Meta(
            description="The key's public name, 64 hex characters; taken in paths wherever `id` is."
        ),
    ]
    object: Annotated[Literal["api_key"], Meta(description="What kind of record this is.")] = (
        "api_key"
    )
    name: Annotated[str, Meta(description="What people call the key.")]
    label: Annotated[
        str, Meta(description="The masked secret, such as `gwi_6vR2…9Zq1`, to recognise it by.")
    ]
    type: Annotated[
        KeyKind,
        Meta(description="An inference key sends prompts, a management key administers."),
    ]
    role: Annotated[
        Role | None,
        Meta(description="What a management key may do at most; null for inference keys."),
    ]
    organization_id: Annotated[Id, Meta(description="The organization that pays.")]
    workspace_id: Annotated[
        Id | None,
        Meta(
            description="The workspace the key lives in; null for a key of the whole organization."
        ),
    ]
    user_id: Annotated[
        Id | None, Meta(description="The member whose key it is; null if it is nobody's own.")
    ]
    creator_user_id: Annotated[
        Id | None, Meta(description="The member who made it; null if no member did.")
    ]
    external_user: Annotated[
        str | None,
        Meta(description="Your own name for the person or system behind the key; null for none."),
    ]
    disabled: Annotated[bool, Meta(description="Whether the key is refused until it is enabled.")]
    limit: Annotated[
        Usd | None,
        Meta(description="What the key and its rotations may spend in USD; null for no limit."),
    ]
    limit_remaining: Annotated[
        Usd | None,
        Meta(description="What is left of `limit` in USD, never negative; null without a limit."),
    ]
    limit_reset: Annotated[
        Reset | None,
        Meta(description="How often the limit starts again, UTC; null for a limit for life."),
    ]
    limit_resets_at: Annotated[
        Moment | None,
        Meta(description="When the limit starts again; null for one that never does."),
    ]
    include_byok_in_limit: Annotated[
        bool,
        Meta(description="Whether inference through own provider keys counts against `limit`."),
    ]
    strict: Annotated[
        bool,
        Meta(
            description="Whether running requests count against `limit` with all that they may cost."
        ),
    ]
    in_flight_cap: Annotated[
        int | None,
        Meta(
            description="How many requests may run at the same time; null for the node's default."
        ),
    ]
    usage: Annotated[Usd, Meta(description="USD charged so far, rotations included.")]
    usage_daily: Annotated[Usd, Meta(description="USD charged on this day, UTC.")]
    usage_weekly: Annotated[Usd, Meta(description="USD charged since Monday, UTC.")]
    usage_monthly: Annotated[Usd, Meta(description="USD charged in this calendar month, UTC.")]
    byok_usage: Annotated[
        Usd,
        Meta(description="List price in USD of all inference through own provider keys."),
    ]
    byok_usage_daily: Annotated[
        Usd, Meta(description="The same on this day, UTC; nothing of it was charged.")
    ]
    byok_usage_weekly: Annotated[
        Usd, Meta(description="The same since Monday, UTC; nothing of it was charged.")
    ]
    byok_usage_monthly: Annotated[
        Usd, Meta(description="The same in this calendar month, UTC; nothing of it was charged.")
    ]
    rate_limit_per_minute: Annotated[
        Count,
        Meta(
            description="Requests in any 60 seconds: the key's own number, at most the default of its organization."
        ),
    ]
    allowed_models: Annotated[
        list[str] | None,
        Meta(
            description="Models that the key may use: ids, aliases, and patterns in which `*` stands for any"
            " characters; null for all."
        ),
    ]
    allowed_providers: Annotated[
        list[str] | None,
        Meta(
            description="Providers its requests may go to, as far as the organization allows them; null for all."
        ),
    ]
    ignored_providers: Annotated[
        list[str],
        Meta(
            description="Providers its requests never go to, beside those that the organization ignores."
        ),
    ]
    default_provider_sort: Annotated[
        Sort | None,
        Meta(
            description="By what its requests prefer providers unless they say so; null for the workspace's or the"
            " organization's."
        ),
    ]
    data_policy: Annotated[
        DataPolicy,
        Meta(
            description="`deny` leaves out endpoints that are flagged as training on inputs (`trains_on_inputs`)."
        ),
    ]
    alert_thresholds: Annotated[
        list[WholePercent],
        Meta(description="At which percentages of `limit` an alert is raised."),
    ]
    tags: Annotated[
        list[str], Meta(description="Tags that each of its requests bears beside its own.")
    ]
    expires_at: Annotated[
        Moment | None, Meta(description="From when on the key is refused; null for never.")
    ]
    created_at: Annotated[Moment, Meta(description="When the key was made.")]
    updated_at: Annotated[Moment, Meta(description="When the key was last changed.")]
    last_used_at: Annotated[
        Moment | None, Meta(description="When a request last used it; null if none has.")
    ]
    rotated_to: Annotated[
        Id | None, Meta(description="The key that follows it; null if it was not rotated.")
    ]
    rotated_from: Annotated[
        Id | None, Meta(description="The key it follows; null if it is the first.")
    ]


class NamedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key as an answer names it that is about something else."""

    id: Annotated[Id, Meta(description="The key's id.")]
    name: Annotated[str, Meta(description="What people call the key.")]
    label: Annotated[str, Meta(description="The masked secret, to recognise it by.")]
    type: Annotated[KeyKind, Meta(description="Whether it is for inference or management.")]
    workspace_id: Annotated[
        Id | None, Meta(description="The workspace it lives in; null for none.")
    ]
    expires_at: Annotated[
        Moment | None, Meta(description="From when on it is refused; null for never.")
    ]


_AS_STORED: Final = tuple(
    name for name in KeyRecord.__struct_fields__ if name in Key.__struct_fields__
)
"""Fields that the row has under the same name; those that are shown in another way are overwritten."""
_stored: Final = attrgetter(*_AS_STORED)


class KeyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Nano-USD per window, UTC: what was charged, and the list price of inference through own provider keys."""

    charged_nano: dict[Window, int]
    byok_nano: dict[Window, int]


def usage(connection: Connection, key: Key, *, now_us: int) -> KeyUsage:
    """What the key's family has spent. A rotated key and its successor show the same numbers."""
    spent = totals(connection, key.family_id, WINDOWS, at_us=now_us)
    return KeyUsage(
        charged_nano={window: charged for window, (charged, _) in spent.items()},
        byok_nano={window: byok for window, (_, byok) in spent.items()},
    )


def record(
    key: Key, used: KeyUsage, *, default_rate_limit_per_minute: int, now_us: int
) -> KeyRecord:
    """The key as the API shows it. Without a limit of its own the default rate limit applies."""
    window: Window = key.limit_reset or "lifetime"
    limit_nano = key.limit_nano
    counted_nano = used.charged_nano[window]
    if key.include_byok_in_limit:
        counted_nano += used.byok_nano[window]
    own_rate = key.rate_limit_per_minute
    charged, byok = used.charged_nano, used.byok_nano
    shown: dict[str, Any] = dict(zip(_AS_STORED, _stored(key), strict=True))
    shown.update(
        type=key.kind,
        limit=None if limit_nano is None else usd_json(limit_nano),
        limit_remaining=None if limit_nano is None else usd_json(max(0, limit_nano - counted_nano)),
        limit_resets_at=iso_or_none(period_end_us(window, now_us)),
        usage=usd_json(charged["lifetime"]),
        usage_daily=usd_json(charged["daily"]),
        usage_weekly=usd_json(charged["weekly"]),
        usage_monthly=usd_json(charged["monthly"]),
        byok_usage=usd_json(byok["lifetime"]),
        byok_usage_daily=usd_json(byok["daily"]),
        byok_usage_weekly=usd_json(byok["weekly"]),
        byok_usage_monthly=usd_json(byok["monthly"]),
        rate_limit_per_minute=default_rate_limit_per_minute
        if own_rate is None
        else min(own_rate, default_rate_limit_per_minute),
        expires_at=iso_or_none(key.expires_at),
        created_at=iso(key.created_at),
        updated_at=iso(key.updated_at),
        last_used_at=iso_or_none(key.last_used_at),
    )
    return KeyRecord(**shown)


def named(key: Key) -> NamedKey:
    """The key in few words."""
    return NamedKey(
        id=key.id,
        name=key.name,
        label=key.label,
        type=key.kind,
        workspace_id=key.workspace_id,
        expires_at=iso_or_none(key.expires_at),
    )
