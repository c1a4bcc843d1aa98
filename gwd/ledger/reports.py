"""What an organization may read of its money: the balance and the lines of the ledger."""

from typing import Any, Final, get_args

import msgspec

from gwd.core.clock import iso
from gwd.core.errors import InvalidValue
from gwd.core.money import usd_json
from gwd.ledger import account
from gwd.ledger.book import Entry, EntryType, entry_of
from gwd.ledger.burn import LOT_KINDS, due
from gwd.ledger.tables import EntryRow
from gwd.store.connection import Connection

ENTRY_TYPES: Final[tuple[str, ...]] = get_args(EntryType)


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


class LedgerFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries to list; `to_us` is exclusive. With a workspace only what its requests moved."""

    from_us: int | None = None
    to_us: int | None = None
    type: str | None = None
    generation_id: str | None = None
    workspace_id: str | None = None


def balance(connection: Connection, organization_id: str, *, now_us: int) -> Balance:
    """The balance as it is once the credit that is due by now has expired."""
    stored = account.stored(connection, organization_id)
    lots = account.lots_with_credit(connection, organization_id)
    remaining = dict.fromkeys(LOT_KINDS, 0)
    for lot in lots:
        remaining[lot.kind] += lot.remaining_nano
    expiring = due(lots, stored.pool_nano, stored.time_us(now_us))
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


def balance_record(credit: Balance) -> dict[str, Any]:
    """The `data` of GET /credits."""
    return {
        "total_credits": usd_json(credit.total_credits_nano),
        "total_usage": usd_json(credit.total_usage_nano),
        "balance": usd_json(credit.owned_nano),
        "reserved": usd_json(credit.reserved_nano),
        "available": usd_json(credit.available_nano),
        "promotional": usd_json(credit.promotional_nano),
        "granted": usd_json(credit.granted_nano),
        "purchased": usd_json(credit.purchased_nano),
        "currency": "USD",
    }


def open_holds(connection: Connection) -> OpenHolds:
    """How many holds are open, and the oldest one's ledger time."""
    row = connection.row("SELECT COUNT(*), MIN(created_at) FROM reservation WHERE state = 'open'")
    assert row is not None
    return OpenHolds(count=row[0], oldest_us=row[1])


def list_entries(
    connection: Connection,
    organization_id: str,
    wanted: LedgerFilter,
    *,
    limit: int,
    offset: int,
) -> tuple[list[Entry], int]:
    """Entries, newest first, and how many there are in all. Raises InvalidValue for an unknown type."""
    if wanted.type is not None and wanted.type not in ENTRY_TYPES:
        raise InvalidValue(f"type must be one of {', '.join(ENTRY_TYPES)}", param="type")
    query = EntryRow.select(*(getattr(EntryRow, name) for name in Entry.__struct_fields__)).where(
        EntryRow.organization_id == organization_id
    )
    if wanted.from_us is not None:
        query = query.where(EntryRow.created_at >= wanted.from_us)
    if wanted.to_us is not None:
        query = query.where(EntryRow.created_at < wanted.to_us)
    if wanted.type is not None:
        query = query.where(EntryRow.type == wanted.type)
    if wanted.generation_id is not None:
        opened, ended, last = _seqs(connection, organization_id, wanted.generation_id)
        query = query.where((EntryRow.seq == opened) | EntryRow.seq.between(ended, last))
    if wanted.workspace_id is not None:
        query = query.where(EntryRow.workspace_id == wanted.workspace_id)
    page = query.order_by(EntryRow.seq.desc()).limit(limit).offset(offset).tuples()
    return [entry_of(row) for row in connection.run(page)], connection.count(query)


def _seqs(connection: Connection, organization_id: str, generation_id: str) -> tuple[int, int, int]:
    """Where a generation's entries are: its reservation, and from its end to its last charge. 0 is nowhere."""
    row = connection.row(
        "SELECT opened_seq, COALESCE(ended_seq, 0), COALESCE(last_seq, 0) FROM reservation"
        " WHERE generation_id = ? AND organization_id = ?",
        (generation_id, organization_id),
    )
    return (0, 0, 0) if row is None else (row[0], row[1], row[2])


def entry_record(entry: Entry) -> dict[str, Any]:
    """One line of GET /credits/ledger: `amount` is how the free balance changed, `balance_after` what was free."""
    return {
        "id": entry.id,
        "type": entry.type,
        "bucket": entry.bucket,
        "amount": usd_json(entry.signed_nano),
        "balance_after": usd_json(entry.balance_after_nano),
        "generation_id": entry.generation_id,
        "key_id": entry.key_id,
        "workspace_id": entry.workspace_id,
        "reference": entry.reference,
        "note": entry.note,
        "created_at": iso(entry.created_at),
    }


def refund_record(entries: tuple[Entry, ...]) -> dict[str, Any]:
    """One refund as one line, whatever number of lots it came from: the last entry with the whole amount."""
    record = entry_record(entries[-1])
    record["amount"] = usd_json(sum(entry.signed_nano for entry in entries))
    return record
