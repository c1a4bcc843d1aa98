"""Once an hour: does the listener's certificate end soon. The operator is told."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from gwd.alerts import node_alerts
from gwd.core.clock import US_PER_S, Clock
from gwd.store import Store

NODE_WATCH_S: Final = 3_600.0


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """When a certificate ends, and for which names it is."""

    ends_us: int
    names: tuple[str, ...]


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


def read_certificate(path: Path) -> Certificate:
    """The first certificate of a PEM file, which is the listener's own."""
    from cryptography import x509  # a part of the library that only this look needs

    read = x509.load_pem_x509_certificate(path.read_bytes())
    try:
        found = read.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = tuple(found.value.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        names = ()
    return Certificate(
        ends_us=int(read.not_valid_after_utc.timestamp()) * US_PER_S,
        names=names,
    )
