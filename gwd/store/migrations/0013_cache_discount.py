"""A generation tells what the vendor's prompt cache saved; of those before nothing is known."""

from gwd.store.connection import Connection


def up(connection: Connection) -> None:
    connection.execute("ALTER TABLE generation ADD COLUMN cache_discount_nano INTEGER")
