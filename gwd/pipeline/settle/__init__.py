"""settle: what a generation leaves behind: bill, receipt, record and the transaction that books them.

Owns: the bill of an answer, the receipt, checkpoints of running streams, the settlement transaction and the wait
for it, recovery after a crash.
Does not own: prices and rounding (pricing), the books (ledger), what crosses a threshold (alerts).
Invariants: an admitted generation ends exactly once; its charge, record, spend and alerts are written together.
Speaks to: plan, admit, dispatch, ledger, spend, keys, activity, alerts, proof, pricing.
"""
