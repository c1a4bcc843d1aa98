"""The sweep: requests past every deadline are ended, holds that none owns are resolved, credit that is due expires."""

import logging
from collections.abc import Mapping
from typing import Final

from gwd import ledger
from gwd.core.clock import US_PER_S
from gwd.core.errors import StorageUnavailable, UpstreamFailed
from gwd.core.node_clock import NodeClock
from gwd.pipeline.inference import Generation
from gwd.pipeline.settle import recovery
from gwd.store import Store

SLACK_US: Final = 60 * US_PER_S

log = logging.getLogger(__name__)


class Sweep:
    """One for the node. `live` holds the generations that run; none may run longer than `total_s`.

    Those that do all the same are told to end, and given up when they do not: then their holds are resolved like any
    that nobody owns. Their age is the monotonic clock's, since the wall clock may jump.
    """

    def __init__(
        self,
        store: Store,
        clock: NodeClock,
        live: Mapping[str, Generation],
        *,
        total_s: float,
        app_url: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._live = live
        self._total_s = total_s
        self._oldest_us = int(total_s * US_PER_S) + SLACK_US
        self._given_up: set[str] = set()
        self._app_url = app_url

    async def resolve(self) -> None:
        """Resolve what is older than any request may be."""
        self._end_overdue()
        swept = await recovery.sweep(
            self._store,
            self._clock,
            older_than_us=self._clock.now_us() - self._oldest_us,
            live=self._live.keys() - self._given_up,
            app_url=self._app_url,
        )
        if swept:
            log.warning("resolved %d reservations that nothing owned", swept)

    def _end_overdue(self) -> None:
        self._given_up &= self._live.keys()
        slack_s = SLACK_US / US_PER_S
        for generation_id, generation in list(self._live.items()):
            late_s = generation.age_s - self._total_s
            if late_s <= slack_s / 2 or generation.is_settling:
                continue
            named = {"generation_id": generation_id}
            error = UpstreamFailed("the answer took longer than the total deadline")
            if late_s <= slack_s:
                log.error("a request is past its deadline and told to end", extra=named)
                generation.stop(error)
            else:
                log.error("a request past its deadline did not end and is given up", extra=named)
                self._given_up.add(generation_id)
                generation.give_up(error)

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
