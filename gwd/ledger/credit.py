"""Credit coming and going outside of requests: accounts, purchases and grants, refunds, expiry."""

from typing import Final, Literal

import msgspec

from gwd.core.errors import Conflict, InvalidValue, NotFound
from gwd.core.ids import mint
from gwd.core.money import usd_text
from gwd.ledger.book import LOTS_WITH_CREDIT, Book, Entry, entry_of
from gwd.ledger.burn import Lot, LotKind, burn, due, next_expiry_us, refundable_nano
from gwd.store.connection import Connection


class NewCredit(msgspec.Struct, frozen=True, kw_only=True):
    """A lot to add. `reference` of a purchase is the payment's own id: the same one never counts twice."""

    kind: LotKind
    type: Literal["purchase", "grant"]
    amount_nano: int
    expires_at_us: int | None = None
    reference: str | None = None
    note: str | None = None
    actor: str | None = None


_ADD_LOT: Final = (
    "INSERT INTO lot (id, organization_id, kind, amount_nano, remaining_nano, debt_paid_nano, expires_at,"
    " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_TAKE: Final = "UPDATE lot SET remaining_nano = remaining_nano - ? WHERE id = ?"
_SET_EXPIRY: Final = "UPDATE account SET next_expiry_at = ? WHERE organization_id = ?"
_FREE: Final = "SELECT pool_nano, last_at, next_expiry_at FROM account WHERE organization_id = ?"
_LAST: Final = "SELECT last_at FROM account WHERE organization_id = ?"
_PURCHASE: Final = (
    "SELECT organization_id, seq, id, type, from_account, to_account, amount_nano, bucket, lot_id, generation_id,"
    " key_id, workspace_id, reference, note, actor, balance_after_nano, created_at"
    " FROM entry WHERE organization_id = ? AND type = 'purchase' AND reference = ?"
)


def open_account(connection: Connection, organization_id: str, *, now_us: int) -> None:
    """Give a new organization its empty account."""
    connection.execute(
        "INSERT INTO account (organization_id, last_at) VALUES (?, ?)", (organization_id, now_us)
    )


def add_credit(
    connection: Connection, organization_id: str, credit: NewCredit, *, now_us: int
) -> Entry:
    """Add a lot; debt is paid from it first. A purchase whose reference is known gives back the first entry.

    Raises Conflict when that reference came with another amount, InvalidValue for no amount or a past expiry.
    """
    if credit.type == "purchase" and credit.reference is not None:
        row = connection.row(_PURCHASE, (organization_id, credit.reference))
        if row is not None:
            return _same_purchase(entry_of(row), credit)
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
    )
    book.save(connection)
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
) -> tuple[Entry, ...]:
    """Pay back purchased credit, one entry for each lot it comes from.

    Raises InvalidValue when more is asked than purchased credit that is free.
    """
    if amount_nano <= 0:
        raise InvalidValue("amount must be more than 0 USD", param="amount")
    expire(connection, organization_id, now_us=now_us)
    book = Book(connection, organization_id, now_us)
    lots = _lots(connection, organization_id)
    most_nano = refundable_nano(lots, book.free_nano)
    if amount_nano > most_nano:
        raise InvalidValue(
            f"amount can be at most {usd_text(most_nano)} USD: only purchased credit that is neither spent nor"
            " reserved can be refunded",
            param="amount",
            metadata={"refundable": usd_text(most_nano)},
        )
    parts, _ = burn([lot for lot in lots if lot.kind == "purchased"], amount_nano)
    for lot, part_nano in parts:
        book.move(
            "refund",
            part_nano,
            bucket=lot.kind,
            lot_id=lot.id,
            reference=reference,
            note=note,
            actor=actor,
        )
        connection.execute(_TAKE, (part_nano, lot.id))
    book.save(connection)
    return book.entries()


def expire(connection: Connection, organization_id: str, *, now_us: int) -> tuple[Entry, ...]:
    """Take back credit whose time is over, as far as it is free; the rest is tried again at the next call."""
    book = Book(connection, organization_id, now_us)
    if book.next_expiry_at is None or book.next_expiry_at > book.at_us:
        return ()
    lots = _lots(connection, organization_id)
    parts = due(lots, book.free_nano, book.at_us)
    taken = {lot.id: part_nano for lot, part_nano in parts}
    for lot, part_nano in parts:
        book.move("expiry", part_nano, bucket=lot.kind, lot_id=lot.id)
        connection.execute(_TAKE, (part_nano, lot.id))
    next_expiry_at = next_expiry_us(
        [lot for lot in lots if taken.get(lot.id, 0) < lot.remaining_nano]
    )
    if parts:
        book.next_expiry_at = next_expiry_at
        book.save(connection)
    elif next_expiry_at != book.next_expiry_at:
        connection.execute(_SET_EXPIRY, (next_expiry_at, organization_id))
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
    row = connection.row(_LAST, (organization_id,))
    return now_us if row is None else max(now_us, row[0])


def free_nano(connection: Connection, organization_id: str, *, now_us: int) -> int:
    """What a new hold could take at most, once due credit has expired; negative in debt. Reads only."""
    row = connection.row(_FREE, (organization_id,))
    if row is None:
        raise NotFound("no such organization")
    pool_nano, last_at, next_expiry_at = row
    at_us = max(now_us, last_at)
    if next_expiry_at is None or next_expiry_at > at_us:
        return int(pool_nano)
    expiring = due(_lots(connection, organization_id), pool_nano, at_us)
    return int(pool_nano) - sum(part_nano for _, part_nano in expiring)


def _lots(connection: Connection, organization_id: str) -> list[Lot]:
    return [Lot(*row) for row in connection.rows(LOTS_WITH_CREDIT, (organization_id,))]


def _same_purchase(first: Entry, credit: NewCredit) -> Entry:
    if first.amount_nano != credit.amount_nano:
        raise Conflict(
            f"reference {credit.reference} was already used for {usd_text(first.amount_nano)} USD;"
            " use the reference of this payment",
            param="reference",
        )
    return first
