"""audit: who changed what, when, from where.

Owns: the table `audit`, append-only by trigger.
Does not own: what was changed; callers say it in a few plain values, never a secret.
Invariants: a line is written in the transaction of the change it tells of, and never edited or deleted.
Speaks to: the store.
"""
