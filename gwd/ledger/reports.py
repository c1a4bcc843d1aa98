"""What an organization may read of its money: the balance and the lines of the ledger."""

from typing import Any, Final, get_args

import msgspec
import peewee

from gwd.core.errors import InvalidValue
from gwd.ledger import account
from gwd.ledger.book import Entry, EntryType, entry_of
from gwd.ledger.burn import LOT_KINDS, due
from gwd.ledger.tables import EntryRow
from gwd.store.connection import Connection
from gwd.store.walk import unknown_place

ENTRY_TYPES: Final[tuple[str, ...]] = get_args(EntryType)
REQUEST_TYPES: Final = ("reservation", "settlement", "release", "charge")
IS_OF_CREDIT: Final = " AND ".join(f"type <> '{name}'" for name in REQUEST_TYPES)
"""As the index of the entries that are no request's says it."""
_OF_CREDIT: Final = peewee.SQL(IS_OF_CREDIT)
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
) -> tuple[list[Entry], int | None]:
    """Entries, newest first, and how many there are in all; on from an entry that is named without a count.

    Raises InvalidValue for an unknown type.
    """
    if wanted.type is not None and wanted.type not in ENTRY_TYPES:
        raise InvalidValue(f"type must be one of {', '.join(ENTRY_TYPES)}", param="type")
    last_seq = account.stored(connection, organization_id).last_seq
    # Numbers have no gaps and ledger time does not go back: a stretch of time is a stretch of numbers.
    in_order = not was_set_back(connection, organization_id)
    first, end = 1, last_seq + 1
    if in_order and wanted.from_us is not None:
        first = seq_at(connection, organization_id, wanted.from_us, 1, end)
    if in_order and wanted.to_us is not None:
        end = seq_at(connection, organization_id, wanted.to_us, 1, end)
    query = EntryRow.select(*(getattr(EntryRow, name) for name in Entry.__struct_fields__)).where(
        (EntryRow.organization_id == organization_id) & (EntryRow.seq >= first)
    )
    query = query.where(EntryRow.seq < end)
    if not in_order and wanted.from_us is not None:
        query = query.where(EntryRow.created_at >= wanted.from_us)
    if not in_order and wanted.to_us is not None:
        query = query.where(EntryRow.created_at < wanted.to_us)
    if wanted.type is not None:
        query = query.where(EntryRow.type == wanted.type)
        if wanted.type not in REQUEST_TYPES:
            query = query.where(_OF_CREDIT)
    if wanted.generation_id is not None:
        opened, ended, last = _seqs(connection, organization_id, wanted.generation_id)
        query = query.where((EntryRow.seq == opened) | EntryRow.seq.between(ended, last))
    if wanted.workspace_id is not None:
        query = query.where(EntryRow.workspace_id == wanted.workspace_id)
    if before is not None:
        newer = query.where(EntryRow.seq > _place(before, last_seq, "before"))
        return _entries(connection, newer.order_by(EntryRow.seq).limit(limit))[::-1], None
    if after is not None:
        older = query.where(EntryRow.seq < _place(after, last_seq, "after"))
        return _entries(connection, older.order_by(EntryRow.seq.desc()).limit(limit)), None
    entries = _entries(connection, query.order_by(EntryRow.seq.desc()).limit(limit).offset(offset))
    is_whole = in_order and wanted.type is wanted.generation_id is wanted.workspace_id is None
    return entries, max(0, end - first) if is_whole else connection.count(query)


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


def _entries(connection: Connection, query: Any) -> list[Entry]:
    return [entry_of(row) for row in connection.run(query.tuples())]


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
