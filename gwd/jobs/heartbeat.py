"""The writer's heartbeat: an empty transaction once a second; one that is long overdue means a stuck writer."""

import logging
from typing import Final

from gwd.core.clock import Clock
from gwd.core.errors import StorageUnavailable
from gwd.core.vitals import WRITER_SILENCE_S, Vitals
from gwd.store import Connection, Store, maintains_cache

BEAT_S: Final = 1.0

log = logging.getLogger(__name__)


class Heartbeat:
    """One for the node."""

    def __init__(self, store: Store, clock: Clock, vitals: Vitals) -> None:
        self._store = store
        self._clock = clock
        self._vitals = vitals

    async def beat(self) -> None:
        """Note that the writer has answered, if it has."""
        try:
            await self._store.write(_nothing)
        except StorageUnavailable as error:
            log.warning("the writer does not answer: %s", error)
            return
        self._vitals.writer_seen_s = self._clock.monotonic_s()

    @property
    def is_fresh(self) -> bool:
        """Whether the writer has answered lately."""
        return self._clock.monotonic_s() - self._vitals.writer_seen_s <= WRITER_SILENCE_S


@maintains_cache
def _nothing(_: Connection) -> None:
    """The empty transaction."""
