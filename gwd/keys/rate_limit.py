"""The rate limit: at most N requests admitted in any 60 seconds, exactly, per key family, in memory.

A ring of 61 one-second counters per bucket. Sixty would let twice the limit through: a burst at the end of a second
and one at the beginning of the sixty-first are less than a minute apart. Only the monotonic clock is asked, so
nothing the wall clock does opens the window early. Refused requests are not counted.
"""

from array import array
from collections.abc import Iterable
from math import ceil
from typing import Final

import msgspec

WINDOW_S: Final = 60
SLOTS: Final = WINDOW_S + 1
FIRST_SWEEP: Final = 1_024


class Admitted(msgspec.Struct, frozen=True):
    """The request may go on; `reset_s` is when the oldest counted request leaves the window."""

    limit: int
    remaining: int
    reset_s: int


class Refused(msgspec.Struct, frozen=True):
    """The minute is full; `retry_after_s` is when the next request fits, 1 to 60."""

    limit: int
    retry_after_s: int


class RateLimiter:
    """All windows of one node; used from the event loop only."""

    def __init__(self) -> None:
        self._rings: dict[str, _Ring] = {}
        self._sweep_at = FIRST_SWEEP

    def admit(self, bucket: str, limit: int, now_s: float) -> Admitted | Refused:
        """Count one request against `bucket` if it fits. `now_s` is monotonic; `bucket` is a family's id."""
        ring = self._rings.get(bucket)
        second = int(now_s)
        if ring is None:
            ring = self._new_ring(bucket, second)
        ring.advance(second)
        if ring.total >= limit:
            return Refused(limit, _whole_s(ring.room_at(limit) - now_s))
        ring.add(second, 1)
        return Admitted(limit, limit - ring.total, _whole_s(ring.oldest() + SLOTS - now_s))

    def look(self, bucket: str, limit: int, now_s: float) -> Refused | None:
        """The refusal that a request would meet now; nothing is counted."""
        ring = self._rings.get(bucket)
        if ring is None:
            return None
        ring.advance(int(now_s))
        if ring.total < limit:
            return None
        return Refused(limit, _whole_s(ring.room_at(limit) - now_s))

    def seed(self, admissions: Iterable[tuple[str, int, int]], now_s: float) -> None:
        """Take over what an earlier process admitted: (bucket, age in whole seconds, how many), in any order.

        Ages are rounded down by the caller, so that a restart never opens the window early.
        """
        second = int(now_s)
        for bucket, age_s, count in sorted(admissions, key=_oldest_first):
            if 0 <= age_s < SLOTS:
                ring = self._rings.get(bucket) or self._new_ring(bucket, second - WINDOW_S)
                ring.advance(second - age_s)
                ring.add(second - age_s, count)

    def _new_ring(self, bucket: str, second: int) -> "_Ring":
        if len(self._rings) >= self._sweep_at:
            # Keys that rested a minute cost no memory; doubling keeps the sweep cheap per request.
            self._rings = {
                name: ring for name, ring in self._rings.items() if second - ring.newest < SLOTS
            }
            self._sweep_at = max(FIRST_SWEEP, 2 * len(self._rings))
        ring = self._rings[bucket] = _Ring(second)
        return ring


def count_tokens_bucket(family_id: str) -> str:
    """The window of free token counting, apart from that of inference."""
    return "count_tokens:" + family_id


def explain_bucket(family_id: str) -> str:
    """The window of explanations and estimates, which are free as well."""
    return "explain:" + family_id


def unusable_bucket(key_id: str) -> str:
    """The window of a key that may not act. Not its family's: an old key takes nothing from its successor's."""
    return "unusable:" + key_id


class _Ring:
    """Counters of the last 61 seconds and their sum."""

    __slots__ = ("_counts", "_oldest", "newest", "total")

    def __init__(self, second: int) -> None:
        self._counts = array("Q", bytes(8 * SLOTS))
        self._oldest = second
        self.newest = second
        self.total = 0

    def advance(self, second: int) -> None:
        """Forget what is older than the window that ends with `second`."""
        newest = self.newest
        if second <= newest:
            return
        if second - newest >= SLOTS:
            self._counts = array("Q", bytes(8 * SLOTS))
            self.total = 0
        elif self.total:
            for passed in range(newest + 1, second + 1):
                slot = passed % SLOTS
                self.total -= self._counts[slot]
                self._counts[slot] = 0
        self.newest = second

    def add(self, second: int, count: int) -> None:
        self._oldest = min(self._oldest, second) if self.total else second
        self._counts[second % SLOTS] += count
        self.total += count

    def oldest(self) -> int:
        """The earliest second that still counts; there is one."""
        second = max(self._oldest, self.newest - WINDOW_S)
        while not self._counts[second % SLOTS]:
            second += 1
        self._oldest = second
        return second

    def room_at(self, limit: int) -> int:
        """The second at which fewer than `limit` requests will count."""
        if limit <= 0 or not self.total:
            return self.newest + SLOTS
        left = self.total
        second = self.oldest()
        while True:
            left -= self._counts[second % SLOTS]
            if left < limit:
                return second + SLOTS
            second += 1


def _whole_s(seconds: float) -> int:
    return min(WINDOW_S, max(1, ceil(seconds)))


def _oldest_first(admission: tuple[str, int, int]) -> int:
    return -admission[1]
