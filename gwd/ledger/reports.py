"""What an organization may read of its money: the balance and the lines of the ledger."""

from typing import Final, get_args

import msgspec

from gwd.core.errors import InvalidValue
from gwd.ledger import account
from gwd.ledger.book import Entry, EntryType, entry_of
from gwd.ledger.burn import LOT_KINDS, due
from gwd.ledger.chain import COLUMNS
from gwd.store.connection import Connection, Value
from gwd.store.walk import COUNTED, LOOKED, Page, too_far, unknown_place

ENTRY_TYPES: Final[tuple[str, ...]] = get_args(EntryType)
REQUEST_TYPES: Final = ("reservation", "settlement", "release", "charge")
IS_OF_CREDIT: Final = " AND ".join(f"type <> '{name}'" for name in REQUEST_TYPES)
"""As the index of the entries that are no request's says it."""
_SET_BACK: Final = (
    f"SELECT 1 FROM entry WHERE organization_id = ? AND type = 'clock' AND {IS_OF_CREDIT} LIMIT 1"  # noqa: S608
)
_TIME_OF: Final = (
    "SELECT created_at FROM entry WHERE organization_id = ? AND seq >= ? ORDER BY seq LIMIT 1"
)
_PLACE: Final = "entry-"


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """One organization's credit. Owned is free and reserved together; it is negative in debt."""

    total_credits_nano: int
    total_usage_nano: int
    owned_nano: int
    reserved_nano: int
    promotional_nano: int
    granted_nano: int
    purchased_nano: int

    @property
    def available_nano(self) -> int:
        """What new requests may still hold."""
        return self.owned_nano - self.reserved_nano


class OpenHolds(msgspec.Struct, frozen=True, kw_only=True):
    """All holds of the node that have not ended, and since when the oldest of them is open."""

    count: int
    oldest_us: int | None


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The money of all organizations of the node, by account. `free_nano` is what new requests may hold."""

    free_nano: int
    held_nano: int
    spent_nano: int


class LedgerFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries to list; `to_us` is exclusive. With a workspace only what its requests moved."""

    from_us: int | None = None
    to_us: int | None = None
    type: str | None = None
    generation_id: str | None = None
    workspace_id: str | None = None


def balance(
    connection: Connection, organization_id: str, *, now_us: int, due_us: int | None = None
) -> Balance:
    """The balance as it is once due credit has expired, by `due_us` where the caller's clock may be in doubt."""
    stored = account.stored(connection, organization_id)
    lots = account.lots_with_credit(connection, organization_id)
    remaining = dict.fromkeys(LOT_KINDS, 0)
    for lot in lots:
        remaining[lot.kind] += lot.remaining_nano
    expiring = due(lots, stored.pool_nano, account.due_by_us(now_us, due_us))
    for lot, part_nano in expiring:
        remaining[lot.kind] -= part_nano
    return Balance(
        total_credits_nano=-stored.funding_nano,
        total_usage_nano=stored.spent_nano,
        owned_nano=stored.pool_nano
        + stored.held_nano
        - sum(part_nano for _, part_nano in expiring),
        reserved_nano=stored.held_nano,
        promotional_nano=remaining["promotional"],
        granted_nano=remaining["granted"],
        purchased_nano=remaining["purchased"],
    )


def open_holds(connection: Connection) -> OpenHolds:
    """How many holds are open, and the oldest one's ledger time."""
    row = connection.row("SELECT COUNT(*), MIN(created_at) FROM reservation WHERE state = 'open'")
    assert row is not None
    return OpenHolds(count=row[0], oldest_us=row[1])


def totals(connection: Connection) -> Totals:
    """What all organizations have, hold and have spent, by the cached balances."""
    row = connection.row(
        "SELECT COALESCE(SUM(pool_nano), 0), COALESCE(SUM(held_nano), 0), COALESCE(SUM(spent_nano), 0)"
        " FROM account"
    )
    assert row is not None
    free_nano, held_nano, spent_nano = row
    return Totals(free_nano=free_nano, held_nano=held_nano, spent_nano=spent_nano)


def list_entries(
    connection: Connection,
    organization_id: str,
    wanted: LedgerFilter,
    *,
    limit: int,
    offset: int,
    after: str | None = None,
    before: str | None = None,
) -> Page[Entry]:
    """Entries, newest first; on from an entry that is named without a count.

    Raises InvalidValue for an unknown type, a place of another list, and an offset that is out of reach.
    """
    if wanted.type is not None and wanted.type not in ENTRY_TYPES:
        raise InvalidValue(f"type must be one of {', '.join(ENTRY_TYPES)}", param="type")
    last_seq = account.stored(connection, organization_id).last_seq
    found = _Search(connection, organization_id, wanted, last_seq)
    if before is not None:
        return found.newer(_place(before, last_seq, "before"), limit)
    if after is not None:
        return found.older(_place(after, last_seq, "after"), limit)
    page = found.older(last_seq + 1, limit, offset)
    return msgspec.structs.replace(page, total=found.count())


class _Search:
    """One question: the stretch of numbers that its times allow, and what else holds of its entries.

    Numbers have no gaps and ledger time does not go back: a stretch of time is a stretch of numbers, except where time
    was set back. Types of which there are few have an index; in all else a page looks at so many entries at most.
    """

    def __init__(
        self, connection: Connection, organization_id: str, wanted: LedgerFilter, last_seq: int
    ) -> None:
        self._connection = connection
        self._first, self._end = 1, last_seq + 1
        self._conditions = ["organization_id = ?"]
        self._values: list[Value] = [organization_id]
        self._index = ""
        self._is_exact = True
        """Whether no entry is looked at that is not wanted."""
        self._in_time(organization_id, wanted)
        if wanted.type is not None:
            self._of_type(wanted.type)
        if wanted.generation_id is not None:
            opened, ended, last = _seqs(connection, organization_id, wanted.generation_id)
            named = [opened, *range(ended, last + 1)]
            self._hold(f"seq IN ({', '.join('?' * len(named))})", *named)
            self._is_exact = True
        if wanted.workspace_id is not None:
            self._hold("workspace_id = ?", wanted.workspace_id)
            self._is_exact = wanted.generation_id is not None

    def older(self, than: int, limit: int, offset: int = 0) -> Page[Entry]:
        """Back from a number. Raises InvalidValue where an offset is out of reach."""
        end = min(self._end, than)
        first = self._first if self._is_exact else max(self._first, end - LOOKED)
        entries = self._entries(first, end, "seq DESC", limit, offset)
        if first == self._first or len(entries) == limit:
            return Page(rows=entries)
        if offset:
            raise too_far()
        return Page(rows=entries, reached=f"{_PLACE}{first}")

    def newer(self, than: int, limit: int) -> Page[Entry]:
        """On from a number."""
        first = max(self._first, than + 1)
        end = self._end if self._is_exact else min(self._end, first + LOOKED)
        entries = self._entries(first, end, "seq", limit, 0)[::-1]
        if end == self._end or len(entries) == limit:
            return Page(rows=entries)
        return Page(rows=entries, reached=f"{_PLACE}{end - 1}")

    def count(self) -> int | None:
        """How many there are, if it takes no long look."""
        stretch = max(0, self._end - self._first)
        if len(self._conditions) == 1:
            return stretch
        if not self._is_exact and stretch > LOOKED:
            return None
        row = self._connection.row(
            f"SELECT COUNT(*) FROM (SELECT 1 FROM entry {self._index}"  # noqa: S608
            f" WHERE {' AND '.join(self._conditions)} AND seq >= ? AND seq < ? LIMIT {COUNTED + 1})",
            (*self._values, self._first, self._end),
        )
        assert row is not None
        return int(row[0]) if row[0] <= COUNTED else None

    def _in_time(self, organization_id: str, wanted: LedgerFilter) -> None:
        if was_set_back(self._connection, organization_id):
            for condition, at_us in (
                ("created_at >= ?", wanted.from_us),
                ("created_at < ?", wanted.to_us),
            ):
                if at_us is not None:
                    self._hold(condition, at_us)
            return
        first, end = self._first, self._end
        if wanted.from_us is not None:
            self._first = seq_at(self._connection, organization_id, wanted.from_us, first, end)
        if wanted.to_us is not None:
            self._end = seq_at(self._connection, organization_id, wanted.to_us, first, end)

    def _of_type(self, name: str) -> None:
        is_exact = self._is_exact
        self._hold("type = ?", name)
        if name == "release":
            self._conditions.append("type = 'release'")  # as the index says it
            self._index = "INDEXED BY entry_of_release"
        elif name not in REQUEST_TYPES:
            self._conditions.append(IS_OF_CREDIT)
            self._index = "INDEXED BY entry_of_credit"
        self._is_exact = is_exact and bool(self._index)

    def _hold(self, condition: str, *values: Value) -> None:
        self._conditions.append(condition)
        self._values += values
        self._is_exact = False

    def _entries(self, first: int, end: int, order: str, limit: int, offset: int) -> list[Entry]:
        rows = self._connection.rows(
            f"SELECT {', '.join(COLUMNS)} FROM entry {self._index}"  # noqa: S608
            f" WHERE {' AND '.join(self._conditions)} AND seq >= ? AND seq < ?"
            f" ORDER BY {order} LIMIT ? OFFSET ?",
            (*self._values, first, end, limit, offset),
        )
        return [entry_of(row) for row in rows]


def count_entries(connection: Connection, organization_id: str | None = None) -> int:
    """How many entries there are in one organization's books, or in all."""
    row = connection.row(
        "SELECT COALESCE(SUM(last_seq), 0) FROM account WHERE ?1 IS NULL OR organization_id = ?1",
        (organization_id,),
    )
    assert row is not None
    return int(row[0])


def was_set_back(connection: Connection, organization_id: str) -> bool:
    """Whether ledger time was ever set back, so that later entries may have earlier times."""
    return connection.row(_SET_BACK, (organization_id,)) is not None


def seq_at(connection: Connection, organization_id: str, at_us: int, low: int, high: int) -> int:
    """The number of the first entry of this time or later, of those from `low` on; `high` where none before it is.

    Their times must be in order.
    """
    while low < high:
        middle = (low + high) // 2
        row = connection.row(_TIME_OF, (organization_id, middle))
        low, high = (low, middle) if row is None or row[0] >= at_us else (middle + 1, high)
    return low


def place(entry: Entry) -> str:
    """Where an entry is in the list, for `after` and `before`."""
    return f"{_PLACE}{entry.seq}"


def _place(text: str, last_seq: int, param: str) -> int:
    number = text.removeprefix(_PLACE)
    if not (number.isascii() and number.isdigit()) or len(number) > 18 or number == text:
        raise unknown_place(param)
    if not 1 <= int(number) <= last_seq:
        raise unknown_place(param)
    return int(number)


def _seqs(connection: Connection, organization_id: str, generation_id: str) -> tuple[int, int, int]:
    """Where a generation's entries are: its reservation, and from its end to its last charge. 0 is nowhere."""
    row = connection.row(
        "SELECT opened_seq, COALESCE(ended_seq, 0), COALESCE(last_seq, 0) FROM reservation"
        " WHERE generation_id = ? AND organization_id = ?",
        (generation_id, organization_id),
    )
    if row is None:
        return (0, 0, 0)
    opened_seq, ended_seq, last_seq = row
    return opened_seq, ended_seq, last_seq
