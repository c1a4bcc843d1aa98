"""Sealed values where they lie: how many each key of the ring seals, and sealing them anew, a page at a time.

A room that keeps sealed values names each of its columns as a `SealedPlace`; `gwd.management.secrets` has them all.
"""

from collections.abc import Callable, Iterable

import msgspec

from gwd.credentials.vault import Binding, CannotOpenError, Vault, key_id
from gwd.store import Connection


class SealedPlace(msgspec.Struct, frozen=True, kw_only=True):
    """One column. `row` is the column that names a row, and `facts` are what `bindings` takes of it.

    `bindings` gives what a value of that row may have been sealed for, and `remedy` helps where none of it fits.
    """

    name: str
    table: str
    column: str
    row: str
    facts: tuple[str, ...]
    bindings: Callable[..., tuple[Binding, ...]]
    remedy: str


class Unopened(msgspec.Struct, frozen=True, kw_only=True):
    """A value that no key of the ring opens. `message` names the row and what helps."""

    place: str
    row: str
    key: str
    message: str


class Anew(msgspec.Struct, frozen=True, kw_only=True):
    """A value and what takes its place; the row keeps what somebody else has put there meanwhile."""

    row: str
    before: str
    after: str


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some values of one place. `last` names the last row that was read; None: there are no more."""

    anew: tuple[Anew, ...]
    unopened: tuple[Unopened, ...]
    last: str | None


def counts(connection: Connection, place: SealedPlace) -> dict[str, int]:
    """How many values each key seals, by the key's id."""
    rows = connection.rows(
        f"SELECT substr({place.column}, 5, instr(substr({place.column}, 5), '.') - 1), COUNT(*) FROM {place.table}"  # noqa: S608 - our own names
        f" WHERE {place.column} IS NOT NULL GROUP BY 1 ORDER BY 1"
    )
    return {str(key): int(count) for key, count in rows}


def page(
    connection: Connection, vault: Vault, place: SealedPlace, *, after: str, limit: int
) -> Page:
    """The next values that another key than the active one seals, sealed anew; nothing is written."""
    ours = f"gw1.{vault.ring.active}."
    rows = connection.rows(
        f"SELECT {place.row}, {place.column}, {', '.join(place.facts)} FROM {place.table}"  # noqa: S608 - our own names
        f" WHERE {place.row} > ? AND {place.column} IS NOT NULL AND substr({place.column}, 1, ?) <> ?"
        f" ORDER BY {place.row} LIMIT ?",
        (after, len(ours), ours, limit),
    )
    anew, unopened = [], []
    for row, before, *facts in rows:
        opened = _open(vault, place, row, before, facts)
        if isinstance(opened, Unopened):
            unopened.append(opened)
        else:
            secret, binding = opened
            anew.append(Anew(row=row, before=before, after=vault.seal(secret, binding)))
    last = str(rows[-1][0]) if len(rows) == limit else None
    return Page(anew=tuple(anew), unopened=tuple(unopened), last=last)


def put(connection: Connection, place: SealedPlace, anew: Iterable[Anew]) -> None:
    """Write values that were sealed anew, each where the one before still stands. Again is harmless."""
    connection.execute_many(
        f"UPDATE {place.table} SET {place.column} = ? WHERE {place.row} = ? AND {place.column} = ?",  # noqa: S608 - our own names
        [(each.after, each.row, each.before) for each in anew],
    )


def unopened(connection: Connection, vault: Vault, place: SealedPlace) -> list[Unopened]:
    """Every value of a place opened; those that do not open."""
    rows = connection.rows(
        f"SELECT {place.row}, {place.column}, {', '.join(place.facts)} FROM {place.table}"  # noqa: S608 - our own names
        f" WHERE {place.column} IS NOT NULL ORDER BY {place.row}"
    )
    tried = (_open(vault, place, row, blob, facts) for row, blob, *facts in rows)
    return [each for each in tried if isinstance(each, Unopened)]


def _open(
    vault: Vault, place: SealedPlace, row: str, blob: str, facts: list[str | None]
) -> tuple[str, Binding] | Unopened:
    for binding in place.bindings(row, *facts):
        try:
            return vault.open(blob, binding), binding
        except CannotOpenError:
            continue
    key = key_id(blob)
    why = "is damaged or was moved" if key in vault.ring.keks else f"needs {_named(key)}"
    return Unopened(
        place=place.name,
        row=row,
        key=key,
        message=f"the {place.name} of {row} {why}; {place.remedy}",
    )


def _named(key: str) -> str:
    return f"the key {key}, which the ring has not" if key else "a form that this version knows"
