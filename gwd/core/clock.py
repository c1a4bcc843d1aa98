"""Time: wall clock in integer microseconds UTC for records, monotonic seconds for durations."""

import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

US_PER_S: Final = 1_000_000
US_PER_DAY: Final = 86_400 * US_PER_S

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Where every room gets its time from."""

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970 UTC; may jump."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go back; only differences mean anything."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_us(self) -> int:
        return time.time_ns() // 1_000

    monotonic_s = staticmethod(time.monotonic)


class TimeError(ValueError):
    """A time that cannot be taken; the text says why."""


def iso(at_us: int) -> str:
    """ISO 8601 UTC with `Z`; fractions only where there are any."""
    moment = _EPOCH + timedelta(microseconds=at_us)
    text = moment.replace(tzinfo=None).isoformat(
        timespec="milliseconds" if at_us % US_PER_S else "seconds"
    )
    return text + "Z"


def iso_or_none(at_us: int | None) -> str | None:
    """The same of a time that may not be there."""
    return None if at_us is None else iso(at_us)


def us_from_iso(text: str) -> int:
    """Any ISO 8601 moment with an explicit offset to microseconds UTC; raises TimeError without one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise TimeError("must be an ISO 8601 time such as 2026-11-27T22:00:00Z") from None
    if moment.tzinfo is None:
        raise TimeError("must carry an offset, for example 2026-11-27T22:00:00Z")
    return (moment - _EPOCH) // timedelta(microseconds=1)
