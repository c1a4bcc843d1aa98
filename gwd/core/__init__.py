"""core: the values every room speaks: request, events, usage, cost, errors, money, time, ids, SSE framing.

Owns: the words of docs/architecture.md as frozen values and pure functions.
Does not own: any I/O, any state, any decision of a room.
Invariants: no class of `Usage` contains another; the parts of a `Cost` add up to its total; money is an integer.
Speaks to: nobody; everybody speaks through it.
"""
