"""Requests bear tags of their own, their key's and their workspace's."""

from gwd.store.connection import Connection

STEPS = (
    "ALTER TABLE generation ADD COLUMN tags TEXT",
    "CREATE INDEX generation_by_tags ON generation (organization_id) WHERE tags IS NOT NULL",
    "ALTER TABLE api_key ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'",
    "ALTER TABLE workspace ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
