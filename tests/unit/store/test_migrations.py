"""A file of an earlier version is brought up to date with what it holds."""

from pathlib import Path

import pytest

from gwd import ledger
from gwd.core.clock import SystemClock
from gwd.ledger import LedgerFilter
from gwd.store import migrations
from gwd.store.connection import Connection, open_connection, transaction
from gwd.store.migrations import migrate
from tests.support.money import ORGANIZATION, USD, add, hold, open_organization
from tests.support.store import NOW_US


def types_of(connection: Connection, generation_id: str) -> list[str]:
    wanted = LedgerFilter(generation_id=generation_id)
    entries, total = ledger.list_entries(connection, ORGANIZATION, wanted, limit=100, offset=0)
    assert total == len(entries)
    return [entry.type for entry in reversed(entries)]


def as_first_version(connection: Connection) -> None:
    """What 0002 did, undone."""
    for column in ("opened_seq", "ended_seq", "last_seq"):
        connection.execute(f"ALTER TABLE reservation DROP COLUMN {column}")
    connection.execute(
        "CREATE INDEX entry_by_generation ON entry (generation_id) WHERE generation_id IS NOT NULL"
    )
    connection.execute("DELETE FROM schema_history WHERE name LIKE '0002%'")


def test_reservations_of_the_first_version_find_their_entries(tmp_path: Path) -> None:
    path = str(tmp_path / "gwd.db")
    migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        add(connection, USD, kind="granted", now_us=NOW_US)
        add(connection, 100 * USD, now_us=NOW_US)
        for name in ("gen-open", "gen-settled", "gen-released"):
            hold(connection, name, 5 * USD, now_us=NOW_US)
        ledger.settle(connection, "gen-settled", 3 * USD, now_us=NOW_US)
        ledger.release(connection, "gen-released", now_us=NOW_US)
        as_first_version(connection)
    connection.raw.close()

    assert migrate(path, SystemClock()) == ["0002_entries_of_a_generation"]
    copy = Path(f"{path}.before-0002_entries_of_a_generation")
    assert copy.stat().st_mode & 0o777 == 0o600
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        assert types_of(connection, "gen-open") == ["reservation"]
        assert types_of(connection, "gen-settled") == [
            "reservation",
            "settlement",
            "charge",
            "charge",
        ]
        assert types_of(connection, "gen-released") == ["reservation", "release"]
        assert types_of(connection, "gen-unknown") == []
        again = ledger.settle(connection, "gen-settled", USD, now_us=NOW_US)
        assert (again.first, again.charged_nano) == (False, 3 * USD)
        ledger.settle(connection, "gen-open", USD, now_us=NOW_US)
        assert types_of(connection, "gen-open") == ["reservation", "settlement", "charge"]
    connection.raw.close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "gwd.db")
    migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    connection.execute("INSERT INTO schema_history VALUES ('9999_future', 1)")
    connection.raw.close()
    with pytest.raises(migrations.NewerSchemaError, match="9999_future"):
        migrate(path, SystemClock())
