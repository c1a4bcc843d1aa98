"""proof: that the books are what they say, from the first entry to the last charge, and that nobody wrote them anew.

Owns: the recomputing of every charge from its usage and its price, the comparison of records with what the ledger
vouches for, of the schema with what the migrations make, and the signed head that is kept elsewhere.
Does not own: the ledger's own invariants (ledger), the chain of audit lines (audit).
Invariants: it reads and never writes; its memory does not grow with the history, its time only linearly.
Queries: plain SQL, in chunks.
Speaks to: ledger, audit, activity, catalog, pricing, credentials (the key ring) and the store.
"""

from gwd.proof.apart import Prover
from gwd.proof.books import look_over, verify
from gwd.proof.head import Head, NotOurHeadError, read, take

__all__ = ["Head", "NotOurHeadError", "Prover", "look_over", "read", "take", "verify"]
