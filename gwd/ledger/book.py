"""One organization's account open for writing inside a transaction: movements are collected, then saved at once.

Every change of money goes through `Book.move`, which takes one positive amount from one account to another, so money
can neither appear nor vanish by a sign error.
"""

from typing import Any, Final, Literal

import msgspec

from gwd.core.ids import mint
from gwd.core.money import MAX_NANO
from gwd.ledger import account, chain
from gwd.ledger.account import LedgerBroken, StoredAccount
from gwd.ledger.burn import LotKind
from gwd.store.connection import Connection, Value

Account = Literal["funding", "pool", "held", "spent", "expired"]
EntryType = Literal[
    "purchase",
    "grant",
    "refund",
    "reservation",
    "release",
    "settlement",
    "charge",
    "expiry",
    "adjustment",
    "clock",
    "restoration",
]


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of the ledger. `balance_after_nano` is what was free (not held) after it."""

    organization_id: str
    seq: int
    id: str
    type: EntryType
    from_account: Account
    to_account: Account
    amount_nano: int
    bucket: LotKind | None
    lot_id: str | None
    generation_id: str | None
    key_id: str | None
    workspace_id: str | None
    reference: str | None
    note: str | None
    actor: str | None
    balance_after_nano: int
    created_at: int

    @property
    def signed_nano(self) -> int:
        """How the entry changed the free balance."""
        if self.to_account == "pool":
            return self.amount_nano
        return -self.amount_nano if self.from_account == "pool" else 0


# An entry of each type moves its amount from the first account to the second; one of `BOTH_WAYS` may go back, too.
ROUTES: Final[dict[str, tuple[Account, Account]]] = {
    "purchase": ("funding", "pool"),
    "grant": ("funding", "pool"),
    "refund": ("pool", "funding"),
    "reservation": ("pool", "held"),
    "release": ("held", "pool"),
    "settlement": ("held", "pool"),
    "charge": ("pool", "spent"),
    "expiry": ("pool", "expired"),
    "adjustment": ("funding", "pool"),
    # Of nothing: it says that ledger time goes back here, who wanted it and why (`gwd.ledger.time_repair`).
    "clock": ("funding", "pool"),
    "restoration": ("expired", "pool"),
}
BOTH_WAYS: Final[frozenset[str]] = frozenset(("adjustment",))
_SAVE: Final = (
    "UPDATE account SET funding_nano = ?, pool_nano = ?, held_nano = ?, spent_nano = ?, expired_nano = ?,"
    " debt_nano = ?, last_seq = ?, last_hash = ?, last_at = ?, next_expiry_at = ?"
    " WHERE organization_id = ? AND last_seq = ? AND pool_nano >= ?"
)
_NO_FLOOR: Final = -MAX_NANO
_INSERT: Final = (
    # Of all columns in the table's order: the text is looked up for every request, and names make it long.
    "INSERT INTO entry VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)


class Book:
    """The account's cached balances, the tail of its chain, and the entries not yet written."""

    __slots__ = (
        "_hash",
        "_loaded_seq",
        "_rows",
        "_seq",
        "at_us",
        "balances",
        "debt_nano",
        "next_expiry_at",
        "organization_id",
    )

    def __init__(self, connection: Connection, organization_id: str, now_us: int) -> None:
        """Load the account. Raises NotFound when the organization has none."""
        stored = account.stored(connection, organization_id)
        self.organization_id = organization_id
        self.balances: dict[Account, int] = {
            "funding": stored.funding_nano,
            "pool": stored.pool_nano,
            "held": stored.held_nano,
            "spent": stored.spent_nano,
            "expired": stored.expired_nano,
        }
        self.debt_nano = stored.debt_nano
        self._loaded_seq = self._seq = stored.last_seq
        self._hash = stored.last_hash
        self.at_us = stored.time_us(now_us)
        self.next_expiry_at = stored.next_expiry_at_us
        self._rows: list[tuple[Value, ...]] = []

    @property
    def free_nano(self) -> int:
        """What no request holds; negative in debt."""
        return self.balances["pool"]

    @property
    def owned_nano(self) -> int:
        """Free and held together."""
        return self.balances["pool"] + self.balances["held"]

    @property
    def first_seq(self) -> int:
        """The number of the first entry of this transaction."""
        return self._loaded_seq + 1

    @property
    def last_seq(self) -> int:
        """The number of the latest entry."""
        return self._seq

    def move(
        self,
        entry_type: EntryType,
        amount_nano: int,
        *,
        back: bool = False,
        bucket: LotKind | None = None,
        lot_id: str | None = None,
        generation_id: str | None = None,
        key_id: str | None = None,
        workspace_id: str | None = None,
        reference: str | None = None,
        note: str | None = None,
        actor: str | None = None,
        seal: str | None = None,
    ) -> None:
        """Append one entry and move its amount between the two accounts that its type names, or `back`.

        `seal` is what it vouches for beside itself: a lot's expiry, the digest of a generation's record.
        """
        origin, target = ROUTES[entry_type]
        if back:
            assert entry_type in BOTH_WAYS
            origin, target = target, origin
        self.balances[origin] -= amount_nano
        self.balances[target] += amount_nano
        self._seq += 1
        row = (
            self.organization_id,
            self._seq,
            mint("led_"),
            entry_type,
            origin,
            target,
            amount_nano,
            bucket,
            lot_id,
            generation_id,
            key_id,
            workspace_id,
            reference,
            note,
            actor,
            self.balances["pool"],
            self.at_us,
        )
        self._hash = chain.link(self._hash, row, seal)
        self._rows.append((*row, self._hash, seal))

    def save(self, connection: Connection) -> None:
        """Write balances and entries. Raises LedgerBroken when the account moved under its own transaction."""
        if not self.save_if_free(connection, _NO_FLOOR):
            raise LedgerBroken(
                f"the account of {self.organization_id} changed under its own transaction"
            )

    def save_if_free(self, connection: Connection, needed_nano: int) -> bool:
        """Write balances and entries only if the stored free balance is at least `needed_nano`; else write nothing."""
        changed = StoredAccount(
            self.balances["funding"],
            self.balances["pool"],
            self.balances["held"],
            self.balances["spent"],
            self.balances["expired"],
            self.debt_nano,
            self._seq,
            self._hash,
            self.at_us,
            self.next_expiry_at,
        )
        guard = (self.organization_id, self._loaded_seq, needed_nano)
        if connection.execute(_SAVE, changed + guard) != 1:
            return False
        account.stored.put(connection, changed, self.organization_id)
        if len(self._rows) == 1:
            connection.execute(_INSERT, self._rows[0])
        else:
            connection.execute_many(_INSERT, self._rows)
        return True

    def entries(self) -> tuple[Entry, ...]:
        """What was moved, oldest first."""
        return tuple(entry_of(row) for row in self._rows)


def entry_of(row: tuple[Any, ...]) -> Entry:
    """An entry from its columns in order; what follows them is left out."""
    return msgspec.convert(dict(zip(chain.COLUMNS, row, strict=False)), Entry)
