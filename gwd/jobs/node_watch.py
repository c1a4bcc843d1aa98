"""Once an hour: does the listener's certificate end soon. The operator is told."""

import asyncio
from pathlib import Path
from typing import Final

from gwd.alerts import node_alerts
from gwd.core.certificate import read_certificate
from gwd.core.clock import Clock
from gwd.store import Store

NODE_WATCH_S: Final = 3_600.0


class NodeWatch:
    """One for the node; `certificate` is the file of the listener's, empty without TLS."""

    def __init__(self, store: Store, clock: Clock, *, certificate: str, app_url: str) -> None:
        self._store = store
        self._clock = clock
        self._certificate = certificate
        self._app_url = app_url

    async def run(self) -> None:
        """A file that cannot be read is told of where it is loaded, not here."""
        if not self._certificate:
            return
        found = await asyncio.to_thread(read_certificate, Path(self._certificate))
        await self._store.write(
            node_alerts.certificate,
            ends_us=found.ends_us,
            names=found.names,
            app_url=self._app_url,
            now_us=self._clock.now_us(),
        )
