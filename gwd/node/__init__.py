"""node: what the commands do to a node that is not serving: make it, look it over, bring its schema up to date.

Owns: the files of the node's directory as files; that nothing half-made is left behind.
Does not own: what is in the tables (management and the rooms), serving (wiring).
Invariants: the instance lock is held while an existing node is touched; an existing directory with anything in it is
never made into a node.
Speaks to: settings, store, credentials, management; only the commands call it.
"""
