"""A stopped node looked over (`gwd check`), migrated (`gwd migrate`), or given a new operator key."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from gwd import ledger
from gwd.core.clock import Clock
from gwd.credentials import keyring
from gwd.management import setup
from gwd.settings import Settings
from gwd.store import Connection, migrations
from gwd.store.connection import open_connection, require, transaction
from gwd.store.lock import InstanceLock

MAX_DAMAGE_LINES: Final = 20


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question: `wrong` is empty when all is well."""

    name: str
    detail: str
    wrong: tuple[str, ...] = ()


def check(settings: Settings) -> list[Finding]:
    """Key ring, schema, file, foreign keys, ledger, in this order. Raises AlreadyRunningError while the node serves."""
    with _held(settings):
        pending = migrations.pending(str(settings.database))
        if pending:
            return [
                Finding(
                    name="schema",
                    detail="behind this version",
                    wrong=(f"{pending[0]} is not applied; run `gwd migrate`",),
                )
            ]
        connection = open_connection(str(settings.database), "reader")
        try:
            with transaction(connection, "DEFERRED"):
                return [
                    _ring(connection, settings.keyring),
                    Finding(name="schema", detail=migrations.names()[-1]),
                    _file(connection),
                    _references(connection),
                    _ledger(connection),
                ]
        finally:
            connection.raw.close()


def pending(settings: Settings) -> list[str]:
    """The migrations that are missing. Raises NewerSchemaError for a database of a newer version."""
    with _held(settings):
        return migrations.pending(str(settings.database))


def migrate(settings: Settings, clock: Clock) -> list[str]:
    """Apply them, after a copy of the file; gives back their names."""
    with _held(settings):
        return migrations.migrate(str(settings.database), clock)


def new_operator_key(settings: Settings, clock: Clock) -> str:
    """A further operator key; the lost one stays until it is deleted with the new one."""
    ring = keyring.read(settings.keyring)
    with _held(settings):
        connection = open_connection(str(settings.database), "writer")
        try:
            with transaction(connection, "IMMEDIATE"):
                return setup.new_operator_key(
                    connection,
                    ring,
                    rate_limit_ceiling=settings.limits.default_rate_limit_per_minute,
                    now_us=clock.now_us(),
                )
        finally:
            connection.raw.close()


@contextmanager
def _held(settings: Settings) -> Iterator[None]:
    """The node's lock, so that no daemon starts or runs meanwhile."""
    require(settings.database)
    lock = InstanceLock(settings.lock)
    try:
        yield
    finally:
        lock.close()


def _ring(connection: Connection, path: Path) -> Finding:
    try:
        setup.check_ring(connection, keyring.read(path))
    except (keyring.KeyRingError, setup.WrongKeyRingError) as error:
        return Finding(name="key ring", detail=str(path), wrong=(str(error),))
    return Finding(name="key ring", detail=str(path))


def _file(connection: Connection) -> Finding:
    lines = [row[0] for row in connection.rows(f"PRAGMA integrity_check({MAX_DAMAGE_LINES})")]
    damage = tuple(" ".join(line.split()) for line in lines if line != "ok")
    return Finding(name="database file", detail="integrity_check", wrong=damage)


def _references(connection: Connection) -> Finding:
    rows = connection.rows("PRAGMA foreign_key_check")[:MAX_DAMAGE_LINES]
    wrong = tuple(f"a row of {row[0]} points to a missing row of {row[2]}" for row in rows)
    return Finding(name="references", detail="foreign_key_check", wrong=wrong)


def _ledger(connection: Connection) -> Finding:
    found = ledger.verify(connection)
    wrong = tuple(
        f"{item.invariant} {item.organization_id}: {item.message}" for item in found.differences
    )
    return Finding(
        name="ledger", detail=f"recomputed from its entries ({found.checked})", wrong=wrong
    )
