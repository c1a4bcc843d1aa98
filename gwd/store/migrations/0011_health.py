"""How endpoints and credentials did lately outlives a restart: what rests, and what was measured of each endpoint."""

from gwd.store.connection import Connection

STEPS = (
    # endpoint_id is empty where the credential rests at all its endpoints; until_at NULL: until it is edited
    """CREATE TABLE rest (
        endpoint_id TEXT NOT NULL, credential_id TEXT NOT NULL, reason TEXT NOT NULL, status INTEGER, code TEXT,
        message TEXT NOT NULL, began_at INTEGER NOT NULL, until_at INTEGER, is_closed INTEGER NOT NULL,
        throttles INTEGER NOT NULL, asked TEXT NOT NULL,
        PRIMARY KEY (endpoint_id, credential_id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE endpoint_health (
        endpoint_id TEXT PRIMARY KEY, body TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
