"""The schema's history: numbered files, each with one `up(connection)` of plain DDL, applied in order, forward only."""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import apsw

from gwd.core.clock import Clock
from gwd.store.connection import Connection, open_connection, transaction

_HISTORY: Final = (
    "CREATE TABLE IF NOT EXISTS schema_history"
    " (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT, WITHOUT ROWID"
)


_OBJECTS: Final = (
    "SELECT type, name, tbl_name, sql FROM sqlite_master"
    " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
)

Schema = dict[tuple[str, str], tuple[str, str]]
"""(kind, name): the table it is of, and its SQL."""


class NewerSchemaError(RuntimeError):
    """The file was written by a newer gwd; the text says what to do."""


class DamagedFileError(RuntimeError):
    """The file cannot be copied whole; the text says what to do."""


def names() -> list[str]:
    """All migrations this build knows, in order."""
    return sorted(
        module.name for module in pkgutil.iter_modules(__path__) if module.name[:4].isdigit()
    )


def pending(path: str) -> list[str]:
    """What `migrate` would apply to the file. Raises NewerSchemaError if it has migrations unknown here."""
    if not Path(path).exists():
        return names()
    connection = open_connection(path, "writer")
    try:
        return _pending(connection)
    finally:
        connection.raw.close()


def migrate(path: str, clock: Clock) -> list[str]:
    """Apply what is missing, each step in one transaction, after a copy of a file that holds data already.

    Returns the names applied. Raises NewerSchemaError for a file of a newer build.
    """
    if not Path(path).exists():
        Path(path).touch(mode=0o600)  # nobody else may read it, not even for a moment
    connection = open_connection(path, "writer")
    try:
        todo = _pending(connection)
        if todo and len(todo) < len(names()):
            _copy(connection, f"{path}.before-{todo[0]}")
        for name in todo:
            with transaction(connection, "IMMEDIATE"):
                _step(name)(connection)
                connection.execute(
                    "INSERT INTO schema_history (name, applied_at) VALUES (?, ?)",
                    (name, clock.now_us()),
                )
        return todo
    finally:
        connection.raw.close()


def schema_of(connection: Connection) -> Schema:
    """The tables, indexes and triggers of a database."""
    return {
        (kind, name): (table, " ".join(sql.split()))
        for kind, name, table, sql in connection.rows(_OBJECTS)
    }


@cache
def schema() -> Schema:
    """What all steps make of an empty database."""
    raw = apsw.Connection(":memory:")
    try:
        connection = Connection(raw)
        connection.execute(_HISTORY)
        for name in names():
            _step(name)(connection)
        return schema_of(connection)
    finally:
        raw.close()


def _pending(connection: Connection) -> list[str]:
    connection.execute(_HISTORY)
    applied = {row[0] for row in connection.rows("SELECT name FROM schema_history")}
    known = names()
    unknown = sorted(applied - set(known))
    if unknown:
        raise NewerSchemaError(
            f"the database was written by a newer gwd (it has {unknown[-1]}); install that version or restore a backup"
        )
    return [name for name in known if name not in applied]


def _step(name: str) -> Callable[[Connection], None]:
    step: Callable[[Connection], None] = importlib.import_module(f"{__name__}.{name}").up
    return step


def _copy(connection: Connection, target: str) -> None:
    """Copy the file to `target`, which is there only when it is whole. One that is there already stays."""
    if Path(target).exists():
        return
    partial = Path(f"{target}.partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)  # as private as the database itself
    copy = apsw.Connection(str(partial))
    try:
        with copy.backup("main", connection.raw, "main") as backup:
            while not backup.done:
                backup.step(1_000)
        damage = _damage(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # no file beside it is left behind
    finally:
        copy.close()
    if damage:
        partial.unlink()
        raise DamagedFileError(
            f"the database is damaged and was not migrated ({damage}); restore a backup"
        )
    partial.rename(target)


def _damage(copy: apsw.Connection) -> str | None:
    try:
        [(found,), *_] = copy.execute("PRAGMA quick_check(1)")
    except apsw.CorruptError as error:
        return str(error)
    return None if found == "ok" else str(found)
