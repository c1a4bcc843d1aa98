"""The index of the few entries that are no request's says so by comparisons.

With a list of types SQLite builds a table of the list for every entry that is written, on the path of each request.
"""

from gwd.store.connection import Connection

STEPS = (
    "DROP INDEX entry_of_credit",
    """CREATE INDEX entry_of_credit ON entry (organization_id, type, seq)
        WHERE type <> 'reservation' AND type <> 'settlement' AND type <> 'release'
        AND type <> 'charge'""",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
