"""node: what the commands do besides serving: make a node, look it over, bring it up to date, try one out.

Owns: the files of the node's directory as files; that nothing half-made is left behind; the demo's throw-away node.
Does not own: what is in the tables (management and the rooms), how a node serves (wiring).
Invariants: the instance lock is held while an existing node is touched; a directory with anything in it is never made
into a node.
Queries: plain SQL, for the file as a whole.
Speaks to: wiring, settings, store, credentials, management, the simulated vendor; only the commands call it.
"""
