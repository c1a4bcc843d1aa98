"""How endpoints did is kept over a restart: one small write in a while, none for a request."""

from typing import Final

from gwd.core.node_clock import NodeClock
from gwd.health import kept
from gwd.health.health import Health
from gwd.store import Store

LOOK_S: Final = 1.0
KEEP_S: Final = 15.0
"""Between two writes; a key that was refused is kept at the next look."""


class HealthKeeper:
    """One for the node."""

    def __init__(self, store: Store, health: Health, clock: NodeClock) -> None:
        self._store = store
        self._health = health
        self._clock = clock
        self._kept_s = clock.monotonic_s()

    async def load(self) -> None:
        """At the start, once the catalog is known: what the last process knew."""
        found = await self._store.read(kept.load)
        self._health.restore(found, self._clock.now_us(), self._clock.monotonic_s())

    async def look(self) -> None:
        """Keep what is new, if it is time."""
        now_s = self._clock.monotonic_s()
        if self._health.is_urgent or now_s - self._kept_s >= KEEP_S:
            self._kept_s = now_s
            await self.keep()

    async def keep(self) -> None:
        """Keep what is new now. Raises StorageUnavailable; it stays new then."""
        news = self._health.news(self._clock.now_us(), self._clock.monotonic_s())
        if news is None:
            return
        try:
            await self._store.write(kept.keep, news)
        except BaseException:
            self._health.unkept(news)
            raise
