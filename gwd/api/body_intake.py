"""Request bodies on their way: how slowly they may come, and how much of them a listener holds at once.

A key is asked for once the whole body is here, so what callers without a key can make us keep is bounded twice: a body
must go on coming, whatever of it came at first; and all unfinished ones together have a ceiling. When that is reached,
room is made by those that have been coming for long, the largest first, so that slow senders cannot keep the others
out.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from sanic.exceptions import RequestTimeout, SanicException

from gwd.core.counters import Counters

GRACE_S: Final = 10.0
BYTES_PER_S: Final = 1_024
MAX_BYTES: Final = 256 * 1024 * 1024
SMALL_BYTES: Final = 64 * 1024
"""A body of which no more than this is here is never refused for the ceiling."""


class BodiesFull(SanicException):
    """There is no room for this body now."""


class IncomingBody:
    """A body of which `here` bytes have come and `left` bytes are missing. `stop` ends its request with an error."""

    __slots__ = ("began_s", "here", "left", "seen", "seen_s", "stop")

    def __init__(
        self, here: int, left: int, now_s: float, stop: Callable[[SanicException], None]
    ) -> None:
        self.here = here
        self.left = left
        self.stop = stop
        self.began_s = now_s
        self.seen = 0
        self.seen_s = now_s

    def is_slow(self, now_s: float) -> bool:
        """Whether less came since the last look that found enough than the least rate asks for."""
        fresh, took_s = self.here - self.seen, now_s - self.seen_s
        if took_s > GRACE_S and fresh >= GRACE_S * BYTES_PER_S:
            self.seen, self.seen_s = self.here, now_s
            return False
        return took_s > GRACE_S + fresh / BYTES_PER_S


class BodyIntake:
    """The unfinished bodies of one listener; used from the event loop only."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._all: set[IncomingBody] = set()
        self.bytes_here = 0

    def __len__(self) -> int:
        return len(self._all)

    def begin(self, incoming: IncomingBody) -> None:
        """The head is read, the body is not all here."""
        self._all.add(incoming)
        self._count(incoming.here)

    def grow(self, incoming: IncomingBody, size: int) -> None:
        """More came; a body that is complete is none of these any more."""
        if incoming not in self._all:
            return
        incoming.here += size
        incoming.left -= size
        self._count(size)
        if incoming.left <= 0:
            self.end(incoming)
        elif self.bytes_here > MAX_BYTES and incoming.here > SMALL_BYTES:
            self._make_room(incoming)

    def end(self, incoming: IncomingBody) -> None:
        """It is complete, or nobody sends it any more."""
        if incoming in self._all:
            self._all.remove(incoming)
            self._count(-incoming.here)

    async def sweep(self) -> None:
        """Once a second: end the requests whose bodies come too slowly."""
        now_s = asyncio.get_running_loop().time()
        for incoming in list(self._all):
            if incoming.is_slow(now_s):
                too_slow = RequestTimeout("the body came too slowly; send at least 1 KiB/s")
                self._cut(incoming, "slow_body", too_slow)

    def _count(self, size: int) -> None:
        self.bytes_here += size
        self._counters.arriving_bytes += size

    def _make_room(self, newest: IncomingBody) -> None:
        now_s = asyncio.get_running_loop().time()
        while self.bytes_here > MAX_BYTES:
            long = [each for each in self._all if now_s - each.began_s > GRACE_S]
            largest = max(long, key=_size, default=newest)
            victim = largest if largest.here > SMALL_BYTES else newest
            self._cut(victim, "bodies_full", BodiesFull("too many large bodies are on their way"))
            if victim is newest:
                return

    def _cut(self, incoming: IncomingBody, reason: str, error: SanicException) -> None:
        self.end(incoming)
        self._counters.connections_cut[reason] += 1
        incoming.stop(error)


def _size(incoming: IncomingBody) -> int:
    return incoming.here
