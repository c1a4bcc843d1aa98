"""Windows and their periods in UTC: days, weeks from Monday, months, and the lifetime that never ends."""

from calendar import monthrange
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final, Literal, assert_never

from gwd.core.clock import US_PER_DAY

Window = Literal["daily", "weekly", "monthly", "lifetime"]
Reset = Literal["daily", "weekly", "monthly"]
"""A window that starts again."""
WINDOWS: Final[tuple[Window, ...]] = ("daily", "weekly", "monthly", "lifetime")

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()


def day_of(at_us: int) -> int:
    """The UTC day as a count of days since 1970-01-01."""
    return at_us // US_PER_DAY


def first_day(window: Window, at_us: int) -> int:
    """The first UTC day of the window's period that holds `at_us`; 0 for lifetime."""
    return _first_day(window, at_us // US_PER_DAY)


@lru_cache(maxsize=256)
def _first_day(window: Window, day: int) -> int:
    match window:
        case "daily":
            return day
        case "weekly":
            return day - (day + 3) % 7  # 1970-01-01 was a Thursday
        case "monthly":
            return day - _date(day).day + 1
        case "lifetime":
            return 0
    assert_never(window)


def period_start_us(window: Window, at_us: int) -> int:
    """When the current period began; 0 for lifetime."""
    return first_day(window, at_us) * US_PER_DAY


def period_end_us(window: Window, at_us: int) -> int | None:
    """When the current period ends and the next begins; None for lifetime."""
    first = first_day(window, at_us)
    match window:
        case "daily":
            return (first + 1) * US_PER_DAY
        case "weekly":
            return (first + 7) * US_PER_DAY
        case "monthly":
            start = _date(first)
            return (first + monthrange(start.year, start.month)[1]) * US_PER_DAY
        case "lifetime":
            return None
    assert_never(window)


def _date(day: int) -> datetime:
    return datetime.fromordinal(day + _EPOCH_ORDINAL).replace(tzinfo=UTC)
