"""`gwd demo`: a whole gateway in a throw-away directory, with a simulated vendor, 10 USD and one key."""

import asyncio
import socket
import tempfile
from collections.abc import Coroutine, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import uvloop
from rich.console import Console

from gwd import settings, wiring
from gwd.core.clock import Clock, SystemClock
from gwd.credentials import keyring
from gwd.credentials.vault import Vault
from gwd.demo import SimulatedVendor
from gwd.keys import service as keys
from gwd.management.setup import NewNode
from gwd.node import demo_request, demo_text, demo_vendor, price_book
from gwd.node import log as log_lines
from gwd.node.init import InitializedNode, initialize
from gwd.node.serve import obey_signals
from gwd.store.connection import open_connection, transaction

CREDIT_USD: Final = Decimal(10)
TOKENS_PER_SECOND: Final = 60.0
DEFAULT_PORT: Final = 8080
INTERRUPTED: Final = 130


def run(port: int | None, *, once: bool, environ: Mapping[str, str]) -> int:
    """Serve the demo until it is interrupted, or send one request and end; the exit code."""
    log_lines.configure("warning")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(port, once=once, environ=environ))


async def _run(port: int | None, *, once: bool, environ: Mapping[str, str]) -> int:
    console, clock = Console(highlight=False), SystemClock()
    chosen = port or (_free_port() if once else DEFAULT_PORT)
    with tempfile.TemporaryDirectory(prefix="gwd-demo-") as place:
        directory = Path(place) / "node"
        new = NewNode(organization="Demo", credit_usd=CREDIT_USD)
        node = initialize(directory, new, clock)
        read = settings.load(node.config, {}, port=chosen)
        async with SimulatedVendor(tokens_per_second=TOKENS_PER_SECOND) as vendor:
            real = demo_vendor.real(environ)
            key = _fill(read, node, [demo_vendor.simulated(vendor), *real.values()], clock)
            running = wiring.RunningNode(read, environ, name="gwd-demo-node")
            obey_signals(running)
            async with running:
                if once:
                    organization_id = node.created.organization_id
                    sending = demo_request.send(console, running, key, organization_id)
                    return await _unless_interrupted(running, sending)
                text = demo_text.snippets(
                    read.server.base_url, key, node.created.management_key, list(real)
                )
                console.print(text, markup=False, soft_wrap=True)
                await running.ended()
                return 0 if running.failure is None else 1


async def _unless_interrupted(
    running: wiring.RunningNode, sending: Coroutine[Any, Any, int]
) -> int:
    """The request's own exit code, or 130 when somebody did not want to wait for it."""
    request, ending = asyncio.ensure_future(sending), asyncio.ensure_future(running.ended())
    await asyncio.wait({request, ending}, return_when=asyncio.FIRST_COMPLETED)
    unfinished = [task for task in (request, ending) if not task.done()]
    for task in unfinished:
        task.cancel()
    await asyncio.gather(*unfinished, return_exceptions=True)
    if request not in unfinished:
        return request.result()
    return INTERRUPTED if running.failure is None else 1


def _fill(
    read: settings.Settings, node: InitializedNode, entries: list[price_book.Entries], clock: Clock
) -> str:
    """Catalog and inference key, in one transaction before the node serves; gives back the key."""
    ring = keyring.read(read.keyring)
    connection = open_connection(str(read.database), "writer")
    try:
        with transaction(connection, "IMMEDIATE"):
            for part in entries:
                price_book.add(
                    connection, Vault(ring), part, allow_http=False, now_us=clock.now_us()
                )
            issued = keys.create(
                connection,
                node.created.organization_id,
                keys.CreateKey(name="demo"),
                actor=node.created.operator,
                issuing=keys.Issuing(
                    pepper=ring.pepper,
                    rate_limit_ceiling=read.limits.default_rate_limit_per_minute,
                ),
                now_us=clock.now_us(),
            )
    finally:
        connection.raw.close()
    return issued.plaintext


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
