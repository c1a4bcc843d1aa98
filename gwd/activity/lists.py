"""The list of generations: newest first, in the order in which they ended, by offset or on from one that is named.

Row numbers only grow, and with them the time at which generations ended (ledger time; those that end within the same
moments may change places): a stretch of time is a stretch of numbers, found by halving, except where ledger time was
set back. So every question is asked of
one index that ends in the row number, and reads no more of it than the page and, for the count, what matches.
"""

from collections.abc import Sequence
from typing import Final

from gwd import ledger
from gwd.activity.row import SELECT, GenerationRow, row_of
from gwd.store.connection import Connection, Value
from gwd.store.walk import place

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
    "user": "generation_by_user",
    "key_id": "generation_by_key",
    "model": "generation_by_model",
    "status": "generation_by_status",
}
_OF_TROUBLE: Final = "status <> 'succeeded'"  # as the index says it
_BY_TAGS: Final = "generation_by_tags"  # of all that bear any
_BY_ORGANIZATION: Final = "generation_by_organization"
LOOK_US: Final = 3_600_000_000  # how far out of order ends may be; in truth it is milliseconds
_FEW: Final = 2_000
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
) -> tuple[list[GenerationRow], int | None]:
    """`filters` names are those of GET /generations; `from` and `to` are the microseconds between which they ended.

    `key_ids` limits the list to these keys: what a member may see. A list that is walked is not
    counted, nor is one without `count`.
    """
    found = _Search(connection, organization_id, filters, key_ids)
    if before is not None:
        number = place(connection, "generation", organization_id, before, "before")
        return found.rows("rowid > ?", number, "rowid", limit, 0)[::-1], None
    if after is not None:
        number = place(connection, "generation", organization_id, after, "after")
        return found.rows("rowid < ?", number, "rowid DESC", limit, 0), None
    total = found.count() if count else None
    return found.rows("rowid > ?", 0, "rowid DESC", limit, offset), total


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
        self._conditions = ["organization_id = ?"]
        self._values: list[Value] = [organization_id]
        for name, condition in _FILTERS.items():
            if name in filters:
                self._conditions.append(condition)
                self._values.append(filters[name])
        self._succeeded = filters.get("status") == "succeeded"
        if "status" in filters and not self._succeeded:
            self._conditions.append(_OF_TROUBLE)
        if key_ids is not None:
            self._conditions.append(f"key_id IN ({', '.join('?' * len(key_ids))})")
            self._values += key_ids
        self._from_us, self._to_us = filters.get("from"), filters.get("to")
        self._in_order = not ledger.was_set_back(connection, organization_id)
        self._index = self._narrowest(filters, key_ids)

    def rows(
        self, beyond: str, number: int, order: str, limit: int, offset: int
    ) -> list[GenerationRow]:
        conditions, values = [*self._conditions, beyond], [*self._values, number]
        if isinstance(self._from_us, int):
            conditions += ["rowid >= ?", "settled_at >= ?"]
            values += [self._at(self._from_us - LOOK_US, or_else=1), self._from_us]
        if isinstance(self._to_us, int):
            conditions += ["rowid < ?", "settled_at < ?"]
            values += [self._at(self._to_us + LOOK_US, or_else=_ALL), self._to_us]
        # The numbers alone come out of the index in order or are sorted; whole rows are read only for the page.
        numbers = (
            f"SELECT rowid FROM generation INDEXED BY {self._index} WHERE {' AND '.join(conditions)}"  # noqa: S608
            f" ORDER BY {order} LIMIT ? OFFSET ?"
        )
        found = self._connection.rows(
            f"{SELECT} WHERE rowid IN ({numbers}) ORDER BY {order}", (*values, limit, offset)
        )
        return [row_of(row) for row in found]

    def count(self) -> int:
        """How many there are; those that ended in the very moments around `from` and `to` may be counted or not."""
        if not self._succeeded:
            return self._counted(self._index, self._conditions, self._values)
        # No index says of a generation that it succeeded: those that did not are taken off.
        place = self._conditions.index(_FILTERS["status"])
        conditions = [one for one in self._conditions if one != _FILTERS["status"]]
        values = self._values[:place] + self._values[place + 1 :]
        trouble = [*conditions, _OF_TROUBLE]
        return self._counted(self._index, conditions, values) - self._counted(
            _INDEXED["status"], trouble, values
        )

    def _counted(self, index: str, wanted: list[str], given: list[Value]) -> int:
        conditions, values = list(wanted), list(given)
        if isinstance(self._from_us, int):
            conditions.append("rowid >= ?" if self._in_order else "settled_at >= ?")
            values.append(self._at(self._from_us, or_else=self._from_us))
        if isinstance(self._to_us, int):
            conditions.append("rowid < ?" if self._in_order else "settled_at < ?")
            values.append(self._at(self._to_us, or_else=self._to_us))
        row = self._connection.row(
            f"SELECT COUNT(*) FROM generation INDEXED BY {index} WHERE {' AND '.join(conditions)}",  # noqa: S608
            tuple(values),
        )
        assert row is not None
        return int(row[0])

    def _narrowest(self, filters: Filters, key_ids: Sequence[str] | None) -> str:
        """Of the indexes that fit the one with the fewest entries, where one has few; else the first."""
        fitting = [name for name in _INDEXED if name in filters]
        if self._succeeded:
            fitting.remove("status")  # most are: it narrows nothing, and costs every settlement
        if len(fitting) > 1:
            fitting = [min(fitting, key=lambda name: self._size(name, filters[name]))]
        if fitting:
            return _INDEXED[fitting[0]]
        if "tag" in filters:
            return _BY_TAGS
        return _BY_ORGANIZATION if key_ids is None else _INDEXED["key_id"]

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
