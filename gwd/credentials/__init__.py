"""credentials: vendor keys: the platform's own and those that owners attach (BYOK), encrypted at rest.

Owns: the table credential, the key ring, sealing and opening of every recoverable secret of the node.
The rule of origins: a credential goes only to the origin (scheme, host, port) that it was made for: its provider's at
that time, or that of the `base_url` given with it, which must be one of the provider's own. If the provider moves to
another origin, its credentials do not follow; each says so in `problem` until it is set again. One rule for the node's
credentials and for those of owners, for keys that are stored and for references.
Does not own: which credential serves a request, what a vendor said of it (health is the pipeline's).
Invariants: a sealed secret opens only as the same row, organization, purpose and origin it was sealed for;
a reference (`env:`, `file:`) is never stored as its value; no record and no error shows a secret.
Queries: peewee; the state of a key after a call, which settlement writes, in plain SQL.
Speaks to: store, core and the catalog's revision.
"""
