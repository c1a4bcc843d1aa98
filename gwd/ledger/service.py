"""Holds and what becomes of them: reserve, settle, release; the path every paid request takes twice.

Each function runs inside its caller's transaction on the writer. A generation's hold resolves exactly once: the
UNIQUE index `one_end` decides, whatever the code above it remembers.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from gwd.core.errors import GenerationNotFound
from gwd.ledger import account
from gwd.ledger.account import LedgerBroken
from gwd.ledger.book import Book
from gwd.ledger.burn import Lot, burn
from gwd.ledger.credit import expire
from gwd.store import Connection, cached, maintains_cache
from gwd.store.connection import Row


class NewReservation(msgspec.Struct, frozen=True, kw_only=True):
    """A hold to take. `context` is whatever recovery needs to settle it after a crash; the ledger only keeps it."""

    generation_id: str
    organization_id: str
    workspace_id: str | None
    key_id: str
    family_id: str
    amount_nano: int
    boot_id: str
    context: bytes


class OpenReservation(msgspec.Struct, frozen=True, kw_only=True):
    """A hold that is neither settled nor released, with the last checkpoint of its progress."""

    generation_id: str
    organization_id: str
    workspace_id: str | None
    key_id: str
    family_id: str
    amount_nano: int
    boot_id: str
    context: bytes | None
    progress: bytes | None
    created_at_us: int


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """How a hold ended. `first` is false when it had ended before: then nothing was changed now.

    `balance_after_nano` is what was free afterwards; `owned_after_nano` adds what other requests hold;
    `at_us` is ledger time, the time that spend and the generation's record must use.
    """

    generation_id: str
    organization_id: str
    first: bool
    hold_nano: int
    charged_nano: int
    balance_after_nano: int
    owned_after_nano: int
    at_us: int


_HOLD: Final = (
    "INSERT INTO reservation (generation_id, organization_id, workspace_id, key_id, family_id, amount_nano,"
    " state, boot_id, created_at, opened_seq) VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?)"
)
_KEEP_CONTEXT: Final = "INSERT INTO reservation_context (generation_id, context) VALUES (?, ?)"
_DROP_CONTEXT: Final = "DELETE FROM reservation_context WHERE generation_id = ?"
_HELD: Final = (
    "SELECT organization_id, workspace_id, key_id, amount_nano, state FROM reservation"
    " WHERE generation_id = ?"
)
_CLOSE: Final = (
    "UPDATE reservation SET state = 'closed', boot_id = '', closed_at = ?, ended_seq = ?, last_seq = ?"
    " WHERE generation_id = ? AND state = 'open'"
)
_ENDED: Final = (
    "SELECT COALESCE(SUM(e.amount_nano) FILTER (WHERE e.type = 'charge'), 0), MAX(e.created_at), MAX(e.seq)"
    " FROM reservation AS r JOIN entry AS e USING (organization_id)"
    " WHERE r.generation_id = ? AND e.seq BETWEEN r.ended_seq AND r.last_seq"
)
_CHECKPOINT: Final = "UPDATE reservation_context SET progress = ? WHERE generation_id = ?"
_RUNNING: Final = (
    "SELECT generation_id, organization_id, workspace_id, key_id, family_id, amount_nano, boot_id, c.context,"
    " c.progress, created_at FROM reservation LEFT JOIN reservation_context AS c USING (generation_id)"
    " WHERE state = 'open'"
)
_OPEN: Final = f"{_RUNNING} AND generation_id = ?"
_ALL_OPEN: Final = (
    f"{_RUNNING} AND boot_id IS NOT ? AND (? IS NULL OR created_at < ?) ORDER BY created_at"
)


class Held(NamedTuple):
    """What a reservation says of its generation."""

    organization_id: str
    workspace_id: str | None
    key_id: str
    amount_nano: int
    state: str


def reserve(
    connection: Connection, hold: NewReservation, *, now_us: int, due_us: int | None = None
) -> int | None:
    """Hold `amount_nano` for a generation; gives back what is free afterwards, or None when too little is.

    Credit that is due expires first. A refused hold changes nothing else. Raises LedgerBroken for books that do not
    add up, before anybody is called on their strength.
    """
    book = Book(connection, hold.organization_id, now_us)
    by_us = account.due_by_us(now_us, due_us)
    if book.next_expiry_at is not None and book.next_expiry_at <= by_us:
        expire(connection, hold.organization_id, now_us=now_us, due_us=by_us)
        book = Book(connection, hold.organization_id, now_us)
    _lots_that_add_up(connection, book)
    book.move(
        "reservation",
        hold.amount_nano,
        generation_id=hold.generation_id,
        key_id=hold.key_id,
        workspace_id=hold.workspace_id,
    )
    if not book.save_if_free(connection, hold.amount_nano):
        return None
    held = Held(hold.organization_id, hold.workspace_id, hold.key_id, hold.amount_nano, "open")
    _held.put(connection, held, hold.generation_id)
    connection.execute(
        _HOLD,
        (
            hold.generation_id,
            hold.organization_id,
            hold.workspace_id,
            hold.key_id,
            hold.family_id,
            hold.amount_nano,
            hold.boot_id,
            book.at_us,
            book.last_seq,
        ),
    )
    connection.execute(_KEEP_CONTEXT, (hold.generation_id, hold.context))
    return book.free_nano


def settle(
    connection: Connection,
    generation_id: str,
    cost_nano: int,
    *,
    now_us: int,
    seal: str | None = None,
) -> Settlement:
    """Give back the whole hold and charge the exact cost, lot by lot; what exceeds all lots becomes debt.

    `seal` is the digest of the record that goes with it, which the entry vouches for.

    Never fails for lack of funds. A generation that was settled or released before keeps its first result.
    Raises GenerationNotFound when it never held anything.
    """
    assert cost_nano >= 0
    held = _held.peek(connection, generation_id) or _held.find(connection, generation_id)
    if held is None:
        raise GenerationNotFound(f"generation {generation_id} holds no credit")
    organization_id, workspace_id, key_id, hold_nano, state = held
    if state != "open":
        return _ended(connection, generation_id, organization_id, hold_nano)
    book = Book(connection, organization_id, now_us)
    owned_nano = book.owned_nano
    book.move(
        "settlement",
        hold_nano,
        generation_id=generation_id,
        key_id=key_id,
        workspace_id=workspace_id,
        seal=seal,
    )
    if cost_nano > 0:
        _charge(connection, book, generation_id, workspace_id, key_id, cost_nano)
    _close(connection, book, generation_id)
    if book.owned_nano != owned_nano - cost_nano:
        raise LedgerBroken(f"settling {generation_id} did not take exactly its cost")
    return Settlement(
        generation_id=generation_id,
        organization_id=organization_id,
        first=True,
        hold_nano=hold_nano,
        charged_nano=cost_nano,
        balance_after_nano=book.free_nano,
        owned_after_nano=book.owned_nano,
        at_us=book.at_us,
    )


def release(
    connection: Connection, generation_id: str, *, now_us: int, seal: str | None = None
) -> Settlement | None:
    """Give back the whole hold and charge nothing. None when the generation never held anything.

    A generation that was settled or released before keeps its first result.
    """
    held = _held.peek(connection, generation_id) or _held.find(connection, generation_id)
    if held is None:
        return None
    organization_id, workspace_id, key_id, hold_nano, state = held
    if state != "open":
        return _ended(connection, generation_id, organization_id, hold_nano)
    book = Book(connection, organization_id, now_us)
    book.move(
        "release",
        hold_nano,
        generation_id=generation_id,
        key_id=key_id,
        workspace_id=workspace_id,
        seal=seal,
    )
    _close(connection, book, generation_id)
    return Settlement(
        generation_id=generation_id,
        organization_id=organization_id,
        first=True,
        hold_nano=hold_nano,
        charged_nano=0,
        balance_after_nano=book.free_nano,
        owned_after_nano=book.owned_nano,
        at_us=book.at_us,
    )


@maintains_cache
def checkpoint(connection: Connection, progress: Iterable[tuple[str, bytes]]) -> None:
    """Keep the progress of running generations, so that a crash can be settled for what was delivered."""
    connection.execute_many(_CHECKPOINT, [(body, name) for name, body in progress])


def open_reservation(connection: Connection, generation_id: str) -> OpenReservation | None:
    """The open hold of one generation."""
    row = connection.row(_OPEN, (generation_id,))
    return None if row is None else _opened(row)


def open_reservations(
    connection: Connection,
    *,
    other_than_boot: str | None = None,
    created_before_us: int | None = None,
) -> list[OpenReservation]:
    """Open holds, oldest first: of earlier runs of the daemon, or older than a moment, or all."""
    parameters = (other_than_boot, created_before_us, created_before_us)
    return [_opened(row) for row in connection.rows(_ALL_OPEN, parameters)]


def held_by_family(connection: Connection, family_id: str) -> int:
    """What the running requests of a key and its rotations hold, in nano-USD."""
    row = connection.row(
        "SELECT COALESCE(SUM(amount_nano), 0) FROM reservation WHERE family_id = ? AND state = 'open'",
        (family_id,),
    )
    assert row is not None
    return int(row[0])


def open_count(connection: Connection, family_id: str) -> int:
    """How many requests of a key and its rotations run now."""
    row = connection.row(
        "SELECT COUNT(*) FROM reservation WHERE family_id = ? AND state = 'open'", (family_id,)
    )
    assert row is not None
    return int(row[0])


def held_in_organization(connection: Connection, organization_id: str) -> tuple[int, int]:
    """(nano-USD, requests) that running requests of an organization hold."""
    row = connection.row(
        "SELECT COALESCE(SUM(amount_nano), 0), COUNT(*) FROM reservation"
        " WHERE state = 'open' AND organization_id = ?",
        (organization_id,),
    )
    assert row is not None
    return int(row[0]), int(row[1])


def _charge(
    connection: Connection,
    book: Book,
    generation_id: str,
    workspace_id: str | None,
    key_id: str,
    cost_nano: int,
) -> None:
    lots = _lots_that_add_up(connection, book)
    parts, shortfall_nano = burn(lots, cost_nano)
    for lot, part_nano in parts:
        book.move(
            "charge",
            part_nano,
            bucket=lot.kind,
            lot_id=lot.id,
            generation_id=generation_id,
            key_id=key_id,
            workspace_id=workspace_id,
        )
    account.take(connection, book.organization_id, lots, parts)
    if shortfall_nano:
        book.debt_nano += shortfall_nano
        book.move(
            "charge",
            shortfall_nano,
            generation_id=generation_id,
            key_id=key_id,
            workspace_id=workspace_id,
        )


def _lots_that_add_up(connection: Connection, book: Book) -> list[Lot]:
    """The lots that hold credit: less debt, they are what is owned (I4)."""
    lots = account.lots_with_credit(connection, book.organization_id)
    credit_nano = sum(lot.remaining_nano for lot in lots)
    if book.owned_nano != credit_nano - book.debt_nano:
        raise LedgerBroken(f"the lots of {book.organization_id} do not add up to its balance")
    return lots


@cached("hold")
def _held(connection: Connection, generation_id: str) -> Held | None:
    row = connection.row(_HELD, (generation_id,))
    return None if row is None else Held(*row)


def _close(connection: Connection, book: Book, generation_id: str) -> None:
    if book.balances["held"] < 0:
        raise LedgerBroken(f"{book.organization_id} would hold less than nothing")
    book.save(connection)
    seqs = (book.first_seq, book.last_seq)
    if connection.execute(_CLOSE, (book.at_us, *seqs, generation_id)) != 1:
        raise LedgerBroken(f"the hold of {generation_id} ended under its own transaction")
    connection.execute(_DROP_CONTEXT, (generation_id,))
    _held.invalidate(connection, generation_id)


def _ended(
    connection: Connection, generation_id: str, organization_id: str, hold_nano: int
) -> Settlement:
    row = connection.row(_ENDED, (generation_id,))
    assert row is not None
    charged_nano, at_us, seq = row
    last = connection.row(
        "SELECT e.balance_after_nano, a.pool_nano + a.held_nano FROM entry AS e"
        " JOIN account AS a USING (organization_id) WHERE e.organization_id = ? AND e.seq = ?",
        (organization_id, seq),
    )
    assert last is not None
    return Settlement(
        generation_id=generation_id,
        organization_id=organization_id,
        first=False,
        hold_nano=hold_nano,
        charged_nano=charged_nano,
        balance_after_nano=last[0],
        owned_after_nano=last[1],
        at_us=at_us,
    )


def _opened(row: Row) -> OpenReservation:
    return msgspec.convert(
        dict(zip(OpenReservation.__struct_fields__, row, strict=True)), OpenReservation
    )
