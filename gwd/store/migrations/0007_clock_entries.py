"""An entry of type `clock` moves nothing; the table's rule is written anew, its indexes and triggers stay."""

from gwd.store.connection import Connection

_OLD = "type IN ('reservation', 'settlement', 'release')"
_NEW = "type IN ('reservation', 'settlement', 'release', 'clock')"
# the index of the few entries that are no request's
_FEW = "WHERE type IN ('purchase', 'grant', 'refund', 'expiry', 'adjustment')"
_FEW_AND_MENDING = (
    "WHERE type IN ('purchase', 'grant', 'refund', 'expiry', 'adjustment', 'clock', 'restoration')"
)


def up(connection: Connection) -> None:
    row = connection.row("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'entry'")
    assert row is not None
    attached = connection.rows(
        "SELECT sql FROM sqlite_master WHERE tbl_name = 'entry' AND type IN ('index', 'trigger') AND sql IS NOT NULL"
    )
    head, _, body = row[0].partition("(")
    assert "entry" in head
    assert _OLD in body, "the rule on entries without an amount is not the one that is known"
    connection.execute(f"CREATE TABLE entry_anew ({body.replace(_OLD, _NEW)}")
    connection.execute("INSERT INTO entry_anew SELECT * FROM entry")
    connection.execute("DROP TABLE entry")
    connection.execute("ALTER TABLE entry_anew RENAME TO entry")
    for (statement,) in attached:
        connection.execute(statement.replace(_FEW, _FEW_AND_MENDING))
