"""An account and its lots as they stand in the database, and the one way to take credit out of lots.

The writer remembers both (`gwd.store.cached`): whoever changes them says so here.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from gwd.core.errors import NotFound
from gwd.ledger.burn import Lot, Part
from gwd.store import Connection, cached

_ACCOUNT: Final = (
    "SELECT funding_nano, pool_nano, held_nano, spent_nano, expired_nano, debt_nano,"
    " last_seq, last_hash, last_at, next_expiry_at FROM account WHERE organization_id = ?"
)
_LOTS: Final = (
    "SELECT id, kind, remaining_nano, expires_at FROM lot"
    " WHERE organization_id = ? AND remaining_nano > 0"
)
_TAKE: Final = (
    "UPDATE lot SET remaining_nano = remaining_nano - ? WHERE id = ? AND remaining_nano = ?"
)


class LedgerBroken(AssertionError):
    """An invariant of the ledger does not hold: nothing of this transaction may be kept."""


class StoredAccount(NamedTuple):
    """An account's row: its cached balances and the tail of its chain."""

    funding_nano: int
    pool_nano: int
    held_nano: int
    spent_nano: int
    expired_nano: int
    debt_nano: int
    last_seq: int
    last_hash: bytes
    last_at_us: int
    next_expiry_at_us: int | None

    @property
    def balances(self) -> tuple[int, int, int, int, int]:
        """The five accounts, which sum to nothing."""
        return self[:5]

    def time_us(self, now_us: int) -> int:
        """The time of an entry written now: it never goes back, so a closed day or month can never change."""
        return max(now_us, self.last_at_us)


def due_by_us(now_us: int, due_us: int | None) -> int:
    """The time by which credit expires: `due_us` where the caller's clock may be in doubt, and never in the future."""
    return now_us if due_us is None else min(due_us, now_us)


@cached("account")
def stored(connection: Connection, organization_id: str) -> StoredAccount:
    """The account as it stands. Raises NotFound when the organization has none."""
    row = connection.row(_ACCOUNT, (organization_id,))
    if row is None:
        raise NotFound("no such organization")
    return StoredAccount(*row)


def invalidate(connection: Connection, organization_id: str) -> None:
    """The account or its lots have just been written in another way."""
    stored.invalidate(connection, organization_id)
    lots_with_credit.invalidate(connection, organization_id)


@cached("lots")
def lots_with_credit(connection: Connection, organization_id: str) -> list[Lot]:
    """The lots that still hold credit."""
    return [Lot(*row) for row in connection.rows(_LOTS, (organization_id,))]


def take(
    connection: Connection, organization_id: str, lots: Sequence[Lot], parts: Sequence[Part]
) -> None:
    """Take `parts` out of `lots`, which are all that hold credit. Raises LedgerBroken when a lot has moved."""
    left = {lot.id: lot for lot in lots}
    for lot, part_nano in parts:
        if connection.execute(_TAKE, (part_nano, lot.id, lot.remaining_nano)) != 1:
            raise LedgerBroken(f"the lot {lot.id} changed under its own transaction")
        rest_nano = lot.remaining_nano - part_nano
        if rest_nano:
            left[lot.id] = msgspec.structs.replace(lot, remaining_nano=rest_nano)
        else:
            del left[lot.id]
    lots_with_credit.put(connection, list(left.values()), organization_id)
