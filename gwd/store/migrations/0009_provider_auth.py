"""A provider says how it takes its key; those that exist go on the way of their format."""

from gwd.store.connection import Connection

STEPS = (
    "ALTER TABLE provider ADD COLUMN auth TEXT NOT NULL DEFAULT 'bearer'",
    """UPDATE provider SET auth = CASE adapter
        WHEN 'anthropic_messages' THEN 'x-api-key' WHEN 'gemini' THEN 'x-goog-api-key' END
        WHERE adapter IN ('anthropic_messages', 'gemini')""",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
