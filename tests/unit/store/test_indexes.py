"""The indexes of what every request writes cost it no more than their entries."""

import re
from pathlib import Path

import msgspec

from gwd.activity.row import COLUMNS
from gwd.core.clock import SystemClock
from gwd.ledger.book import Entry
from gwd.store.connection import open_connection
from gwd.store.migrations import migrate

WRITTEN_BY_REQUESTS = ("entry", "reservation", "generation", "spend", "account", "lot")


def test_no_index_of_what_requests_write_is_judged_by_a_long_list(tmp_path: Path) -> None:
    """Of a list of more than two SQLite builds a table, for every row that is written."""
    path = str(tmp_path / "gwd.db")
    migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    indexes = connection.rows(
        "SELECT tbl_name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    )
    connection.raw.close()
    assert [
        sql
        for table, sql in indexes
        if table in WRITTEN_BY_REQUESTS
        for listed in re.findall(r"\bIN \(([^)]*)\)", sql)
        if listed.count(",") > 1
    ] == []


def test_rows_that_are_written_without_the_names_of_columns_have_the_tables_order(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "gwd.db")
    migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    orders = {
        table: [row[1] for row in connection.rows(f"PRAGMA table_info({table})")]
        for table in ("generation", "entry")
    }
    connection.raw.close()
    assert orders["generation"] == list(COLUMNS)
    entry = [field.name for field in msgspec.structs.fields(Entry)]
    assert orders["entry"][: len(entry)] == entry
