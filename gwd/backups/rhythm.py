"""How often a copy is made and which are kept: pure rules of times."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from gwd.core.clock import US_PER_DAY, US_PER_S

HOUR_US: Final = 3_600 * US_PER_S
WEEK_US: Final = 7 * US_PER_DAY
MONDAY_US: Final = 3 * US_PER_DAY
"""The first day of 1970 was a Thursday, and weeks begin on Monday."""
AHEAD_US: Final = HOUR_US
"""A copy that is dated later than this from now was dated by a clock that was wrong."""
RETRY_US: Final = 15 * 60 * US_PER_S

_UNITS_US: Final = {"m": 60 * US_PER_S, "h": HOUR_US, "d": US_PER_DAY}


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """Of how many hours, days and weeks that have a copy the last one is kept."""

    hourly: int
    daily: int
    weekly: int


def read_every(text: str) -> int:
    """`15m`, `1h` or `1d` in microseconds; the settings have checked its form."""
    return int(text[:-1]) * _UNITS_US[text[-1]]


def read_keep(text: str) -> Keep:
    """`24h 14d 8w`; the settings have checked its form."""
    hourly, daily, weekly = (int(part[:-1]) for part in text.split())
    return Keep(hourly=hourly, daily=daily, weekly=weekly)


def kept(times_us: Iterable[int], keep: Keep) -> set[int]:
    """Of the times of copies, those that stay: the last of an hour, of a day, of a week (UTC, from Monday)."""
    times = sorted(times_us)

    def last_of(count: int, period: Callable[[int], int]) -> set[int]:
        newest = {period(at_us): at_us for at_us in times}
        return set(sorted(newest.values())[-count:]) if count else set()

    return {
        *last_of(keep.hourly, lambda at_us: at_us // HOUR_US),
        *last_of(keep.daily, lambda at_us: at_us // US_PER_DAY),
        *last_of(keep.weekly, lambda at_us: (at_us + MONDAY_US) // WEEK_US),
    }


def is_due(newest_us: int | None, tried_us: int | None, *, every_us: int, now_us: int) -> bool:
    """Whether a copy should be made now; one that failed is tried again after a quarter of an hour at the latest."""
    if tried_us is not None and 0 <= now_us - tried_us < min(every_us, RETRY_US):
        return False
    return newest_us is None or now_us - newest_us >= every_us
