"""A migrated SQLite file: a store on it, or one open transaction as a room function sees it."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gwd.core.clock import SystemClock
from gwd.store import Store
from gwd.store.connection import Connection, open_connection, transaction
from gwd.store.migrations import migrate
from tests.support import templates

NOW_US = 1_790_000_000_000_000  # 2026-09-21T14:13:20Z, a Monday


def migrated(directory: Path) -> str:
    """An empty database: a copy of one that was made once."""
    path = directory / "gwd.db"
    if not templates.is_kept(migrate):
        folder = templates.room()
        if folder is None:
            migrate(str(path), SystemClock())
            return str(path)
        migrate(str(folder / path.name), SystemClock())
        templates.keep(migrate, folder, None)
    templates.copy(migrate, directory)
    return str(path)


@asynccontextmanager
async def open_store(
    directory: Path, begin: Callable[[Connection], None] | None = None
) -> AsyncIterator[Store]:
    """A store on a fresh database, which `begin` may fill; closed at the end."""
    path = migrated(directory)
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
    path = migrated(tmp_path)
    opened = open_connection(path, "writer")
    try:
        with transaction(opened, "IMMEDIATE"):
            yield opened
    finally:
        opened.raw.close()


class Seen:
    """A connection that remembers what was asked of it, with the plan that SQLite made for it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.cached_rows = None
        self.plans: list[str] = []

    def row(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        self._explain(sql, values)
        return self.connection.row(sql, values)

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        self._explain(sql, values)
        return self.connection.rows(sql, values)

    def _explain(self, sql: str, values: tuple[Any, ...]) -> None:
        steps = self.connection.rows(f"EXPLAIN QUERY PLAN {sql}", values)
        self.plans += [step[3] for step in steps]
