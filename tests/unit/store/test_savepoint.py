"""What runs in a savepoint can spoil nothing else of its transaction, and is never silent about it."""

from pathlib import Path

import apsw
import pytest

from gwd.store import cached, maintains_cache
from gwd.store.connection import Connection
from tests.support.store import connection, open_store

__all__ = ["connection"]


def put(connection: Connection, name: str) -> None:
    connection.execute("INSERT INTO node_fact (name, value) VALUES (?, x'00')", (name,))


def names(connection: Connection) -> list[str]:
    return [row[0] for row in connection.rows("SELECT name FROM node_fact ORDER BY 1")]


def broken(connection: Connection) -> None:
    put(connection, "within")
    raise RuntimeError("no")


def test_only_what_failed_is_undone_and_it_is_counted_and_logged(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    put(connection, "before")
    connection.in_savepoint("the first", lambda: broken(connection))
    connection.in_savepoint("the second", lambda: put(connection, "after"))
    assert names(connection) == ["after", "before"]
    assert connection.tolerated == 1
    assert "the first failed and was left out: no" in caplog.text


@pytest.mark.parametrize("error", [apsw.FullError("full"), apsw.IOError("disk")])
def test_a_failing_disk_is_not_tolerated(connection: Connection, error: apsw.Error) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(type(error)):
        connection.in_savepoint("the disk", fails)
    with pytest.raises(type(error)):
        connection.tolerate("the disk", error)
    assert connection.tolerated == 0


def test_a_transaction_that_is_gone_is_not_tolerated(connection: Connection) -> None:
    def fails() -> None:
        connection.raw.execute("ROLLBACK")
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        connection.in_savepoint("everything", fails)
    connection.raw.execute("BEGIN")


async def test_what_was_remembered_within_is_forgotten_with_it(tmp_path: Path) -> None:
    kept = cached("kept")(lambda _: 0)

    @maintains_cache
    def remembers(connection: Connection) -> None:
        def breaks() -> None:
            kept.put(connection, 2)
            broken(connection)

        kept.put(connection, 1)
        connection.in_savepoint("it", breaks)

    @maintains_cache
    def recalls(connection: Connection) -> tuple[object, list[str]]:
        return kept.peek(connection), names(connection)

    async with open_store(tmp_path) as store:
        await store.write(remembers)
        assert await store.write(recalls) == (None, [])
        assert store.tolerated == 1
