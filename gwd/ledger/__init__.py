"""ledger: every movement of an organization's money, as double entries that are never changed.

Owns: the accounts funding, pool (free), held, spent and expired of each organization, lots of credit, entries and
their hash chain, reservations and how they end, the audit that recomputes all of it, the note that a node is in
quarantine.
Does not own: what a request costs (pricing), what was spent per scope (spend), limits (budgets, keys), why a hold is
taken.
Invariants: an entry moves one positive amount between two accounts (a hold of a free request may be 0); cached balances
equal the sums of the entries; a reservation ends exactly once; free credit never goes below zero by a reservation;
promotional credit pays before granted before purchased; ledger time goes back only by an entry that says why.
Queries: plain SQL with named rows.
Speaks to: store and core only. All functions run inside the caller's transaction on the writer.
"""

from gwd.ledger.account import LedgerBroken
from gwd.ledger.audit import Verification, books, look_over, verify
from gwd.ledger.book import Entry, EntryType
from gwd.ledger.burn import LotKind
from gwd.ledger.credit import (
    NewCredit,
    add_credit,
    adjust_down,
    expire,
    free_nano,
    last_time_us,
    ledger_time_us,
    open_account,
    organizations_with_due_credit,
    refund,
)
from gwd.ledger.movements import (
    CREDIT_TYPES,
    LastEntry,
    Movements,
    holds_from_before,
    last_entry_before,
    moved,
    owned_nano,
)
from gwd.ledger.record import (
    BalanceRecord,
    EntryRecord,
    balance_record,
    booking_record,
    entry_record,
)
from gwd.ledger.references import booked
from gwd.ledger.replay import Difference
from gwd.ledger.reports import (
    Balance,
    LedgerFilter,
    OpenHolds,
    Totals,
    balance,
    count_entries,
    list_entries,
    open_holds,
    place,
    totals,
    was_set_back,
)
from gwd.ledger.service import (
    NewReservation,
    OpenReservation,
    Settlement,
    checkpoint,
    held_by_family,
    held_in_organization,
    open_count,
    open_reservation,
    open_reservations,
    release,
    reserve,
    settle,
)
from gwd.ledger.time_repair import Ahead, TimeRepair, ahead, set_back

__all__ = [
    "CREDIT_TYPES",
    "Ahead",
    "Balance",
    "BalanceRecord",
    "Difference",
    "Entry",
    "EntryRecord",
    "EntryType",
    "LastEntry",
    "LedgerBroken",
    "LedgerFilter",
    "LotKind",
    "Movements",
    "NewCredit",
    "NewReservation",
    "OpenHolds",
    "OpenReservation",
    "Settlement",
    "TimeRepair",
    "Totals",
    "Verification",
    "add_credit",
    "adjust_down",
    "ahead",
    "balance",
    "balance_record",
    "booked",
    "booking_record",
    "books",
    "checkpoint",
    "count_entries",
    "entry_record",
    "expire",
    "free_nano",
    "held_by_family",
    "held_in_organization",
    "holds_from_before",
    "last_entry_before",
    "last_time_us",
    "ledger_time_us",
    "list_entries",
    "look_over",
    "moved",
    "open_account",
    "open_count",
    "open_holds",
    "open_reservation",
    "open_reservations",
    "organizations_with_due_credit",
    "owned_nano",
    "place",
    "refund",
    "release",
    "reserve",
    "set_back",
    "settle",
    "totals",
    "verify",
    "was_set_back",
]
