"""Credit coming and going outside of requests: accounts, purchases and grants, refunds, expiry."""

from typing import Final, Literal

import msgspec

from gwd.core.errors import InvalidValue
from gwd.core.ids import mint
from gwd.core.money import usd_text
from gwd.ledger import account, references
from gwd.ledger.book import Book, Entry
from gwd.ledger.burn import LotKind, burn, due, next_expiry_us, takeable_nano
from gwd.store.connection import Connection


class NewCredit(msgspec.Struct, frozen=True, kw_only=True):
    """A lot to add. `reference` is the caller's own name of the booking: the same one never counts twice."""

    kind: LotKind
    type: Literal["purchase", "grant", "adjustment"]
    amount_nano: int
    expires_at_us: int | None = None
    reference: str | None = None
    note: str | None = None
    actor: str | None = None


_ADD_LOT: Final = (
    "INSERT INTO lot (id, organization_id, kind, amount_nano, remaining_nano, debt_paid_nano, expires_at,"
    " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_SET_EXPIRY: Final = "UPDATE account SET next_expiry_at = ? WHERE organization_id = ?"


def open_account(connection: Connection, organization_id: str, *, now_us: int) -> None:
    """Create the account of a new organization, with nothing in it."""
    connection.execute(
        "INSERT INTO account (organization_id, last_at) VALUES (?, ?)", (organization_id, now_us)
    )


def add_credit(
    connection: Connection, organization_id: str, credit: NewCredit, *, now_us: int
) -> Entry:
    """Add a lot; debt is paid from it first. A booking whose reference is known gives back the first entry.

    Raises Conflict when that reference came with another amount or kind, InvalidValue for no amount or a past expiry.
    """
    first = references.booked(connection, organization_id, credit.type, credit.reference)
    if first:
        references.require_same(
            first, credit.reference, signed_nano=credit.amount_nano, bucket=credit.kind
        )
        return first[0]
    if credit.amount_nano <= 0:
        raise InvalidValue("amount must be more than 0 USD", param="amount")
    book = Book(connection, organization_id, now_us)
    if credit.expires_at_us is not None and credit.expires_at_us <= book.at_us:
        raise InvalidValue(
            "expires_at must lie in the future; leave it out for credit that stays",
            param="expires_at",
        )
    paid_nano = min(book.debt_nano, credit.amount_nano)
    remaining_nano = credit.amount_nano - paid_nano
    book.debt_nano -= paid_nano
    if credit.expires_at_us is not None and remaining_nano > 0:
        known = (book.next_expiry_at, credit.expires_at_us)
        book.next_expiry_at = min(at for at in known if at is not None)
    lot_id = mint("lot_")
    book.move(
        credit.type,
        credit.amount_nano,
        bucket=credit.kind,
        lot_id=lot_id,
        reference=credit.reference,
        note=credit.note,
        actor=credit.actor,
        seal=None if credit.expires_at_us is None else str(credit.expires_at_us),
    )
    book.save(connection)
    references.claim(connection, book, credit.type, credit.reference)
    connection.execute(
        _ADD_LOT,
        (
            lot_id,
            organization_id,
            credit.kind,
            credit.amount_nano,
            remaining_nano,
            paid_nano,
            credit.expires_at_us,
            book.at_us,
        ),
    )
    account.invalidate(connection, organization_id)
    return book.entries()[0]


def refund(
    connection: Connection,
    organization_id: str,
    *,
    amount_nano: int,
    reference: str | None = None,
    note: str | None = None,
    actor: str | None = None,
    now_us: int,
    due_us: int | None = None,
) -> tuple[Entry, ...]:
    """Pay back purchased credit, one entry for each lot it comes from. A known reference gives back what it booked.

    Raises InvalidValue when more is asked than purchased credit that is free.
    """
    return _take_back(
        connection,
        organization_id,
        "refund",
        amount_nano,
        kind="purchased",
        reference=reference,
        note=note,
        actor=actor,
        now_us=now_us,
        due_us=due_us,
    )


def adjust_down(
    connection: Connection,
    organization_id: str,
    *,
    amount_nano: int,
    kind: LotKind | None = None,
    reference: str | None = None,
    note: str,
    actor: str | None = None,
    now_us: int,
    due_us: int | None = None,
) -> tuple[Entry, ...]:
    """Take credit back to correct a booking, of one kind or in the order in which lots pay; one entry for each lot.

    Raises InvalidValue when more is asked than is free.
    """
    return _take_back(
        connection,
        organization_id,
        "adjustment",
        amount_nano,
        kind=kind,
        reference=reference,
        note=note,
        actor=actor,
        now_us=now_us,
        due_us=due_us,
    )


def _take_back(
    connection: Connection,
    organization_id: str,
    entry_type: Literal["refund", "adjustment"],
    amount_nano: int,
    *,
    kind: LotKind | None,
    reference: str | None,
    note: str | None,
    actor: str | None,
    now_us: int,
    due_us: int | None,
) -> tuple[Entry, ...]:
    first = references.booked(connection, organization_id, entry_type, reference)
    if first:
        references.require_same(first, reference, signed_nano=-amount_nano, bucket=kind)
        return first
    if amount_nano <= 0:
        raise InvalidValue("amount must be more than 0 USD", param="amount")
    expire(connection, organization_id, now_us=now_us, due_us=due_us)
    book = Book(connection, organization_id, now_us)
    lots = account.lots_with_credit(connection, organization_id)
    takeable = [lot for lot in lots if kind is None or lot.kind == kind]
    most_nano = takeable_nano(takeable, book.free_nano)
    if amount_nano > most_nano:
        raise InvalidValue(
            f"amount can be at most {usd_text(most_nano)} USD: only {_named(kind)}credit that is neither spent nor"
            f" reserved can be {'refunded' if entry_type == 'refund' else 'taken back'}",
            param="amount",
            metadata={"refundable": usd_text(most_nano)},
        )
    parts, _ = burn(takeable, amount_nano)
    for lot, part_nano in parts:
        book.move(
            entry_type,
            part_nano,
            back=entry_type == "adjustment",
            bucket=lot.kind,
            lot_id=lot.id,
            reference=reference,
            note=note,
            actor=actor,
        )
    account.take(connection, organization_id, lots, parts)
    book.save(connection)
    references.claim(connection, book, entry_type, reference)
    return book.entries()


def _named(kind: LotKind | None) -> str:
    return "" if kind is None else f"{kind} "


def expire(
    connection: Connection, organization_id: str, *, now_us: int, due_us: int | None = None
) -> tuple[Entry, ...]:
    """Take back credit whose time is over, as far as it is free; the rest is tried again at the next call.

    Its time is over by `due_us`, which a clock in doubt keeps behind `now_us`, and never by ledger time: entries that
    a clock too far ahead has left behind do not make it later than it is.
    """
    book = Book(connection, organization_id, now_us)
    by_us = account.due_by_us(now_us, due_us)
    if book.next_expiry_at is None or book.next_expiry_at > by_us:
        return ()
    lots = account.lots_with_credit(connection, organization_id)
    parts = due(lots, book.free_nano, by_us)
    taken = {lot.id: part_nano for lot, part_nano in parts}
    for lot, part_nano in parts:
        book.move("expiry", part_nano, bucket=lot.kind, lot_id=lot.id)
    next_expiry_at = next_expiry_us(
        [lot for lot in lots if taken.get(lot.id, 0) < lot.remaining_nano]
    )
    if parts:
        account.take(connection, organization_id, lots, parts)
        book.next_expiry_at = next_expiry_at
        book.save(connection)
    elif next_expiry_at != book.next_expiry_at:
        connection.execute(_SET_EXPIRY, (next_expiry_at, organization_id))
        account.invalidate(connection, organization_id)
    return book.entries()


def organizations_with_due_credit(connection: Connection, *, now_us: int) -> list[str]:
    """Whose credit the sweep should look at."""
    return [
        row[0]
        for row in connection.rows(
            "SELECT organization_id FROM account WHERE next_expiry_at <= ? AND pool_nano > 0",
            (now_us,),
        )
    ]


def ledger_time_us(connection: Connection, organization_id: str, *, now_us: int) -> int:
    """The time an entry written now would carry: never before the organization's last one.

    Limits and budgets look at this time, so that a clock set back cannot open a closed day again.
    """
    return account.stored(connection, organization_id).time_us(now_us)


def last_time_us(connection: Connection) -> int | None:
    """The latest ledger time of all organizations; None while nobody has an entry."""
    row = connection.row("SELECT MAX(last_at) FROM account WHERE last_seq > 0")
    return None if row is None else row[0]


def free_nano(
    connection: Connection, organization_id: str, *, now_us: int, due_us: int | None = None
) -> int:
    """What a new hold could take at most, once due credit has expired; negative in debt. Reads only."""
    stored = account.stored(connection, organization_id)
    by_us = account.due_by_us(now_us, due_us)
    if stored.next_expiry_at_us is None or stored.next_expiry_at_us > by_us:
        return stored.pool_nano
    lots = account.lots_with_credit(connection, organization_id)
    return stored.pool_nano - sum(part for _, part in due(lots, stored.pool_nano, by_us))
