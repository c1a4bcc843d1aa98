"""The schema of the file against the one that the migrations make: tables, indexes and triggers, word for word."""

from collections.abc import Iterator
from typing import Final

from gwd.ledger.replay import Difference
from gwd.store import Connection, migrations

SCHEMA: Final = "schema"
"""In place of an invariant: what all of them stand on."""


def check_schema(connection: Connection) -> Iterator[Difference]:
    """What is missing, changed or put in. A further table or plain index of somebody else's does no harm."""
    made, there = migrations.schema(), migrations.schema_of(connection)
    for (kind, name), wanted in made.items():
        found = there.pop((kind, name), None)
        if found is None:
            yield _wrong(f"the {kind} {name} is missing")
        elif found != wanted:
            yield _wrong(f"the {kind} {name} is not the one that the migrations make")
    ours = {name for kind, name in made if kind == "table"}
    for (kind, name), (table, text) in there.items():
        if kind == "trigger" or (kind == "index" and table in ours and "UNIQUE" in text.upper()):
            yield _wrong(f"the {kind} {name} is not of this version")


def _wrong(message: str) -> Difference:
    return Difference(invariant=SCHEMA, organization_id=None, message=message)
