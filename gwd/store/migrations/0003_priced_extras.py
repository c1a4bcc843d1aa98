"""What a generation is billed beside its tokens: factors of their price, and searches that the vendor ran."""

from gwd.store.connection import Connection

STEPS = (
    "ALTER TABLE generation ADD COLUMN web_searches INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE generation ADD COLUMN cost_web_search_nano INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE generation ADD COLUMN price_modifiers TEXT",
    "ALTER TABLE generation ADD COLUMN service_tier TEXT",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
