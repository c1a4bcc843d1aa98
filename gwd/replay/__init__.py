"""replay: what makes a repeated request harmless: first replies by Idempotency-Key, and state clients do not send back.

Owns: the tables `idempotency` and `signature`; the memory of output items that a responses client may refer to.
Does not own: the actions that are replayed; parsing an item reference (the responses dialect does).
Invariants: a first reply is stored in the transaction of its action, without secrets, and forgotten after its time;
no key sees another key's items, and losing them is harmless.
Queries: plain SQL: every request with a key or a signature asks.
Speaks to: the store.
"""
