"""audit: who changed what, when, from where.

Owns: the table `audit`, append-only by trigger, and the hash chains of its lines (`chain`).
Does not own: what was changed; callers say it in a few plain values, never a secret.
Invariants: a line is written in the transaction of the change it records, and never edited or deleted; one
that was removed, changed or put in all the same is found.
Queries: peewee for pages; the chain, which every change writes, in plain SQL.
Speaks to: the store.
"""
