"""The schema of the file against the one that the migrations make: tables, indexes and triggers, word for word."""

from collections.abc import Iterator
from functools import cache
from typing import Final

import apsw

from gwd.ledger.replay import Difference
from gwd.store import Connection
from gwd.store.migrations import apply_all

SCHEMA: Final = "schema"
"""In place of an invariant: what all of them stand on."""

_OBJECTS: Final = (
    "SELECT type, name, tbl_name, sql FROM sqlite_master"
    " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
)


def check_schema(connection: Connection) -> Iterator[Difference]:
    """What is missing, changed or put in. A further table or plain index of somebody else's does no harm."""
    there = _objects(connection)
    for (kind, name), made in _made().items():
        found = there.pop((kind, name), None)
        if found is None:
            yield _wrong(f"the {kind} {name} is missing")
        elif found != made:
            yield _wrong(f"the {kind} {name} is not the one that the migrations make")
    ours = {name for kind, name in _made() if kind == "table"}
    for (kind, name), (table, text) in there.items():
        if kind == "trigger" or (kind == "index" and table in ours and "UNIQUE" in text.upper()):
            yield _wrong(f"the {kind} {name} is not of this version")


@cache
def _made() -> dict[tuple[str, str], tuple[str, str]]:
    raw = apsw.Connection(":memory:")
    try:
        connection = Connection(raw)
        apply_all(connection)
        return _objects(connection)
    finally:
        raw.close()


def _objects(connection: Connection) -> dict[tuple[str, str], tuple[str, str]]:
    rows = connection.rows(_OBJECTS)
    return {(kind, name): (table, " ".join(sql.split())) for kind, name, table, sql in rows}


def _wrong(message: str) -> Difference:
    return Difference(invariant=SCHEMA, organization_id=None, message=message)
