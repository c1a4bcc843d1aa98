"""The key record of the API, with what the family has spent in each calendar window."""

from typing import Any

import msgspec

from gwd.core.clock import iso
from gwd.core.money import usd_json
from gwd.core.periods import WINDOWS, Window, period_end_us
from gwd.keys.service import Key
from gwd.spend import totals
from gwd.store import Connection


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
) -> dict[str, Any]:
    """The key as the API shows it. Without a limit of its own the default rate limit applies."""
    window: Window = key.limit_reset or "lifetime"
    limit_nano = key.limit_nano
    counted_nano = used.charged_nano[window]
    if key.include_byok_in_limit:
        counted_nano += used.byok_nano[window]
    own_rate = key.rate_limit_per_minute
    charged, byok = used.charged_nano, used.byok_nano
    return {
        "id": key.id,
        "hash": key.hash,
        "object": "api_key",
        "name": key.name,
        "label": key.label,
        "type": key.kind,
        "role": key.role,
        "organization_id": key.organization_id,
        "workspace_id": key.workspace_id,
        "user_id": key.user_id,
        "creator_user_id": key.creator_user_id,
        "external_user": key.external_user,
        "disabled": key.disabled,
        "limit": None if limit_nano is None else usd_json(limit_nano),
        "limit_remaining": None
        if limit_nano is None
        else usd_json(max(0, limit_nano - counted_nano)),
        "limit_reset": key.limit_reset,
        "limit_resets_at": _iso(period_end_us(window, now_us)),
        "include_byok_in_limit": key.include_byok_in_limit,
        "strict": key.strict,
        "in_flight_cap": key.in_flight_cap,
        "usage": usd_json(charged["lifetime"]),
        "usage_daily": usd_json(charged["daily"]),
        "usage_weekly": usd_json(charged["weekly"]),
        "usage_monthly": usd_json(charged["monthly"]),
        "byok_usage": usd_json(byok["lifetime"]),
        "byok_usage_daily": usd_json(byok["daily"]),
        "byok_usage_weekly": usd_json(byok["weekly"]),
        "byok_usage_monthly": usd_json(byok["monthly"]),
        "rate_limit_per_minute": default_rate_limit_per_minute
        if own_rate is None
        else min(own_rate, default_rate_limit_per_minute),
        "allowed_models": key.allowed_models,
        "alert_thresholds": key.alert_thresholds,
        "expires_at": _iso(key.expires_at),
        "created_at": iso(key.created_at),
        "updated_at": iso(key.updated_at),
        "last_used_at": _iso(key.last_used_at),
        "rotated_to": key.rotated_to,
        "rotated_from": key.rotated_from,
    }


def _iso(at_us: int | None) -> str | None:
    return None if at_us is None else iso(at_us)
