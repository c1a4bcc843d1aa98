"""A copy of the database from one moment, and its proof: opened as a node would, and recomputed."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import apsw
import msgspec

from gwd import proof
from gwd.credentials import keyring
from gwd.management import secrets, setup
from gwd.store import Connection, migrations
from gwd.store.connection import BUSY_TIMEOUT_MS, open_connection, transaction

PROOF_BYTES: Final = 1024 * 1024
PIECE_PAGES: Final = 1_000
"""4 MiB; each is on the disk before the next, so that nobody waits behind all of it at the end."""


class BackupError(RuntimeError):
    """The copy cannot be made, or must not be put back; the text says why and what would help."""


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """A copy that was opened again and recomputed. `wrong` is empty when it is a whole node."""

    path: Path
    size_bytes: int
    sha256: str
    entries: int
    wrong: str = ""


@contextmanager
def private_copy(source: Path, target: Path) -> Iterator[Path]:
    """A copy from one moment, mode 0600, gone again unless it is renamed. The daemon may write meanwhile."""
    _check_room(source, target)
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        _copy(source, target)
        yield target
    except apsw.FullError:
        raise _no_room(source, target) from None
    finally:
        for leftover in with_logs(target):
            leftover.unlink(missing_ok=True)


def prove(path: Path, ring: Path) -> Backup:
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
        sha256=digest(path),
        entries=entries,
        wrong=wrong,
    )


def with_logs(database: Path) -> list[Path]:
    """The file, after what SQLite may have laid beside it."""
    suffixes = ("-wal", "-shm", "-journal", "")
    return [database.with_name(database.name + suffix) for suffix in suffixes]


def size_of(database: Path) -> int:
    """What a copy of it takes, in bytes."""
    return sum(file.stat().st_size for file in with_logs(database) if file.exists())


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_file(path: Path) -> None:
    """After this a power cut takes nothing of the file away."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(source: Path, target: Path) -> None:
    """In pieces of one snapshot: held open, it does not begin anew when the daemon writes."""
    reading = _reading(source)
    writing = apsw.Connection(str(target))
    try:
        reading.set_busy_timeout(BUSY_TIMEOUT_MS)
        reading.execute("BEGIN")
        reading.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        writing.execute("PRAGMA synchronous=OFF")  # a piece is synced here; half a copy is no copy
        with writing.backup("main", reading, "main") as copying:
            while not copying.done:
                copying.step(PIECE_PAGES)
                sync_file(target)
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise BackupError(
            f"{source} is damaged or no database ({error}); name a file that `gwd backup` made"
        ) from None
    finally:
        writing.close()
        with suppress(apsw.IOError, apsw.FullError):  # the log is the node's to write back
            reading.close()


def _check_room(source: Path, target: Path) -> None:
    """Before anything is written. The copy is proved where it lies, which takes a log beside it."""
    if not target.parent.is_dir():
        raise BackupError(f"{target.parent} is no directory; make it, or name another file")
    if shutil.disk_usage(target.parent).free < size_of(source) + PROOF_BYTES:
        raise _no_room(source, target)


def _no_room(source: Path, target: Path) -> BackupError:
    free = shutil.disk_usage(target.parent).free
    return BackupError(
        f"there is no room for a copy in {target.parent}: {size_of(source) + PROOF_BYTES:,} bytes are needed, {free:,} "
        "are free; nothing is left there. Make room, or name a file on another disk"
    )


def _reading(source: Path) -> apsw.Connection:
    try:
        return apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.CantOpenError as error:
        raise BackupError(f"{source} cannot be read ({error})") from None


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
