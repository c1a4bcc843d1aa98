"""The sweep: holds that no running request owns are resolved, credit that is due expires."""

import logging
from collections.abc import Container
from typing import Final

from gwd import ledger
from gwd.core.clock import US_PER_S
from gwd.core.errors import StorageUnavailable
from gwd.core.node_clock import NodeClock
from gwd.pipeline import recovery
from gwd.store import Store

SLACK_US: Final = 60 * US_PER_S

log = logging.getLogger(__name__)


class Sweep:
    """One for the node. `live` holds the generations that run; none may run longer than `total_s`."""

    def __init__(
        self,
        store: Store,
        clock: NodeClock,
        live: Container[str],
        *,
        total_s: float,
        app_url: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._live = live
        self._oldest_us = int(total_s * US_PER_S) + SLACK_US
        self._app_url = app_url

    async def resolve(self) -> None:
        """Resolve what is older than any request may be."""
        swept = await recovery.sweep(
            self._store,
            self._clock,
            older_than_us=self._clock.now_us() - self._oldest_us,
            live=self._live,
            app_url=self._app_url,
        )
        if swept:
            log.warning("resolved %d reservations that nothing owned", swept)

    async def expire(self) -> None:
        """Let credit that is due expire, each organization's by itself; it waits while the clock is in doubt."""
        now_us, due_us = self._clock.now_us(), self._clock.due_us()
        for name in await self._store.read(ledger.organizations_with_due_credit, now_us=due_us):
            try:
                await self._store.write(ledger.expire, name, now_us=now_us, due_us=due_us)
            except StorageUnavailable:
                raise
            except Exception:
                log.exception("the credit of %s cannot expire", name)
