"""Lists that grow at their head, in the order in which their rows were written: by offset, or on from a named row.

Rows are only ever added, so a walk that goes on `after` the last row it has seen meets each row once, whatever is
written meanwhile; `before` gives what was written since. The place in a list is the id of a row, which says nothing of
other organizations.

No question costs more for a longer history: more than `COUNTED` are not counted, and a page of a question that no index
answers ends after `LOOKED` rows, with the place where to go on.
"""

from typing import Any, Final, Generic, TypeVar

import msgspec
import peewee

from gwd.core.errors import InvalidValue
from gwd.store.connection import Connection
from gwd.store.fields import Table

COUNTED: Final = 10_000
LOOKED: Final = 20_000

R = TypeVar("R")


class Page(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """Rows of a list, newest first. `total` is None where it was not counted.

    `reached` is the place where the look ended, if that was before the page was full and before the list's end.
    """

    rows: list[R]
    total: int | None = None
    reached: str | None = None


def page(
    connection: Connection,
    query: Any,
    table: type[Table],
    organization_id: str,
    *,
    limit: int,
    offset: int,
    after: str | None,
    before: str | None,
) -> tuple[list[Any], int | None]:
    """Rows of a peewee select of `table`, newest first, and how many there are; None in a walk and for a long list."""
    number = peewee.SQL('"t1"."rowid"')
    name: str = table._meta.table_name  # noqa: SLF001 - peewee documents it
    if before is not None:
        newer = query.where(number > place(connection, name, organization_id, before, "before"))
        return list(connection.run(newer.order_by(number).limit(limit)))[::-1], None
    if after is not None:
        older = query.where(number < place(connection, name, organization_id, after, "after"))
        return list(connection.run(older.order_by(number.desc()).limit(limit))), None
    rows = connection.run(query.order_by(number.desc()).limit(limit).offset(offset))
    total = connection.count(query.limit(COUNTED + 1))
    return list(rows), total if total <= COUNTED else None


def place(connection: Connection, table: str, organization_id: str, row_id: str, param: str) -> int:
    """The number of the row that a place names. Raises InvalidValue for one that is none of this list."""
    row = connection.row(
        f"SELECT rowid FROM {table} WHERE id = ? AND organization_id = ?",  # noqa: S608 - our own table names
        (row_id, organization_id),
    )
    if row is None:
        raise unknown_place(param)
    return int(row[0])


def too_far() -> InvalidValue:
    """The 400 for an offset that would have to be looked for in all of the history."""
    return InvalidValue(
        "`offset` leads further back than one answer looks with these filters; go on with `after`: the `next` of the"
        " answer before",
        param="offset",
    )


def unknown_place(param: str) -> InvalidValue:
    """The 400 for a place that this list never gave out."""
    return InvalidValue(
        f"`{param}` is no place in this list; send what an answer of this list gave as `next` or `previous`",
        param=param,
    )
