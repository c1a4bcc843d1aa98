"""Alert thresholds of a key's limit: what one charge crossed, once per window and family."""

from typing import Any

import msgspec

from gwd.core.clock import iso
from gwd.core.money import usd_json
from gwd.core.periods import period_end_us
from gwd.keys.admission import KeyState
from gwd.spend.thresholds import Crossing, crossing, mark_name, reached


class KeyCrossing(msgspec.Struct, frozen=True, kw_only=True):
    """A key whose limit a charge brought over a threshold. `limit_nano` is above zero."""

    key: KeyState
    limit_nano: int
    spent_nano: int
    at_us: int
    crossing: Crossing


def crossed(
    key: KeyState, spent_nano: int, *, charged_nano: int, byok_nano: int, at_us: int
) -> KeyCrossing | None:
    """What this charge crossed; called after it was counted, in the same transaction.

    The mark names family, window and limit: a successor stays silent about what the old key told, and a raised
    limit alerts anew.
    """
    limit_nano = key.limit_nano
    counted_nano = charged_nano + byok_nano if key.include_byok_in_limit else charged_nano
    if not limit_nano or not counted_nano or not key.alert_thresholds:
        return None
    over = crossing(
        spent_nano - counted_nano,
        spent_nano,
        limit_nano,
        key.alert_thresholds,
        subject=_subject(key),
        window=key.limit_window,
        at_us=at_us,
    )
    if over is None:
        return None
    return KeyCrossing(
        key=key, limit_nano=limit_nano, spent_nano=spent_nano, at_us=at_us, crossing=over
    )


def moved(
    before: KeyState, spent_before_nano: int, key: KeyState, spent_nano: int, *, at_us: int
) -> KeyCrossing | None:
    """What a change of the key's limit took it over, without any charge; None for a limit that was only raised."""
    limit_nano = key.limit_nano or 0
    over = reached(spent_nano, limit_nano, key.alert_thresholds)
    known = reached(spent_before_nano, before.limit_nano or 0, before.alert_thresholds)
    highest_known = known[-1] if known else 0
    crossed_now = tuple(percent for percent in over if percent > highest_known)
    if not crossed_now:
        return None
    return KeyCrossing(
        key=key,
        limit_nano=limit_nano,
        spent_nano=spent_nano,
        at_us=at_us,
        crossing=Crossing(
            mark=mark_name(_subject(key), key.limit_window, at_us),
            threshold_percent=crossed_now[-1],
            thresholds_crossed=crossed_now,
        ),
    )


def alert_data(found: KeyCrossing) -> dict[str, Any]:
    """The `data` of alert.key_limit."""
    key = found.key
    resets_at_us = period_end_us(key.limit_window, found.at_us)
    percent_tenths = found.spent_nano * 1_000 // found.limit_nano
    return {
        "key_id": key.id,
        "key_hash": key.hash,
        "key_name": key.name,
        "workspace_id": key.workspace_id,
        "limit": usd_json(found.limit_nano),
        "limit_reset": None if key.limit_window == "lifetime" else key.limit_window,
        "usage": usd_json(found.spent_nano),
        "percent_used": percent_tenths / 10,
        "threshold_percent": found.crossing.threshold_percent,
        "thresholds_crossed": list(found.crossing.thresholds_crossed),
        "resets_at": None if resets_at_us is None else iso(resets_at_us),
    }


def _subject(key: KeyState) -> str:
    return f"key_limit:{key.family_id}:{key.limit_nano}"
