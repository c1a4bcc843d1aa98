"""Raises of budgets that are over: noticed, written down and told. What a request may spend goes by the clock alone."""

from typing import Final

from gwd import budgets
from gwd.core.node_clock import NodeClock
from gwd.management.budgets import end_lapsed_raises
from gwd.store import Store

RAISES_S: Final = 15.0


class RaiseWatch:
    """One for the node. It writes only when there is something to end, and ends nothing by a clock in doubt."""

    def __init__(self, store: Store, clock: NodeClock, *, app_url: str) -> None:
        self._store = store
        self._clock = clock
        self._app_url = app_url

    async def run(self) -> None:
        """End what is over."""
        now_us = self._clock.due_us()
        if await self._store.read(budgets.lapsed_raises, now_us=now_us):
            await self._store.write(end_lapsed_raises, app_url=self._app_url, now_us=now_us)
