"""A stopped node checked, migrated, its ledger time repaired, or given a new operator key."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec

from gwd import ledger, proof
from gwd.core.clock import Clock, iso
from gwd.core.errors import InvalidRequest
from gwd.core.text_file import read_text
from gwd.credentials import keyring
from gwd.credentials.vault import Vault
from gwd.management import secrets, setup, time_repair
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


def check(settings: Settings, clock: Clock, head: Path | None = None) -> list[Finding]:
    """Key ring, schema, file, foreign keys, time, ledger. Raises AlreadyRunningError while the node serves.

    `head` is a file that `gwctl ledger head` printed: then the ledger must contain what it names.
    """
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
                    _time(connection, clock.now_us()),
                    _ledger(connection, settings.keyring, head),
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


def time_ahead(settings: Settings, clock: Clock) -> list[ledger.Ahead]:
    """The organizations whose last entry lies in the future."""
    with opened(settings, "reader") as connection, transaction(connection, "DEFERRED"):
        return ledger.ahead(connection, now_us=clock.now_us())


def repair_time(
    settings: Settings, clock: Clock, *, by: str, why: str
) -> tuple[ledger.TimeRepair, ...]:
    """Let ledger time go on from now where it is ahead, and give back credit that expired too early."""
    with opened(settings, "writer") as connection, transaction(connection, "IMMEDIATE"):
        return time_repair.repair_time(connection, by=by, why=why, now_us=clock.now_us())


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
def opened(settings: Settings, mode: Literal["reader", "writer"]) -> Iterator[Connection]:
    """The database of a stopped node whose schema is this version's."""
    with _held(settings):
        missing = migrations.pending(str(settings.database))
        if missing:
            raise InvalidRequest(f"{missing[0]} is not applied; run `gwd migrate` first")
        connection = open_connection(str(settings.database), mode)
        try:
            yield connection
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
        ring = keyring.read(path)
        setup.check_ring(connection, ring)
    except (keyring.KeyRingError, setup.WrongKeyRingError) as error:
        return Finding(name="key ring", detail=str(path), wrong=(str(error),))
    wrong = tuple(each.message for each in secrets.verify(connection, Vault(ring)).unopened)
    return Finding(name="key ring", detail=str(path), wrong=wrong[:MAX_DAMAGE_LINES])


def _file(connection: Connection) -> Finding:
    lines = [row[0] for row in connection.rows(f"PRAGMA integrity_check({MAX_DAMAGE_LINES})")]
    damage = tuple(" ".join(line.split()) for line in lines if line != "ok")
    return Finding(name="database file", detail="integrity_check", wrong=damage)


def _references(connection: Connection) -> Finding:
    rows = connection.rows("PRAGMA foreign_key_check")[:MAX_DAMAGE_LINES]
    wrong = tuple(
        f"a row of {name} points to a missing row of {missing}" for name, _, missing, _ in rows
    )
    return Finding(name="references", detail="foreign_key_check", wrong=wrong)


def _time(connection: Connection, now_us: int) -> Finding:
    wrong = tuple(
        f"the last entry of {found.organization_id} is of {iso(found.last_us)}, which is still to come;"
        " if the machine's clock is right: gwd clock --mend --by NAME --why TEXT"
        for found in ledger.ahead(connection, now_us=now_us)
    )
    return Finding(name="time", detail=f"the clock says {iso(now_us)}", wrong=wrong)


def _ledger(connection: Connection, ring: Path, head: Path | None) -> Finding:
    try:
        kept = None if head is None else _kept(head, ring)
    except (OSError, ValueError, keyring.KeyRingError) as error:
        return Finding(name="ledger", detail="not verified", wrong=(f"{head}: {error}",))
    found = proof.verify(connection, head=kept)
    wrong = tuple(
        f"{item.invariant} {item.organization_id or 'the node'}: {item.message}"
        for item in found.differences
    )
    return Finding(
        name="ledger",
        detail=f"recomputed from its entries ({found.checked}), with every charge",
        wrong=wrong,
    )


def _kept(head: Path, ring: Path) -> proof.Head:
    try:
        given = msgspec.json.decode(read_text(head))
    except msgspec.DecodeError as error:
        raise ValueError(f"is no JSON: {error}") from None
    return proof.read(given, Vault(keyring.read(ring)))
