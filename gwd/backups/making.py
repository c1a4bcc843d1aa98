"""One copy by the clock, from what a copy that was cut off left to the copies that are thinned."""

import shutil
from pathlib import Path

import apsw
import msgspec

from gwd.backups import directory
from gwd.backups.copying import Backup, BackupError, digest, private_copy, prove, size_of, sync_file
from gwd.backups.directory import Copy
from gwd.backups.rhythm import AHEAD_US, Keep, kept
from gwd.core.vitals import LITTLE_BYTES
from gwd.orgs import organizations
from gwd.store.connection import open_connection, transaction


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to copy, where to, which moment it gets its name from, and what is kept."""

    database: Path
    ring: Path
    directory: Path
    made_us: int
    keep: Keep


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an order. `wrong` is empty when there is a new proved copy; `damaged` are older ones set aside.

    `is_unproved`: a copy was made, and is not a whole node.
    """

    wrong: str = ""
    is_unproved: bool = False
    size_bytes: int = 0
    entries: int = 0
    thinned: int = 0
    damaged: tuple[str, ...] = ()


def make(order: Order) -> Made:
    """Copy, prove, give the copy its name, look at one older copy again, and thin.

    A copy that proves wrong is deleted: the database it came from is there to be looked at, and nothing is thinned.
    """
    try:
        with directory.alone(order.directory):
            node = node_of(order.database)
            directory.remove_leftovers(order.directory, node)
            target = order.directory / directory.name_of(order.made_us)
            proved = _copied(order, target, node)
            if proved.wrong:
                return Made(wrong=f"the copy is not a whole node: {proved.wrong}", is_unproved=True)
            older = [copy for copy in _of_the_past(order, node) if copy.path != target]
            damaged = _look_again(older)
            return Made(
                size_bytes=proved.size_bytes,
                entries=proved.entries,
                thinned=_thin(order, node),
                damaged=damaged,
            )
    except (BackupError, OSError) as error:
        return Made(wrong=str(error))
    except apsw.Error as error:
        return Made(wrong=f"the database cannot be read: {error}")


def node_of(database: Path) -> str:
    """What tells this node's copies from another's: its operator's organization."""
    connection = open_connection(str(database), "reader")
    try:
        with transaction(connection, "DEFERRED"):
            return organizations.operator_id(connection) or ""
    finally:
        connection.raw.close()


def name_copy(copy: Path, target: Path, proved: Backup, *, node: str, made_us: int) -> None:
    """Give a proved copy its name, so that it counts from now on and outlasts a power cut."""
    sync_file(copy)
    directory.write_note(target, proved, node=node, made_us=made_us)
    copy.rename(target)
    sync_file(target.parent)


def _copied(order: Order, target: Path, node: str) -> Backup:
    if target.exists():
        raise BackupError(f"{target} exists; the next copy has another name")
    _check_reserve(order)
    with private_copy(order.database, target.with_name(target.name + directory.PARTIAL)) as copy:
        proved = prove(copy, order.ring)
        if not proved.wrong:
            name_copy(copy, target, proved, node=node, made_us=order.made_us)
    return proved


def _check_reserve(order: Order) -> None:
    """On the disk of the database, a copy leaves the node what it needs to go on serving."""
    if order.directory.stat().st_dev != order.database.stat().st_dev:
        return
    free = shutil.disk_usage(order.directory).free
    if free - size_of(order.database) < LITTLE_BYTES:
        raise BackupError(
            f"{order.directory} is on the disk of the database, {free:,} bytes are free there, and a copy would leave"
            f" less than {LITTLE_BYTES:,}; free space, or name a directory on another disk with [backup] directory"
        )


def _of_the_past(order: Order, node: str) -> list[Copy]:
    """Those that a wrong clock did not date into the future; the others are left alone."""
    found = directory.copies(order.directory, node)
    return [copy for copy in found if copy.made_us <= order.made_us + AHEAD_US]


def _look_again(older: list[Copy]) -> tuple[str, ...]:
    """Read again the copy that was read longest ago, which its note's time says: disks lose bytes without a word."""
    if not older:
        return ()
    copy = min(older, key=lambda copy: directory.looked_at_s(copy.path))
    if _is_whole(copy):
        directory.note_look(copy.path)
        return ()
    directory.set_aside(copy.path)
    return (copy.path.name,)


def _is_whole(copy: Copy) -> bool:
    try:
        return digest(copy.path) == copy.sha256
    except OSError:
        return False


def _thin(order: Order, node: str) -> int:
    """Remove the copies of the clock that no hour, day or week needs; the newest always stays."""
    found = _of_the_past(order, node)
    stay = kept([copy.made_us for copy in found], order.keep)
    gone = [copy for copy in found if copy.by_clock and copy.made_us not in stay]
    for copy in gone:
        directory.remove(copy.path)
    return len(gone)
