"""A migrated SQLite file: a store on it, or one open transaction as a room function sees it."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gwd.core.clock import SystemClock
from gwd.store import Store
from gwd.store.connection import Connection, open_connection, transaction
from gwd.store.migrations import migrate

NOW_US = 1_790_000_000_000_000  # 2026-09-21T14:13:20Z, a Monday


@asynccontextmanager
async def open_store(
    directory: Path, begin: Callable[[Connection], None] | None = None
) -> AsyncIterator[Store]:
    """A store on a fresh database, which `begin` may fill; closed at the end."""
    path = str(directory / "gwd.db")
    migrate(path, SystemClock())
    opened = Store(path)
    try:
        if begin is not None:
            await opened.write(begin)
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """The writer's connection to a fresh database, inside BEGIN IMMEDIATE … COMMIT."""
    path = str(tmp_path / "gwd.db")
    migrate(path, SystemClock())
    opened = open_connection(path, "writer")
    try:
        with transaction(opened, "IMMEDIATE"):
            yield opened
    finally:
        opened.raw.close()
