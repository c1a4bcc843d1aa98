"""What the flows share: two endpoints for one model, and nodes with a clock of the test's."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from gwd.core.clock import Clock
from tests.flows.clock import MovableClock
from tests.flows.disk import Disk
from tests.support.node import Gateway, open_gateway

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


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Asked for before the node, so that the node's files lie on it."""
    made = Disk()
    yield made
    made.free, made.broken = None, False
    made.remove()


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Open a gateway with a clock, another credit, or settings from the environment."""

    def open_(
        clock: Clock | None = None, *, credit: str | None = "10", **environment: str
    ) -> AbstractAsyncContextManager[Gateway]:
        return open_gateway(tmp_path, clock, credit=credit, environment=environment)

    return open_


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()
