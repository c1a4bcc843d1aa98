"""What the flows share: two endpoints for one model, and nodes with a clock of the test's."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gwd.core.clock import Clock
from gwd.demo import SimulatedVendor
from tests.flows.clock import MovableClock
from tests.support.node import Gateway, Nodes, fill_catalog

A, B = "gpt-demo", "gpt-demo-mini"
"""The names that the two endpoints of `demo/chat` have upstream: what a script is queued for."""
ORDER = {"order": ["openai-chat", "backup"]}

Opened = Callable[..., AbstractAsyncContextManager[Gateway]]


async def add_backup(gateway: Gateway, **endpoint: Any) -> str:
    """A second endpoint for `demo/chat`, of another provider; its id."""
    await gateway.add_provider("backup", "openai_chat", gateway.vendor.openai_url, "sk-backup-1")
    return await gateway.add_endpoint("demo/chat", "backup", B, **endpoint)


@pytest.fixture
async def two(gateway: Gateway) -> Gateway:
    """The gateway with a second endpoint for `demo/chat`."""
    await add_backup(gateway)
    return gateway


@asynccontextmanager
async def _open(
    tmp_path: Path, clock: Clock | None, credit: str | None, environment: dict[str, str]
) -> AsyncIterator[Gateway]:
    nodes = Nodes(tmp_path)
    management_key = nodes.init(credit)
    async with SimulatedVendor() as vendor, nodes.running(clock, **environment) as running:
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


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Open a gateway with a clock, another credit, or settings from the environment."""

    def open_(
        clock: Clock | None = None, *, credit: str | None = "10", **environment: str
    ) -> AbstractAsyncContextManager[Gateway]:
        return _open(tmp_path, clock, credit, environment)

    return open_


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()
