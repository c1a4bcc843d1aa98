"""Stretches of time that answers are divided into: where they begin in a time zone, as SQL and as text."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from gwd.core.clock import US_PER_DAY, US_PER_S, iso
from gwd.store.connection import Value

Granularity = Literal["minute", "hour", "day", "week", "month"]

_US: Final = {"minute": 60 * US_PER_S, "hour": 3_600 * US_PER_S}
_OF_DAY: Final = {
    "day": "{}",
    "week": "({} + 3) / 7 * 7 - 3",  # 1970-01-01 was a Thursday
    "month": "unixepoch({} * 86400, 'unixepoch', 'start of month') / 86400",
}
_EPOCH: Final = date(1970, 1, 1)


def zone_named(name: str) -> ZoneInfo | None:
    """The time zone of an IANA name; None where this machine knows none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


class Buckets:
    """Granularity and zone of one question between two times.

    Minutes and hours are told apart by the moment at which they begin, so that an hour which the clocks repeat is
    two; days, weeks and months by the local day, counted from 1970-01-01.
    """

    def __init__(self, granularity: Granularity, zone: ZoneInfo, from_us: int, to_us: int) -> None:
        self._granularity = granularity
        self._zone = zone
        self._offsets = _offsets(zone, from_us, to_us)

    @property
    def is_of_utc_days(self) -> bool:
        """Whether each bucket consists of whole UTC days."""
        return self._granularity in _OF_DAY and self._offsets == [(None, 0)]

    @property
    def of_day_sum(self) -> str:
        """SQL of a row of the day sums."""
        return _OF_DAY[self._granularity].format("day")

    def of_record(self) -> tuple[str, list[Value]]:
        """SQL of a record, and its values."""
        *turns, (_, last_us) = self._offsets
        local, values = "(settled_at + ?)", list[Value]([last_us])
        if turns:
            cases = " ".join("WHEN settled_at < ? THEN ?" for _ in turns)
            local = f"(settled_at + CASE {cases} ELSE ? END)"
            values = [value for turn in turns for value in turn] + values
        if self._granularity in _US:
            return f"settled_at - {local} % {_US[self._granularity]}", values
        return _OF_DAY[self._granularity].format(f"({local} / {US_PER_DAY})"), values

    def text(self, begins: Any) -> str:
        """When a bucket begins, in its zone: what SQL gave, as ISO 8601."""
        if self._granularity in _US:
            return self._local(begins)
        midnight = datetime.combine(_EPOCH + timedelta(days=begins), time(), self._zone)
        return self._local(_us(midnight))

    def _local(self, at_us: int) -> str:
        if self._zone.key == "UTC":
            return iso(at_us)
        return datetime.fromtimestamp(at_us // US_PER_S, self._zone).isoformat()


def _offsets(zone: ZoneInfo, from_us: int, to_us: int) -> list[tuple[int | None, int]]:
    """The zone's offsets from UTC one after the other, each with the time until which it holds; the last has none."""
    found: list[tuple[int | None, int]] = []
    at_s, end_s = from_us // US_PER_S, to_us // US_PER_S
    offset_us = _offset_us(zone, at_s)
    while at_s < end_s:
        next_s = min(at_s + 86_400, end_s)
        if _offset_us(zone, next_s) != offset_us:
            turn_s = _turn(zone, at_s, next_s)
            found.append((turn_s * US_PER_S, offset_us))
            offset_us = _offset_us(zone, turn_s)
            next_s = turn_s
        at_s = next_s
    return [*found, (None, offset_us)]


def _turn(zone: ZoneInfo, low_s: int, high_s: int) -> int:
    """The first second at which the offset is another than at `low_s`; at `high_s` it is."""
    before_us = _offset_us(zone, low_s)
    while high_s - low_s > 1:
        middle_s = (low_s + high_s) // 2
        if _offset_us(zone, middle_s) == before_us:
            low_s = middle_s
        else:
            high_s = middle_s
    return high_s


def _offset_us(zone: ZoneInfo, at_s: int) -> int:
    offset = datetime.fromtimestamp(at_s, zone).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def _us(moment: datetime) -> int:
    return (moment.astimezone(UTC) - datetime.combine(_EPOCH, time(), UTC)) // timedelta(
        microseconds=1
    )
