"""A generation tells whether its vendor counted more prompt than a request of its size can have."""

from gwd.store.connection import Connection


def up(connection: Connection) -> None:
    connection.execute(
        "ALTER TABLE generation ADD COLUMN prompt_above_bound INTEGER NOT NULL DEFAULT 0"
    )
