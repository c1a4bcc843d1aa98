"""activity: the record of every generation, served or refused, and the questions people ask of it.

Owns: the tables generation, day_sum and senders_forgotten. Does not own: money (amounts here repeat what the ledger
settled, in the same transaction).
Invariants: one row per generation id, written once, when it is settled or refused; refusals by the rate limit are
counted in one row per key and second; rows are only ever added, in the order in which generations end.
The sums of a day are those of its records, and charge what the ledger charged (`gwd.proof` recomputes both).
Queries: plain SQL: settlement writes the records, and pages of a long history are walked by range.
Speaks to: store, core, and the ledger for its time.
"""
