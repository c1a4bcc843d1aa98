"""The machine's clock, watched: a change of what is believed of it is logged once, and the believed time is stored."""

import logging
from typing import Final

from gwd.core.clock import US_PER_S, iso
from gwd.core.node_clock import NodeClock, State
from gwd.management.time_repair import keep_time
from gwd.store import Store

CLOCK_WATCH_S: Final = 5.0
KEEP_US: Final = 600 * US_PER_S
"""How old the kept time may become."""

log = logging.getLogger(__name__)


class ClockWatch:
    """One for the node."""

    def __init__(self, store: Store, clock: NodeClock) -> None:
        self._store = store
        self._clock = clock
        self._reported: State = "ok"
        self._kept_us: int | None = None

    async def look(self) -> None:
        """Say what has changed, and keep the time while it is believed."""
        now = self._clock.standing()
        if now.state != self._reported:
            self._reported = now.state
            if now.state == "ok":
                log.warning("the clock is believed: %s", iso(now.machine_us))
            else:
                log.error(
                    "the machine's clock says %s, %s; gwctl server clock says more",
                    iso(now.machine_us),
                    f"which is not believed, and the node goes on from {iso(now.used_us)}"
                    if now.state == "held"
                    else f"which is in doubt: credit expires by {iso(now.due_us)} only",
                )
        if now.state != "ok":
            return
        if self._kept_us is None or abs(now.used_us - self._kept_us) >= KEEP_US:
            self._kept_us = now.used_us
            await self._store.write(keep_time, now.used_us)
