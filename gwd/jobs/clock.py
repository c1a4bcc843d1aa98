"""The watch over the machine's clock: what is thought of it is told once, and a believed time outlives the process."""

import logging
from typing import Final

from gwd import ledger
from gwd.core.clock import US_PER_S, iso
from gwd.core.node_clock import NodeClock, State
from gwd.store import Connection, Store

WATCH_S: Final = 5.0
KEEP_US: Final = 600 * US_PER_S
"""How old the kept time may become."""

_NAME: Final = "clock_believed"

log = logging.getLogger(__name__)


class ClockWatch:
    """One for the node."""

    def __init__(self, store: Store, clock: NodeClock) -> None:
        self._store = store
        self._clock = clock
        self._told: State = "ok"
        self._kept_us: int | None = None

    async def look(self) -> None:
        """Say what has changed, and keep the time while it is believed."""
        now = self._clock.standing()
        if now.state != self._told:
            self._told = now.state
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
            await self._store.write(_keep, now.used_us)


def last_known_us(connection: Connection) -> int | None:
    """The latest time that this database has seen: of a ledger entry, or of a node that ran; None for a new node."""
    kept = connection.row("SELECT value FROM node_fact WHERE name = ?", (_NAME,))
    known = (ledger.last_time_us(connection), None if kept is None else int(bytes(kept[0])))
    return max((at_us for at_us in known if at_us is not None), default=None)


def forget(connection: Connection) -> None:
    """What was believed was wrong."""
    connection.execute("DELETE FROM node_fact WHERE name = ?", (_NAME,))


def _keep(connection: Connection, at_us: int) -> None:
    connection.execute(
        "INSERT INTO node_fact (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_NAME, str(at_us).encode()),
    )
