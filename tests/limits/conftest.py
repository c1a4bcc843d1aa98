"""Fixtures of the money tests over HTTP: a till, and nodes with a clock, a credit or settings of the test's."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from gwd.demo import SimulatedVendor
from tests.limits.till import Till
from tests.limits.watch import Watch
from tests.support.node import Gateway, Nodes, fill_catalog

Opened = Callable[..., AbstractAsyncContextManager[Gateway]]


@pytest.fixture
def till(gateway: Gateway) -> Till:
    """Buys with the gateway's key."""
    return Till(gateway)


@pytest.fixture
def watch() -> Watch:
    """A Wednesday noon at the end of a month: the next Monday and the next month are days apart."""
    return Watch("2026-11-25T12:00:00Z")


@pytest.fixture
def opened(tmp_path: Path, watch: Watch) -> Opened:
    """A gateway whose node and whose ledger live by the test's watch."""

    @asynccontextmanager
    async def open_(*, credit: str | None = "10", **environment: str) -> AsyncIterator[Gateway]:
        nodes = Nodes(tmp_path)
        management_key = nodes.init(credit, watch)
        async with SimulatedVendor() as vendor, nodes.running(watch, **environment) as running:
            made = Gateway(running, vendor, management_key)
            await fill_catalog(made)
            made.key, made.key_id = await made.new_key()
            made.client.headers["authorization"] = f"Bearer {made.key}"
            try:
                yield made
                await made.verify()
            finally:
                await made.client.aclose()
                await made.operator.aclose()

    return open_
