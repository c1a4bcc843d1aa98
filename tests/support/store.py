"""A migrated SQLite file and one open transaction on it, as a room function sees it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gwd.core.clock import SystemClock
from gwd.store.connection import Connection, open_connection, transaction
from gwd.store.migrations import migrate

NOW_US = 1_790_000_000_000_000  # 2026-09-21T14:13:20Z, a Monday


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
