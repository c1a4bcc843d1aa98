"""Set ledger time back after a clock that was ahead: the only way in which it may go back, recorded as an entry.

Entries stay as they are. A `clock` entry of no amount says who set the time back and why; the entries after it go on
from the true time. Credit that expired although its time has not come returns to its lot by `restoration` entries,
which are allowed nowhere else than directly behind a `clock` entry.
"""

from typing import Final

import msgspec

from gwd.core.clock import iso
from gwd.core.node_clock import SMALL_US
from gwd.ledger import account
from gwd.ledger.book import Book
from gwd.ledger.burn import LotKind
from gwd.store.connection import Connection

_AHEAD: Final = (
    "SELECT organization_id, last_at FROM account WHERE last_seq > 0 AND last_at > ? ORDER BY 1"
)
_EXPIRED_EARLY: Final = (
    "SELECT l.id, l.kind, l.expires_at,"
    " SUM(CASE e.type WHEN 'expiry' THEN e.amount_nano ELSE -e.amount_nano END) AS lost_nano"
    " FROM lot AS l JOIN entry AS e ON e.organization_id = l.organization_id AND e.lot_id = l.id"
    " WHERE l.organization_id = ? AND l.expires_at > ? AND e.type IN ('expiry', 'restoration')"
    " GROUP BY l.id HAVING lost_nano > 0 ORDER BY l.id"
)
_RESTORE: Final = "UPDATE lot SET remaining_nano = remaining_nano + ?, debt_paid_nano = debt_paid_nano + ? WHERE id = ?"


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """An organization whose last entry lies in the future."""

    organization_id: str
    last_us: int


class TimeRepair(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to one organization's books."""

    organization_id: str
    from_us: int
    to_us: int
    restored_nano: int


def ahead(connection: Connection, *, now_us: int) -> list[Ahead]:
    """Organizations whose ledger time is ahead of the clock by more than a small step."""
    return [
        Ahead(organization_id=row[0], last_us=row[1])
        for row in connection.rows(_AHEAD, (now_us + SMALL_US,))
    ]


def set_back(
    connection: Connection, found: Ahead, *, actor: str, why: str, now_us: int
) -> TimeRepair:
    """Let ledger time go on from now, and give back what expired too early."""
    name = found.organization_id
    book = Book(connection, name, now_us)
    book.at_us = now_us
    book.move("clock", 0, note=f"from {iso(found.last_us)} to {iso(now_us)}: {why}", actor=actor)
    restored_nano = 0
    for lot_id, kind, expires_at_us, lost_nano in connection.rows(_EXPIRED_EARLY, (name, now_us)):
        _restore(connection, book, (lot_id, kind, expires_at_us), lost_nano, actor)
        restored_nano += lost_nano
    book.save(connection)
    account.invalidate(connection, name)
    return TimeRepair(
        organization_id=name, from_us=found.last_us, to_us=now_us, restored_nano=restored_nano
    )


def _restore(
    connection: Connection,
    book: Book,
    lot: tuple[str, LotKind, int],
    lost_nano: int,
    actor: str,
) -> None:
    """Credit returns to its lot; debt is paid from it first, as from any credit that is added."""
    lot_id, kind, expires_at_us = lot
    paid_nano = min(book.debt_nano, lost_nano)
    book.debt_nano -= paid_nano
    book.move("restoration", lost_nano, bucket=kind, lot_id=lot_id, actor=actor)
    connection.execute(_RESTORE, (lost_nano - paid_nano, paid_nano, lot_id))
    if lost_nano > paid_nano:
        known = (book.next_expiry_at, expires_at_us)
        book.next_expiry_at = min(at for at in known if at is not None)
