"""Columns that STRICT tables take but peewee has no field for, and the tables of rooms: written out, or from a row."""

from typing import Any

import msgspec
import peewee
from msgspec import inspect


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


def table_of(name: str, row: type[msgspec.Struct], **unshown: "peewee.Field[Any]") -> Any:
    """The table `name` with a column for each field of `row`, and `unshown` ones, which the row leaves out.

    `id` is the primary key; lists and mappings are JSON; a field that may be None is a column that may be NULL.
    """
    columns = {}
    for field in msgspec.structs.fields(row):
        kind = inspect.type_info(field.type)
        columns[field.name] = (
            _column(kind, primary_key=True) if field.name == "id" else _column(kind)
        )
    meta = type("Meta", (), {"table_name": name})
    return type(f"{row.__name__}Table", (Table,), {**columns, **unshown, "Meta": meta})


def _column(kind: inspect.Type, **options: Any) -> "peewee.Field[Any]":
    match kind:
        case inspect.Metadata():
            return _column(kind.type, **options)
        case inspect.UnionType():
            [held] = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
            return _column(held, **options, null=True)
        case inspect.BoolType():
            return peewee.BooleanField(**options)
        case inspect.IntType():
            return peewee.IntegerField(**options)
        case inspect.StrType() | inspect.LiteralType():
            return peewee.TextField(**options)
        case _:
            column: peewee.Field[Any] = JsonField(**options)
            return column
