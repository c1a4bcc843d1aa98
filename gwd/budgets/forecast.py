"""When a budget will be used up, if spending goes on as it did: pure arithmetic in integers."""

from typing import Final

import msgspec

from gwd.core.clock import US_PER_DAY

MIN_ELAPSED_US: Final = 3_600_000_000
HORIZON_US: Final = 36_525 * US_PER_DAY  # what is a hundred years away is not a forecast
LOOK_BACK_DAYS: Final = 7


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """`projected_nano` at the end of the period (None for lifetime); `exhausts_at_us` None if it will hold."""

    projected_nano: int | None
    exhausts_at_us: int | None


def in_period(
    spent_nano: int, limit_nano: int, *, start_us: int, end_us: int, now_us: int
) -> Forecast:
    """Linear from the period's start; the first hour counts whole, so that an early request projects no huge sum."""
    elapsed_us = max(now_us - start_us, MIN_ELAPSED_US)
    left_us = max(0, end_us - now_us)
    exhausts_at_us = _exhausts(spent_nano, limit_nano - spent_nano, elapsed_us, now_us)
    if exhausts_at_us is not None and exhausts_at_us >= end_us:
        exhausts_at_us = None
    return Forecast(
        projected_nano=spent_nano + spent_nano * left_us // elapsed_us,
        exhausts_at_us=exhausts_at_us,
    )


def for_lifetime(
    spent_nano: int, limit_nano: int, *, recent_nano: int, recent_us: int, now_us: int
) -> Forecast:
    """At the rate of the last days (`recent_nano` in `recent_us`); a lifetime has no end to project to."""
    elapsed_us = max(recent_us, MIN_ELAPSED_US)
    return Forecast(
        projected_nano=None,
        exhausts_at_us=_exhausts(recent_nano, limit_nano - spent_nano, elapsed_us, now_us),
    )


def _exhausts(rate_nano: int, remaining_nano: int, per_us: int, now_us: int) -> int | None:
    if remaining_nano <= 0:
        return now_us
    if rate_nano <= 0:
        return None
    wait_us = remaining_nano * per_us // rate_nano
    return now_us + wait_us if wait_us < HORIZON_US else None
