"""spend: what was charged per scope and UTC day, so that limits and budgets never sum the ledger.

Owns: one counter per (scope, UTC day of ledger time) and one lifetime counter, for charges and for the list price of
requests on the owner's own keys. Tags and external users are scopes, too; they are forgotten where their organization
has a retention and no budget for them.
Does not own: limits, budgets, who a scope belongs to.
Invariants: a counter is the sum of the charges of its scope and day (the ledger's audit recomputes it); counters only
grow; a rotated key and its successors count as one family.
Queries: plain SQL: settlement adds, admission sums.
Speaks to: store and core only.
"""

from gwd.spend.forgetting import forget_names, old_names
from gwd.spend.service import Around, add, between_nano, charged_around, total_nano, totals

__all__ = [
    "Around",
    "add",
    "between_nano",
    "charged_around",
    "forget_names",
    "old_names",
    "total_nano",
    "totals",
]
