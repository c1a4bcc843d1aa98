"""Lists that had to look through all of a history have an index: of a session, of an error, of released holds, of keys.

Each costs those rows alone that it is about. Keys are listed in the order in which they were made, which is that of
their row numbers.
"""

from gwd.store.connection import Connection

STEPS = (
    "CREATE INDEX generation_by_session ON generation (organization_id, session_id) WHERE session_id IS NOT NULL",
    "CREATE INDEX generation_by_error ON generation (organization_id, error_code) WHERE error_code IS NOT NULL",
    "CREATE INDEX entry_of_release ON entry (organization_id, seq) WHERE type = 'release'",
    "DROP INDEX api_key_by_organization",
    "CREATE INDEX api_key_by_organization ON api_key (organization_id)",
    "CREATE INDEX api_key_by_name ON api_key (organization_id, name)",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
