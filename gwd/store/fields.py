"""Columns that STRICT tables take but peewee has no field for, and the base of every room's tables."""

from typing import Any

import msgspec
import peewee


class JsonField(peewee.TextField):
    """Plain values as JSON text."""

    def db_value(self, value: Any) -> str | None:
        return None if value is None else msgspec.json.encode(value).decode()

    def python_value(self, value: str | None) -> Any:
        return None if value is None else msgspec.json.decode(value)


class Table(peewee.Model):
    """A table of one room. It carries no database: queries run through `Connection.run`.

    Times are integers, microseconds UTC; the schema itself is in `store/migrations`.
    """

    class Meta:
        strict_tables = True
