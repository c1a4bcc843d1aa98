"""`gwd backup` and `gwd restore`: a consistent copy of the database, taken also while it serves, and put back.

The key ring is not in a backup: whoever has both can read every stored secret.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import apsw
import msgspec

from gwd import proof
from gwd.core.clock import US_PER_S, Clock, iso
from gwd.credentials import keyring
from gwd.management import secrets, setup, time_repair
from gwd.node.files import give_to_owner_of, sync
from gwd.settings import Settings
from gwd.store import Connection, migrations
from gwd.store.connection import open_connection, transaction
from gwd.store.lock import InstanceLock

PROOF_BYTES: Final = 1024 * 1024


class BackupError(RuntimeError):
    """The copy cannot be made, or must not be put back; the text says why and what would help."""


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """A copy that was opened again and recomputed. `wrong` is empty when it is a whole node."""

    path: Path
    size_bytes: int
    sha256: str
    entries: int
    wrong: str = ""


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What was put back. `lost_entries`: ledger lines only the replaced file has; None: it cannot be read."""

    backup: Backup
    replaced: Path | None
    lost_entries: int | None


class Drill(msgspec.Struct, frozen=True, kw_only=True):
    """A restore that was tried. `last_us`: the last moment the copy knows of, None if it cannot be read."""

    backup: Backup
    applied: tuple[str, ...]
    last_us: int | None
    took_s: float


def backup(settings: Settings, target: Path) -> Backup:
    """Copy the database to `target`, which must not exist. A copy that proves wrong is kept and says so."""
    target = target.absolute()
    if target.exists():
        raise BackupError(f"{target} exists; name another file")
    if not settings.database.is_file():
        raise BackupError(f"{settings.database} does not exist; there is nothing to back up")
    with _private_copy(settings.database, target.with_name(target.name + ".partial")) as copy:
        proved = _prove(copy, settings.keyring)
        copy.rename(target)
    sync(target.parent)
    return msgspec.structs.replace(proved, path=target)


def restore(settings: Settings, source: Path, clock: Clock) -> Restored:
    """Put a backup in place of a stopped node's database. The replaced file stays, under another name.

    Raises BackupError for a file that is damaged, of another key ring, or whose ledger does not add up.
    """
    source = source.absolute()
    if not source.is_file():
        raise BackupError(f"{source} does not exist; name a file that `gwd backup` made")
    lock = InstanceLock(settings.lock)
    try:
        incoming = settings.database.with_name(settings.database.name + ".incoming")
        with _private_copy(source, incoming) as copy:
            proved = _prove(copy, settings.keyring)
            if proved.wrong:
                raise BackupError(f"{source} was not restored: {proved.wrong}")
            entries = _entries_in(settings.database)
            replaced = _set_aside(settings.database, clock)
            give_to_owner_of(settings.directory, copy)
            copy.rename(settings.database)
        sync(settings.directory)
    finally:
        lock.close()
    return Restored(
        backup=msgspec.structs.replace(proved, path=source),
        replaced=replaced,
        lost_entries=None if entries is None else max(0, entries - proved.entries),
    )


def drill(settings: Settings, source: Path, clock: Clock) -> Drill:
    """Restore a backup into a directory of its own, migrate and recompute it there, and delete it; the node may serve.

    Raises BackupError for what is no backup; one that would not be a whole node is told in `backup.wrong`.
    """
    source = source.absolute()
    if not source.is_file():
        raise BackupError(f"{source} does not exist; name a file that `gwd backup` made")
    began_s = clock.monotonic_s()
    with (
        tempfile.TemporaryDirectory(prefix="gwd-drill-") as scratch,
        _private_copy(source, Path(scratch) / settings.database.name) as copy,
    ):
        proved = _prove(copy, settings.keyring)
        applied: tuple[str, ...] = ()
        last_us: int | None = None
        if not proved.wrong and (applied := _migrated(copy, clock)):
            proved = _prove(copy, settings.keyring)
        if not proved.wrong:
            last_us = _last_us(copy)
    return Drill(
        backup=msgspec.structs.replace(proved, path=source),
        applied=applied,
        last_us=last_us,
        took_s=clock.monotonic_s() - began_s,
    )


@contextmanager
def _private_copy(source: Path, target: Path) -> Iterator[Path]:
    """A copy from one moment, mode 0600, gone again unless it is renamed. The daemon may write meanwhile."""
    _check_room(source, target)
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        reading = _reading(source)
        writing = apsw.Connection(str(target))
        try:
            with writing.backup("main", reading, "main") as copying:
                copying.step(-1)
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise BackupError(
                f"{source} is damaged or no database ({error}); name a file that `gwd backup` made"
            ) from None
        finally:
            writing.close()
            with suppress(apsw.IOError, apsw.FullError):  # the log is the node's to write back
                reading.close()
        yield target
    except apsw.FullError:
        raise _no_room(source, target) from None
    finally:
        for leftover in _with_logs(target):
            leftover.unlink(missing_ok=True)


def _check_room(source: Path, target: Path) -> None:
    """Before anything is written. The copy is proved where it lies, which takes a log beside it."""
    if not target.parent.is_dir():
        raise BackupError(f"{target.parent} is no directory; make it, or name another file")
    if shutil.disk_usage(target.parent).free < _size(source) + PROOF_BYTES:
        raise _no_room(source, target)


def _no_room(source: Path, target: Path) -> BackupError:
    free = shutil.disk_usage(target.parent).free
    return BackupError(
        f"there is no room for a copy in {target.parent}: {_size(source) + PROOF_BYTES:,} bytes are needed, {free:,} "
        "are free; nothing is left there. Make room, or name a file on another disk"
    )


def _size(source: Path) -> int:
    return sum(file.stat().st_size for file in _with_logs(source) if file.exists())


def _reading(source: Path) -> apsw.Connection:
    try:
        return apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.CantOpenError as error:
        raise BackupError(f"{source} cannot be read ({error})") from None


def _prove(path: Path, ring: Path) -> Backup:
    """Open the copy as a node would, and leave one file that can be carried away."""
    entries, wrong = 0, ""
    try:
        missing = migrations.pending(str(path))
        if len(missing) == len(migrations.names()):
            raise BackupError("the file holds no node; name one that `gwd backup` made")
        connection = open_connection(str(path), "writer")
        try:
            with transaction(connection, "DEFERRED"):
                # An older schema is verified by the version that wrote it; `gwd serve` brings it up to date.
                entries, wrong = (0, "") if missing else _verified(connection, ring)
            connection.execute("PRAGMA journal_mode=DELETE")
        finally:
            connection.raw.close()
    except apsw.FullError:
        raise
    except apsw.Error as error:
        wrong = f"the file is damaged: {error}"
    return Backup(
        path=path,
        size_bytes=path.stat().st_size,
        sha256=_digest(path),
        entries=entries,
        wrong=wrong,
    )


def _verified(connection: Connection, ring: Path) -> tuple[int, str]:
    """How many ledger entries there are, and the first thing that is wrong."""
    damage = connection.row("PRAGMA integrity_check(1)")
    assert damage is not None
    if damage[0] != "ok":
        return 0, f"the file is damaged: {' '.join(damage[0].split())}"
    found = proof.verify(connection)
    try:
        known = keyring.read(ring)
        setup.check_ring(connection, known)
    except (keyring.KeyRingError, setup.WrongKeyRingError) as error:
        return found.checked, str(error)
    if absent := secrets.missing(connection, known):
        return found.checked, (
            f"its secrets are sealed by {', '.join(absent)}, which {ring} has not; name the copy of the key ring that"
            " has it with GWD_STORE_KEYRING, and put that copy in place as well"
        )
    return found.checked, "" if found.ok else found.differences[0].message


def _migrated(copy: Path, clock: Clock) -> tuple[str, ...]:
    try:
        return tuple(migrations.migrate(str(copy), clock))
    except apsw.FullError:
        raise
    except apsw.Error as error:
        raise BackupError(f"the backup cannot be brought up to this version: {error}") from None


def _last_us(database: Path) -> int | None:
    connection = open_connection(str(database), "reader")
    try:
        with transaction(connection, "DEFERRED"):
            return time_repair.last_known_us(connection)
    finally:
        connection.raw.close()


def _entries_in(database: Path) -> int | None:
    if not database.is_file():
        return 0
    try:
        connection = open_connection(str(database), "reader")
        try:
            with transaction(connection, "DEFERRED"):
                row = connection.row("SELECT COUNT(*) FROM entry")
                return None if row is None else row[0]
        finally:
            connection.raw.close()
    except apsw.Error:
        return None


def _set_aside(database: Path, clock: Clock) -> Path | None:
    """Rename the present file. Its log first: beside another database it would be taken for that one's."""
    if not database.is_file():
        return None
    with suppress(apsw.Error):
        open_connection(
            str(database), "writer"
        ).raw.close()  # writes the log back, where that can be done
    stamp = iso(clock.now_us() // US_PER_S * US_PER_S).replace(":", "").replace("-", "")
    aside = database.with_name(f"{database.name}.replaced-{stamp}")
    for old, new in zip(_with_logs(database), _with_logs(aside), strict=True):
        if old.exists():
            old.rename(new)
    return aside


def _with_logs(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in ("-wal", "-shm", "")]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
