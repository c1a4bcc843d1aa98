"""A full disk: the reserve is given up, and what is under way is still settled."""

import asyncio
from pathlib import Path

import pytest

from gwd.core.clock import SystemClock
from gwd.core.errors import StorageUnavailable
from gwd.core.vitals import GIB, Vitals
from gwd.jobs import disk
from gwd.jobs.disk import DiskWatch
from gwd.store import Connection, Store
from gwd.store.ballast import Ballast
from gwd.store.migrations import migrate

SIZE_BYTES = 1024**2
BIG = b"x" * 200_000


class RoomyBallast(Ballast):
    """Giving it up makes room in the file below, as deleting it does on a real disk."""

    limit = 0

    def drop(self) -> bool:
        dropped = super().drop()
        if dropped:
            self.limit = 1_000_000
        return dropped


def _limit(connection: Connection, pages: int) -> int:
    row = connection.row(f"PRAGMA max_page_count={pages}")
    assert row is not None
    return int(row[0])


def _pages(connection: Connection) -> int:
    row = connection.row("PRAGMA page_count")
    assert row is not None
    return int(row[0])


def _fill(connection: Connection, ballast: RoomyBallast) -> int:
    if ballast.limit:
        _limit(connection, ballast.limit)
    connection.execute("CREATE TABLE IF NOT EXISTS filling (body BLOB)")
    return connection.execute("INSERT INTO filling VALUES (?)", (BIG,))


def _rows(connection: Connection) -> int:
    row = connection.row("SELECT COUNT(*) FROM filling")
    assert row is not None
    return int(row[0])


async def test_writes_on_a_full_disk_happen_after_the_reserve_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "gwd.db"
    migrate(str(path), SystemClock())
    ballast = RoomyBallast(tmp_path / "gwd.ballast", SIZE_BYTES)
    ballast.make()
    assert (tmp_path / "gwd.ballast").stat().st_blocks * 512 >= SIZE_BYTES
    store = Store(str(path), ballast=ballast)
    try:
        await store.write(_limit, await store.read(_pages) + 2)
        written = await asyncio.gather(*(store.write(_fill, ballast) for _ in range(3)))
        assert written == [1, 1, 1]
        assert not (tmp_path / "gwd.ballast").exists()
        assert await store.read(_rows) == 3
        ballast.limit = 0
        await store.write(_limit, await store.read(_pages) + 2)
        with pytest.raises(StorageUnavailable):  # it can be given up only once
            await store.write(_fill, ballast)
        assert await store.read(_rows) == 3
    finally:
        await store.close()


async def test_the_reserve_is_made_where_there_is_room_and_made_again_after_it_was_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = GIB - 1

    def free_bytes(_: Path) -> int:
        return free

    monkeypatch.setattr(disk, "free_bytes", free_bytes)
    ballast = Ballast(tmp_path / "gwd.ballast", SIZE_BYTES)
    watch = DiskWatch(tmp_path, Vitals(writer_seen_s=0.0, lag_s=1.0, memory_max_bytes=1), ballast)
    await watch.watch()
    assert not ballast.is_there
    free = GIB
    await watch.watch()
    assert (tmp_path / "gwd.ballast").stat().st_size == SIZE_BYTES
    assert ballast.drop()
    assert not ballast.drop()
    await watch.watch()
    assert (tmp_path / "gwd.ballast").exists()
    ballast.close()
    assert list(tmp_path.iterdir()) == []


async def test_a_disk_without_room_for_the_reserve_is_no_reason_to_fail(tmp_path: Path) -> None:
    ballast = Ballast(tmp_path / "nowhere" / "gwd.ballast", SIZE_BYTES)
    ballast.make()
    assert not ballast.drop()
