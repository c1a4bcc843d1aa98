"""What is stored of requests is erased when its time is over, when an organization has too much of it, or is gone."""

from functools import partial
from typing import Final

from gwd.content_log import service as content_log
from gwd.core.clock import US_PER_DAY
from gwd.core.node_clock import NodeClock
from gwd.management import content_log as erasing
from gwd.orgs import settings
from gwd.store import Store

CONTENT_LOG_S: Final = 60.0


class ContentLogJob:
    """One for the node. Nothing is erased for its age while the machine's clock is in doubt."""

    def __init__(self, store: Store, clock: NodeClock, *, max_bytes: int) -> None:
        self._store = store
        self._clock = clock
        self._max_bytes = max_bytes

    async def run(self) -> None:
        """Erase, then let the log of writes forget it; what a reader still needs goes with the next round."""
        now_us = self._clock.due_us()
        await erasing.erase(self._store, partial(content_log.expired, now_us=now_us))
        for organization_id, days in await self._store.read(settings.content_logs):
            before_us = now_us - days * US_PER_DAY
            too_old = partial(
                content_log.too_old, organization_id=organization_id, before_us=before_us
            )
            too_many = partial(
                content_log.too_many, organization_id=organization_id, max_bytes=self._max_bytes
            )
            await erasing.erase(self._store, too_old)
            await erasing.erase(self._store, too_many)
        await erasing.empty_log(self._store)
