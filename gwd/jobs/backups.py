"""Copies of the database by the clock: made in a process of their own, looked at, and told of when they are overdue."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Final

import msgspec

from gwd.alerts import node_alerts
from gwd.backups import directory, rhythm
from gwd.backups.making import Made, Order
from gwd.backups.rhythm import Keep
from gwd.backups.standing import Standing
from gwd.core.clock import US_PER_S, Clock
from gwd.orgs import organizations
from gwd.store import Store

BACKUPS_S: Final = 60.0
LONGEST_S: Final = 6 * 3_600.0

_decoder: Final = msgspec.json.Decoder(Made)

log = logging.getLogger(__name__)


class BackupJob:
    """One for a node with a directory for copies. What lies there decides what is due, so a restart floods nothing."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        standing: Standing,
        *,
        ring: Path,
        keep: Keep,
        app_url: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._standing = standing
        self._ring = ring
        self._keep = keep
        self._app_url = app_url
        self._directory = Path(standing.directory)
        self._tried_us: int | None = None

    async def make(self) -> None:
        """Make a copy if one is due."""
        await self._look()
        standing, now_us = self._standing, self._clock.now_us()
        newest_us = None if standing.newest is None else standing.newest.made_us
        if not rhythm.is_due(newest_us, self._tried_us, every_us=standing.every_us, now_us=now_us):
            return
        self._tried_us = now_us
        made = await made_in_a_process(
            Order(
                database=Path(self._store.path),
                ring=self._ring,
                directory=self._directory,
                made_us=now_us // US_PER_S * US_PER_S,
                keep=self._keep,
            )
        )
        standing.failure = made.wrong
        if made.wrong:
            log.error("no copy of the database was made: %s", made.wrong)
        else:
            log.info(
                "a copy of the database was made and proved: %d bytes, %d ledger entries, %d older copies removed",
                *(made.size_bytes, made.entries, made.thinned),
            )
        await self._look()
        if made.is_unproved:
            await self._tell(made.wrong, is_damage=True)
        for name in made.damaged:
            log.error(
                "a copy of the database is no longer what it was, and counts no more: %s", name
            )
            wrong = f"the copy {name} is no longer what it was, and counts no more"
            await self._tell(wrong, is_damage=True)
        await self.watch()

    async def watch(self) -> None:
        """Look at the copies, and tell once when there should long have been a newer one."""
        await self._look()
        standing = self._standing
        if standing.is_overdue(self._clock.now_us()):
            await self._tell(standing.failure or "none was made since", is_damage=False)
        elif standing.is_well and await self._store.read(node_alerts.is_backup_told):
            await self._store.write(node_alerts.backed_up)

    async def _tell(self, reason: str, *, is_damage: bool) -> None:
        standing = self._standing
        await self._store.write(
            node_alerts.backup_overdue,
            directory=standing.directory,
            newest_us=None if standing.newest is None else standing.newest.made_us,
            every_us=standing.every_us,
            reason=reason,
            is_damage=is_damage,
            app_url=self._app_url,
            now_us=self._clock.now_us(),
        )

    async def _look(self) -> None:
        node = await self._store.read(organizations.operator_id)
        found = await asyncio.to_thread(directory.copies, self._directory, node or "")
        self._standing.take(found, self._clock.now_us())


async def made_in_a_process(order: Order) -> Made:
    """A copy made and proved by a process of its own. One that does not get to its end has made none, and says so."""
    written = msgspec.json.encode(order, enc_hook=str).decode()
    program = (sys.executable, "-m", "gwd.backups", written)
    process = await asyncio.create_subprocess_exec(
        *program, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(LONGEST_S):
            out, complaint = await process.communicate()
    except TimeoutError:
        return Made(wrong=f"it took longer than {LONGEST_S / 3_600:.0f} hours")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        return Made(
            wrong=f"the process that makes it ended with {process.returncode}: {complaint.decode()[-1_000:]}"
        )
    return _decoder.decode(out)
