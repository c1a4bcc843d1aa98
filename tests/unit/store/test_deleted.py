"""What was deleted or overwritten is in no free page of the file, and so in no backup of it."""

from pathlib import Path

from gwd.core.clock import SystemClock
from gwd.store.connection import open_connection, transaction
from gwd.store.migrations import migrate

CANARY = "canary-7f3a9b-" + "x" * 600


def test_nothing_of_a_deleted_row_is_left_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "gwd.db"
    migrate(str(path), SystemClock())
    connection = open_connection(str(path), "writer")
    connection.execute("CREATE TABLE kept (id INTEGER PRIMARY KEY, text TEXT) STRICT")
    with transaction(connection, "IMMEDIATE"):
        for number in range(40):
            connection.execute("INSERT INTO kept VALUES (?, ?)", (number, CANARY))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert CANARY.encode() in path.read_bytes()
    with transaction(connection, "IMMEDIATE"):
        connection.execute("DELETE FROM kept WHERE id < 30")
        connection.execute("UPDATE kept SET text = 'gone'")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.raw.close()
    assert b"canary-7f3a9b" not in path.read_bytes()
