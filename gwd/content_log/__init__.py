"""content_log: what an organization has stored of its requests and their answers, sealed and for a time.

Owns: the tables `content_log` and `content_log_key`; what is left of a request once everything that has to be hidden
is; sealing and opening it, finding and erasing it.
Does not own: whether an organization wants any of it (orgs), which requests pass and when (pipeline), who may read it.
Invariants: nothing is stored for an organization that has it switched off at the moment of writing; what is stored is
sealed by a data key, and data keys by the ring; what was erased is zeroed in the file, and a mark says that the log of
writes still holds it until that is emptied.
Queries: plain SQL: the pipeline writes it, and what is found by an index is erased in short lists.
Speaks to: orgs, credentials for the vault, the store.
"""
