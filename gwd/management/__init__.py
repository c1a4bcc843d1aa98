"""management: use cases that span rooms, each inside one transaction.

Owns: the order in which rooms are called for one purpose, such as a new node or a rotation with its audit line; the
table `invitation`.
Does not own: any rule of a single room, HTTP.
Invariants: a use case happens whole or not at all; what changes authority leaves an audit line, without secrets;
nobody gains a role above the one of whoever grants it.
Speaks to: the rooms below it; the api and the commands of the node call it.
"""
