"""What an old key of the ring seals is sealed anew, in small pages, until the active key seals everything."""

import asyncio
import logging
from typing import Final

from gwd.core.clock import Clock
from gwd.credentials.keyring import KeyRing
from gwd.credentials.sealed import Unopened
from gwd.credentials.vault import Vault
from gwd.management import secrets
from gwd.management.secrets import At
from gwd.store import Connection, Store

SECRETS_S: Final = 1.0
PAUSE_S: Final = 0.02
"""Between two pages, for whoever else wants to write."""

log = logging.getLogger(__name__)


class SealAnew:
    """One for the node. Secrets are opened and sealed beside the loop; the writer only swaps one text for another.

    It keeps nothing of its own: what is left to do stands in the database, so that a start goes on where a kill was.
    """

    def __init__(self, store: Store, vault: Vault, clock: Clock) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._done_with = ""

    async def run(self) -> None:
        """One pass, if the ring has a new key since the last one that left nothing over."""
        ring = self._vault.ring
        if ring.active == self._done_with:
            return
        await self._store.write(_nothing)  # what was sealed before the new key came is committed
        sealed, wrong = await self._pass()
        if await self._store.read(secrets.left, ring) > len(wrong):
            return  # something moved meanwhile; the next run finds it
        await self._finish(ring, sealed, wrong)

    async def _pass(self) -> tuple[int, list[Unopened]]:
        sealed, wrong = 0, list[Unopened]()
        at: At | None = At()
        while at is not None:
            page, further = await self._store.read(secrets.read_page, self._vault, at)
            if page.anew:
                await self._store.write(secrets.write_page, at, page)
                await asyncio.sleep(PAUSE_S)
            sealed += len(page.anew)
            wrong += page.unopened
            at = further
        return sealed, wrong

    async def _finish(self, ring: KeyRing, sealed: int, wrong: list[Unopened]) -> None:
        for each in wrong:
            log.error("a stored secret was not sealed anew: %s", each.message)
        if len(ring.keks) > 1:
            await self._store.write(secrets.note_done, ring, now_us=self._clock.now_us())
        if sealed:
            log.info("%d stored secrets were sealed anew by %s", sealed, ring.active)
        self._done_with = ring.active


def _nothing(_connection: Connection) -> None:
    return None
