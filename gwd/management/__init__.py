"""management: use cases that span rooms, each inside one transaction.

Owns: the order in which rooms are called for one purpose, such as a new node or a person who leaves with their keys;
the table `invitation`.
Does not own: any rule of a single room, HTTP, the audit line of a request (the api writes it, for all alike).
Invariants: a use case happens whole or not at all; nobody gains a role above the one of whoever grants it.
Queries: peewee; plain SQL for values of the node and for the one statement that claims an invitation.
Speaks to: the rooms below it; the api and the commands of the node call it.
"""
