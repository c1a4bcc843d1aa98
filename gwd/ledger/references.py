"""References of credit: the caller's own name of a booking counts once per organization and entry type.

A row is written in the transaction of its entries; the primary key decides, whatever the code above it remembers.
"""

from typing import Final

from gwd.core.clock import iso
from gwd.core.errors import Conflict
from gwd.core.money import usd_text
from gwd.ledger.book import Book, Entry, EntryType, entry_of
from gwd.store.connection import Connection

_BOOKED: Final = (
    "SELECT e.organization_id, e.seq, e.id, e.type, e.from_account, e.to_account, e.amount_nano, e.bucket, e.lot_id,"
    " e.generation_id, e.key_id, e.workspace_id, e.reference, e.note, e.actor, e.balance_after_nano, e.created_at"
    " FROM credit_reference AS r JOIN entry AS e ON e.organization_id = r.organization_id"
    " AND e.seq BETWEEN r.seq AND r.last_seq"
    " WHERE r.organization_id = ? AND r.type = ? AND r.reference = ? ORDER BY e.seq"
)
_CLAIM: Final = "INSERT INTO credit_reference (organization_id, type, reference, seq, last_seq) VALUES (?, ?, ?, ?, ?)"


def booked(
    connection: Connection, organization_id: str, entry_type: EntryType, reference: str | None
) -> tuple[Entry, ...]:
    """What was booked under a reference before; nothing without one."""
    if reference is None:
        return ()
    rows = connection.rows(_BOOKED, (organization_id, entry_type, reference))
    return tuple(entry_of(row) for row in rows)


def require_same(
    first: tuple[Entry, ...], reference: str | None, *, signed_nano: int, bucket: str | None
) -> None:
    """Raises Conflict when a reference comes again with another amount or, where one is named, another kind."""
    booked_nano = sum(entry.signed_nano for entry in first)
    if booked_nano != signed_nano:
        raise Conflict(
            f"reference {reference} was already used for {usd_text(booked_nano)} USD on"
            f" {iso(first[0].created_at)}; use the reference of this booking",
            param="reference",
        )
    if bucket is not None and bucket != first[0].bucket:
        raise Conflict(
            f"reference {reference} was already used for {first[0].bucket} credit on"
            f" {iso(first[0].created_at)}; use the reference of this booking",
            param="reference",
        )


def claim(connection: Connection, book: Book, entry_type: EntryType, reference: str | None) -> None:
    """The entries of a book that was just saved are what its reference stands for."""
    if reference is not None:
        connection.execute(
            _CLAIM,
            (book.organization_id, entry_type, reference, book.first_seq, book.last_seq),
        )
