"""credentials: vendor keys: the platform's own and those that owners attach (BYOK), encrypted at rest.

Owns: the table credential, the key ring, sealing and opening of every recoverable secret of the node.
Does not own: which credential serves a request, what a vendor said of it (health is the pipeline's).
Invariants: a sealed secret opens only as the same row, organization, purpose and origin it was sealed for;
a reference (`env:`, `file:`) is never stored as its value; no record and no error shows a secret.
Queries: peewee; the state of a key after a call, which settlement writes, in plain SQL.
Speaks to: store, core and the catalog's revision.
"""
