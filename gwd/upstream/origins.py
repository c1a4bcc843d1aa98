"""How many calls to one origin may be under way, so that a slow vendor does not use up what is there for all.

Without a queue a place costs two look-ups in a dict. Who finds none free waits its turn for WAIT_S at most, and not at
all where as many wait already as there are places: another endpoint serves sooner. The fault is `overloaded` with the
detail `our_limit`: it says nothing of the vendor.
"""

import asyncio
from collections import deque
from typing import Final

from gwd.upstream.base import UpstreamFault

WAIT_S: Final = 2.0

Origin = tuple[str, int, bool]
"""Host, port, whether it is TLS."""


class Origins:
    """The places of all origins; used from the event loop only."""

    def __init__(self, per_origin: int) -> None:
        self._per_origin = per_origin
        self._taken: dict[Origin, int] = {}
        self._waiting: dict[Origin, deque[asyncio.Future[None]]] = {}

    def take(self, origin: Origin) -> bool:
        """A place, if one is free."""
        taken = self._taken.get(origin, 0)
        if taken >= self._per_origin:
            return False
        self._taken[origin] = taken + 1
        return True

    async def wait(self, origin: Origin, timeout_s: float) -> None:
        """A place in turn, which is then taken. Raises UpstreamFault when none becomes free in time (seconds)."""
        queue = self._waiting.setdefault(origin, deque())
        if len(queue) >= self._per_origin:
            raise self._full()
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            async with asyncio.timeout(min(WAIT_S, timeout_s)):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.free(origin)  # it was given in the moment in which nobody wanted it any more
            if isinstance(error, TimeoutError):
                raise self._full() from None
            raise
        finally:
            if not turn.done() or turn.cancelled():
                queue.remove(turn)
            if not queue and self._waiting.get(origin) is queue:
                del self._waiting[origin]

    def free(self, origin: Origin) -> None:
        """Give a place back: to the first who waits, else to whoever comes."""
        for turn in self._waiting.get(origin, ()):
            if not turn.done():
                turn.set_result(None)
                self._waiting[origin].remove(turn)
                return
        taken = self._taken[origin] - 1
        if taken:
            self._taken[origin] = taken
        else:
            del self._taken[origin]

    def _full(self) -> UpstreamFault:
        return UpstreamFault(
            "overloaded",
            f"{self._per_origin} calls to this vendor are under way, the most that [upstream]"
            " max_in_flight_per_origin allows, and none ended in time",
            detail="our_limit",
        )
