"""What the writer remembers between its functions, and the one way to remember anything there.

    @cached("account")
    def stored(connection: Connection, organization_id: str) -> StoredAccount:
        ...  # finds it in the database

    stored(connection, organization_id)                  # found once, then remembered
    stored.put(connection, changed, organization_id)    # it has just been written like this
    stored.invalidate(connection, organization_id)           # it has just been written in another way

    @maintains_cache
    def admit(connection: Connection, ...) -> ...        # puts or invalidates every change it makes to any of them

Only functions marked with `maintains_cache` see what is remembered: for every other function, and for readers, a finder
goes to the database, and the writer forgets everything after it. So a function without the mark is always right,
and one with the mark has to be reviewed: whatever it writes, directly or through others, must be put or
invalidated. A value is remembered under the finder's name and arguments; only its own room may change it in place.
Nothing else that outlives a function may keep what was read: a transaction that is rolled back would leave it wrong.
"""

import functools
from collections.abc import Callable
from typing import Any, Final, ParamSpec, Protocol, TypeVar, TypeVarTuple, cast

from gwd.store.connection import Connection

P = ParamSpec("P")
T = TypeVar("T")
Key = TypeVarTuple("Key")


class Cached(Protocol[*Key, T]):
    """A finder whose answers the writer remembers."""

    find: Callable[[Connection, *Key], T]
    """Always asks the database."""

    def __call__(self, connection: Connection, *key: *Key) -> T:
        """What is remembered, or else found. What the finder raises is not kept."""
        ...

    def peek(self, connection: Connection, *key: *Key) -> T | None:
        """What is remembered, or None; the database is not asked."""
        ...

    def put(self, connection: Connection, value: T, *key: *Key) -> None:
        """It has just become `value` in the database."""
        ...

    def invalidate(self, connection: Connection, *key: *Key) -> None:
        """It has changed in the database."""
        ...


FINDERS: Final[dict[str, Any]] = {}
"""Every finder by its name, so that a test can hold what is remembered against the file."""


def cached(name: str) -> Callable[[Callable[[Connection, *Key], T]], Cached[*Key, T]]:
    """Let the writer remember what a finder gives. `name` is the finder's alone."""

    def made(find: Callable[[Connection, *Key], T]) -> Cached[*Key, T]:
        # Plain functions, not an object with __call__: every admission goes through several of them.
        @functools.wraps(find)
        def finder(connection: Connection, *key: *Key) -> T:
            rows = connection.cached_rows
            if rows is None:
                return find(connection, *key)
            mine = rows[name]
            if key in mine:
                return mine[key]  # type: ignore[no-any-return]
            value = mine[key] = find(connection, *key)
            return value

        def peek(connection: Connection, *key: *Key) -> T | None:
            rows = connection.cached_rows
            return None if rows is None else rows[name].get(key)

        def put(connection: Connection, value: T, *key: *Key) -> None:
            if connection.cached_rows is not None:
                connection.cached_rows[name][key] = value

        def invalidate(connection: Connection, *key: *Key) -> None:
            if connection.cached_rows is not None:
                connection.cached_rows[name].pop(key, None)

        assert name not in FINDERS, f"two finders are called {name!r}"
        FINDERS[name] = whole = cast("Any", finder)
        whole.find, whole.peek, whole.put, whole.invalidate = find, peek, put, invalidate
        return cast("Cached[*Key, T]", finder)

    return made


def maintains_cache(fn: Callable[P, T]) -> Callable[P, T]:
    """Mark a writer function that puts or invalidates every change it makes to what finders remember."""
    fn.maintains_cache = True  # type: ignore[attr-defined]
    return fn
