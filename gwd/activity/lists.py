"""The list of generations: newest first, in the order in which they ended, by offset or on from one that is named.

Row numbers only grow, and with them the time at which generations ended (ledger time; those that end within the same
moments may change places): a stretch of time is a stretch of numbers, found by halving, except where ledger time was
set back. So every question is asked of one index that ends in the row number. Where that index alone answers it, no
more is read of it than the page; where each row has to be looked at, a page looks at so many at most, and says where it
ended.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from gwd import ledger
from gwd.activity.row import SELECT, GenerationRow, row_of
from gwd.store.connection import Connection, Value
from gwd.store.walk import COUNTED, LOOKED, Page, place, too_far

Filters = dict[str, str | int]

_FILTERS: Final = {
    "key_id": "key_id = ?",
    "model": "model = ?",
    "status": "status = ?",
    "user": "user_tag = ?",
    "session_id": "session_id = ?",
    "app": "? IN (title, referer)",
    "tag": "tags IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(generation.tags) WHERE value = ?)",
    "workspace_id": "workspace_id = ?",
    "error_code": "error_code = ?",
}
_INDEXED: Final = {
    "session_id": "generation_by_session",
    "user": "generation_by_user",
    "key_id": "generation_by_key",
    "error_code": "generation_by_error",
    "status": "generation_by_status",
    "model": "generation_by_model",
}
_OF_TROUBLE: Final = "status <> 'succeeded'"  # as the index says it
_BY_TAGS: Final = "generation_by_tags"  # of all that bear any
_BY_ORGANIZATION: Final = "generation_by_organization"
LOOK_US: Final = 3_600_000_000  # how far out of order ends may be; in truth it is milliseconds
_FEW: Final = 2_000
_NEWEST_FIRST: Final = "rowid DESC"
_ALL: Final = (1 << 63) - 1
_LAST: Final = "SELECT MAX(rowid) FROM generation INDEXED BY generation_by_organization WHERE organization_id = ?"
_AT: Final = (
    "SELECT rowid, settled_at FROM generation INDEXED BY generation_by_organization"
    " WHERE organization_id = ? AND rowid >= ? ORDER BY rowid LIMIT 1"
)


def list_(
    connection: Connection,
    organization_id: str,
    filters: Filters,
    *,
    limit: int,
    offset: int,
    after: str | None = None,
    before: str | None = None,
    key_ids: Sequence[str] | None = None,
    count: bool = True,
) -> Page[GenerationRow]:
    """`filters` names are those of GET /generations; `from` and `to` are the microseconds between which they ended.

    `key_ids` limits the list to these keys: what a member may see. A list that is walked is not counted, nor is
    one without `count`. Raises InvalidValue for a place of another list and for an offset that is out of reach.
    """
    found = _Search(connection, organization_id, filters, key_ids)
    if before is not None:
        number = place(connection, "generation", organization_id, before, "before")
        return found.page("rowid > ?", number, "rowid", limit)
    if after is not None:
        number = place(connection, "generation", organization_id, after, "after")
        return found.page("rowid < ?", number, _NEWEST_FIRST, limit)
    page = found.page("rowid > ?", 0, _NEWEST_FIRST, limit, offset)
    return msgspec.structs.replace(page, total=found.count() if count else None)


def number_at(connection: Connection, organization_id: str, at_us: int) -> int:
    """The row number of the first generation that ended at this time or later; past the last where none did."""
    row = connection.row(_LAST, (organization_id,))
    assert row is not None
    low, high = 1, (row[0] or 0) + 1
    while low < high:
        middle = (low + high) // 2
        row = connection.row(_AT, (organization_id, middle))
        if row is None or row[1] >= at_us:
            high = middle
        else:
            low = row[0] + 1
    return low


class _Search:
    """One question: its index, its conditions, and the stretch of row numbers that its times allow."""

    def __init__(
        self,
        connection: Connection,
        organization_id: str,
        filters: Filters,
        key_ids: Sequence[str] | None,
    ) -> None:
        self._connection = connection
        self._organization_id = organization_id
        self._from_us, self._to_us = filters.get("from"), filters.get("to")
        self._in_order = not ledger.was_set_back(connection, organization_id)
        answered, self._index = self._narrowest(filters, key_ids)
        self._of_index = ["organization_id = ?"]
        self._values_of_index: list[Value] = [organization_id]
        self._others: list[str] = []
        """What the index does not say of a row."""
        self._values: list[Value] = []
        for name, condition in _FILTERS.items():
            if name in filters:
                self._hold(condition, filters[name], is_of_index=name == answered)
        if answered == "status":
            self._of_index.append(_OF_TROUBLE)
        if self._index == _BY_TAGS:
            self._of_index.append("tags IS NOT NULL")
        if key_ids is not None:
            listed = f"key_id IN ({', '.join('?' * len(key_ids))})"
            self._hold(listed, *key_ids, is_of_index=self._index == _INDEXED["key_id"])

    def page(
        self, beyond: str, number: int, order: str, limit: int, offset: int = 0
    ) -> Page[GenerationRow]:
        """What lies beyond a row number. Raises InvalidValue where an offset is out of reach."""
        conditions, values = [*self._of_index, beyond], [*self._values_of_index, number]
        if isinstance(self._from_us, int):
            conditions.append("rowid >= ?")
            values.append(self._at(self._from_us - LOOK_US, or_else=1))
        if isinstance(self._to_us, int):
            conditions.append("rowid < ?")
            values.append(self._at(self._to_us + LOOK_US, or_else=_ALL))
        last = self._last_looked_at(conditions, values, order)
        if last is not None:
            conditions.append("rowid >= ?" if order == _NEWEST_FIRST else "rowid <= ?")
            values.append(last)
        conditions += self._others
        values += self._values
        if isinstance(self._from_us, int):
            conditions.append("settled_at >= ?")
            values.append(self._from_us)
        if isinstance(self._to_us, int):
            conditions.append("settled_at < ?")
            values.append(self._to_us)
        # The numbers alone come out of the index in order or are sorted; whole rows are read only for the page.
        numbers = (
            f"SELECT rowid FROM generation INDEXED BY {self._index} WHERE {' AND '.join(conditions)}"  # noqa: S608
            f" ORDER BY {order} LIMIT ? OFFSET ?"
        )
        found = self._connection.rows(
            f"{SELECT} WHERE rowid IN ({numbers}) ORDER BY rowid DESC", (*values, limit, offset)
        )
        rows = [row_of(row) for row in found]
        if last is None or len(rows) == limit:
            return Page(rows=rows)
        if offset:
            raise too_far()
        return Page(rows=rows, reached=self._id(last))

    def count(self) -> int | None:
        """How many there are, if it takes no long look.

        Those that ended in the very moments around `from` and `to` may be counted or not.
        """
        conditions, values = list(self._of_index), list(self._values_of_index)
        for bound, at_us in ((">= ?", self._from_us), ("< ?", self._to_us)):
            if isinstance(at_us, int):
                conditions.append(f"{'rowid' if self._in_order else 'settled_at'} {bound}")
                values.append(self._at(at_us, or_else=at_us))
        if not self._others:
            return self._counted(conditions, values, COUNTED)
        if self._counted(conditions, values, LOOKED) is None:
            return None
        return self._counted([*conditions, *self._others], [*values, *self._values], LOOKED)

    def _hold(self, condition: str, *values: Value, is_of_index: bool) -> None:
        (self._of_index if is_of_index else self._others).append(condition)
        (self._values_of_index if is_of_index else self._values).extend(values)

    def _last_looked_at(self, conditions: list[str], values: list[Value], order: str) -> int | None:
        """The number of the row after which the look ends; None where the index says all, or the list ends before."""
        if not self._others:
            return None
        row = self._connection.row(
            f"SELECT rowid FROM generation INDEXED BY {self._index} WHERE {' AND '.join(conditions)}"  # noqa: S608
            f" ORDER BY {order} LIMIT 1 OFFSET {LOOKED}",
            tuple(values),
        )
        return None if row is None else int(row[0])

    def _id(self, number: int) -> str:
        row = self._connection.row("SELECT id FROM generation WHERE rowid = ?", (number,))
        assert row is not None
        return str(row[0])

    def _counted(self, conditions: list[str], values: list[Value], most: int) -> int | None:
        row = self._connection.row(
            f"SELECT COUNT(*) FROM (SELECT 1 FROM generation INDEXED BY {self._index}"  # noqa: S608
            f" WHERE {' AND '.join(conditions)} LIMIT {most + 1})",
            tuple(values),
        )
        assert row is not None
        return int(row[0]) if row[0] <= most else None

    def _narrowest(self, filters: Filters, key_ids: Sequence[str] | None) -> tuple[str | None, str]:
        """Of the filters that have an index the one with the fewest entries, where one has few; else the first."""
        fitting = [name for name in _INDEXED if name in filters]
        if filters.get("status") == "succeeded":
            fitting.remove("status")  # most are: it narrows nothing, and costs every settlement
        if len(fitting) > 1:
            fitting = [min(fitting, key=lambda name: self._size(name, filters[name]))]
        if fitting:
            return fitting[0], _INDEXED[fitting[0]]
        if "tag" in filters:
            return None, _BY_TAGS
        return None, _BY_ORGANIZATION if key_ids is None else _INDEXED["key_id"]

    def _size(self, name: str, value: str | int) -> int:
        condition = _FILTERS[name] if name != "status" else f"{_FILTERS[name]} AND {_OF_TROUBLE}"
        row = self._connection.row(
            f"SELECT COUNT(*) FROM (SELECT 1 FROM generation INDEXED BY {_INDEXED[name]}"  # noqa: S608
            f" WHERE organization_id = ? AND {condition} LIMIT {_FEW})",
            (self._organization_id, value),
        )
        assert row is not None
        return int(row[0])

    def _at(self, at_us: int, *, or_else: int) -> int:
        """The row number of a time; what is given instead where later rows may have earlier times."""
        if not self._in_order:
            return or_else
        return number_at(self._connection, self._organization_id, at_us)
