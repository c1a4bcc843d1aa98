"""What holds for every test: certificates are read once, a test that measures time runs alone, shared fixtures."""

import fcntl
import functools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import httpx
import pytest

from tests.support.node import gateway

__all__ = ["gateway"]

# Each client would read the machine's certificates for itself, which takes longer than most tests do.
httpx._transports.default.create_ssl_context = functools.lru_cache(  # type: ignore[attr-defined]
    httpx._transports.default.create_ssl_context  # type: ignore[attr-defined]
)


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts the tests in the background has them ignore ^C, and so would every child they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
