"""`gwd backup` and `gwd restore`: a consistent copy of the database, taken also while it serves, and put back.

The key ring is not in a backup: whoever has both can read every stored secret.
"""

import tempfile
from contextlib import suppress
from pathlib import Path

import apsw
import msgspec

from gwd.backups.copying import Backup, BackupError, private_copy, prove, with_logs
from gwd.backups.directory import NOTE, PARTIAL, copies
from gwd.backups.making import name_copy, node_of
from gwd.core.clock import US_PER_S, Clock, SystemClock, iso
from gwd.management import time_repair
from gwd.node.files import give_to_owner_of, sync
from gwd.settings import Settings
from gwd.store import migrations
from gwd.store.connection import open_connection, require, transaction
from gwd.store.lock import InstanceLock


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What was put back. `lost_entries`: ledger lines only the replaced file has; None: it cannot be read.

    `has_log`: what was revoked since is on record beside the database, and the next start revokes it again.
    """

    backup: Backup
    replaced: Path | None
    lost_entries: int | None
    has_log: bool


class Drill(msgspec.Struct, frozen=True, kw_only=True):
    """A restore that was tried. `last_us`: the last moment the copy knows of, None if it cannot be read."""

    backup: Backup
    applied: tuple[str, ...]
    last_us: int | None
    took_s: float


def backup(settings: Settings, target: Path) -> Backup:
    """Copy the database to `target`, which must not exist. A copy that proves wrong is kept and says so.

    One that is proved in the directory of [backup] counts as those of the clock do, and is not thinned.
    """
    target = target.absolute()
    if target.exists():
        raise BackupError(f"{target} exists; name another file")
    if not settings.database.is_file():
        raise BackupError(f"{settings.database} does not exist; there is nothing to back up")
    made_us = SystemClock().now_us() // US_PER_S * US_PER_S
    counts = _is_same(target.parent, settings.backup.directory)
    with private_copy(settings.database, target.with_name(target.name + PARTIAL)) as copy:
        proved = prove(copy, settings.keyring)
        if counts and not proved.wrong:
            give_to_owner_of(target.parent, copy)
            name_copy(copy, target, proved, node=node_of(settings.database), made_us=made_us)
            give_to_owner_of(target.parent, target.with_name(target.name + NOTE))
        else:
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
        with private_copy(source, incoming) as copy:
            proved = prove(copy, settings.keyring)
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
        has_log=settings.revocations.is_file(),
        lost_entries=None if entries is None else max(0, entries - proved.entries),
    )


def newest(settings: Settings) -> Path:
    """The newest proved copy in the directory of [backup]. Raises BackupError if there is none."""
    place = settings.backup.directory
    if not place:
        raise BackupError("[backup] directory is not set; name a file that `gwd backup` made")
    require(settings.database)
    found = copies(Path(place), node_of(settings.database))
    if not found:
        raise BackupError(
            f"there is no proved copy of this node in {place}; `gwd backup` makes one"
        )
    return found[-1].path


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
        private_copy(source, Path(scratch) / settings.database.name) as copy,
    ):
        proved = prove(copy, settings.keyring)
        applied: tuple[str, ...] = ()
        last_us: int | None = None
        if not proved.wrong and (applied := _migrated(copy, clock)):
            proved = prove(copy, settings.keyring)
        if not proved.wrong:
            last_us = _last_us(copy)
    return Drill(
        backup=msgspec.structs.replace(proved, path=source),
        applied=applied,
        last_us=last_us,
        took_s=clock.monotonic_s() - began_s,
    )


def _is_same(place: Path, directory: str) -> bool:
    return bool(directory) and place.resolve() == Path(directory).resolve()


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
    for old, new in zip(with_logs(database), with_logs(aside), strict=True):
        if old.exists():
            old.rename(new)
    return aside
