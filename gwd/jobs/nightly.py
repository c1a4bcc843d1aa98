"""The nightly proof that the ledger adds up: the whole of it, in a process of its own."""

import logging
from collections.abc import Callable
from typing import Final

from gwd.core.clock import US_PER_DAY, US_PER_S, Clock
from gwd.proof import Prover
from gwd.store import Connection, Store

BEGINS_US: Final = 3 * 3_600 * US_PER_S
"""A night begins at three (UTC)."""
SHOWN: Final = 5

_NAME: Final = "ledger_verified_night"

log = logging.getLogger(__name__)


class NightlyCheck:
    """One for the node. It verifies once a night; a node that was down at night verifies when it is up again."""

    def __init__(
        self, store: Store, prover: Prover, clock: Clock, quarantine: Callable[[str], None]
    ) -> None:
        self._store = store
        self._prover = prover
        self._clock = clock
        self._quarantine = quarantine
        self._last: int | None = None

    async def run(self) -> None:
        """Verify if this night's turn has come; a difference puts the node into quarantine."""
        night = (self._clock.now_us() - BEGINS_US) // US_PER_DAY
        if self._last is None:
            # A new node has no night behind it that it could have missed.
            self._last = await self._store.read(_last)
        if self._last is None:
            self._last = night
            await self._store.write(_keep, night)
        # A later night than this one was noted by a clock that was ahead.
        if night == self._last:
            return
        self._last = night
        found = await self._prover.verify()
        if found.ok:
            await self._store.write(_keep, night)
            log.info("the ledger adds up: %d entries", found.checked)
            return
        log.error("the ledger does not add up: %s", found.differences[:SHOWN])
        first = found.differences[0]
        self._quarantine(f"the ledger does not add up: {first.invariant}, {first.message}")


def _last(connection: Connection) -> int | None:
    row = connection.row("SELECT value FROM node_fact WHERE name = ?", (_NAME,))
    return None if row is None else int(bytes(row[0]))


def _keep(connection: Connection, night: int) -> None:
    connection.execute(
        "INSERT INTO node_fact (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_NAME, str(night).encode()),
    )
