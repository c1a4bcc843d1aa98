"""jobs: what the node does by the clock.

Owns: when background work runs. Does not own: what the work means; a job calls rooms as any handler does.
Invariants: a job that fails is logged and runs again at its next time.
Queries: plain SQL, for one value of the node alone.
Speaks to: pipeline, management, rooms below.
"""
