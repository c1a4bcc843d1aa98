"""Fixtures of the money tests over HTTP: a till, and nodes with a clock, a credit or settings of the test's."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.limits.till import Till
from tests.limits.watch import Watch
from tests.support.node import Gateway, open_gateway

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

    def open_(
        *, credit: str | None = "10", **environment: str
    ) -> AbstractAsyncContextManager[Gateway]:
        return open_gateway(tmp_path, watch, credit=credit, environment=environment)

    return open_
