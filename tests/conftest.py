"""What holds for every test: folders are made once, a test that measures time runs alone, shared fixtures."""

import fcntl
import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from tests.support import templates
from tests.support.node import gateway
from tests.support.quick import be_quick

__all__ = ["gateway"]

pytest_plugins = ["tests.support.cost"]


def pytest_configure(config: pytest.Config) -> None:
    be_quick()
    # A shell that starts the tests in the background has them ignore ^C, and so would every child they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """As the daemon does: what is there now stays, and the collector need not look at it with every test."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def _templates(tmp_path_factory: pytest.TempPathFactory) -> None:
    templates.keep_in(tmp_path_factory.mktemp("templates"))


@pytest.fixture(scope="session")
def _locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[IO[str], IO[str]]]:
    # The workers of one run have neighbouring temporary folders.
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if base.name.startswith("popen-") else base
    with (folder / "gate").open("w") as gate, (folder / "room").open("w") as room:
        yield gate, room


@contextmanager
def _held(file: IO[str], how: int) -> Iterator[None]:
    fcntl.flock(file, how)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


@pytest.fixture(autouse=True)
def _room(request: pytest.FixtureRequest, _locks: tuple[IO[str], IO[str]]) -> Iterator[None]:
    """A test marked `alone` measures time: no other runs beside it. Who waits at the gate is next."""
    gate, room = _locks
    alone = request.node.get_closest_marker("alone") is not None
    with _held(gate, fcntl.LOCK_EX):
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    try:
        yield
    finally:
        fcntl.flock(room, fcntl.LOCK_UN)
