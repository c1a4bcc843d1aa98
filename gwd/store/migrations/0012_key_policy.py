"""What a key lets its requests use: providers, how they are sorted, and whether inputs may be trained on."""

from gwd.store.connection import Connection

STEPS = (
    "ALTER TABLE api_key ADD COLUMN allowed_providers TEXT",
    "ALTER TABLE api_key ADD COLUMN ignored_providers TEXT NOT NULL DEFAULT '[]'",
    "ALTER TABLE api_key ADD COLUMN default_provider_sort TEXT",
    "ALTER TABLE api_key ADD COLUMN data_policy TEXT NOT NULL DEFAULT 'allow'",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
