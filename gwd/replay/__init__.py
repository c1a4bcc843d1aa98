"""replay: what makes a second time harmless: first replies by Idempotency-Key, and state clients do not send back.

Owns: the tables `idempotency` and `signature`.
Does not own: the actions that are replayed.
Invariants: a first reply is stored in the transaction of its action, without secrets, and forgotten after its time.
Speaks to: the store.
"""
