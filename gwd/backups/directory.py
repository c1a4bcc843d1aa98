"""A directory of copies: their names, the note beside each, what is left of one that was not finished."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from gwd.backups.copying import Backup, BackupError, sync_file
from gwd.core.clock import US_PER_S, iso, us_from_iso

NOTE: Final = ".json"
PARTIAL: Final = ".partial"
DAMAGED: Final = ".damaged"

_NAME: Final = re.compile(r"gwd-[0-9]{8}T[0-9]{6}Z\.db")
_LEFTOVER: Final = re.compile(
    r"gwd-[0-9]{8}T[0-9]{6}Z\.db(\.partial(-wal|-shm|-journal)?|\.json\.partial)"
)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What is written beside a copy once it is proved. It holds no secret."""

    node: str
    made_at: str
    size_bytes: int
    sha256: str
    entries: int


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """A copy that was proved when it was made, and has its size still. `by_clock`: by its name the node's own."""

    path: Path
    made_us: int
    size_bytes: int
    sha256: str
    entries: int
    by_clock: bool


def name_of(made_us: int) -> str:
    """The name of a copy that the clock makes: gwd-20261129T120000Z.db."""
    return f"gwd-{iso(made_us // US_PER_S * US_PER_S).replace('-', '').replace(':', '')}.db"


def copies(directory: Path, node: str) -> list[Copy]:
    """This node's proved copies, the oldest first; other files are passed over. Empty if it cannot be read."""
    try:
        notes = [file for file in directory.iterdir() if file.name.endswith(NOTE)]
    except OSError:
        return []
    found = [copy for file in notes if (copy := _read(file, node)) is not None]
    return sorted(found, key=lambda copy: (copy.made_us, copy.path))


def write_note(target: Path, proved: Backup, *, node: str, made_us: int) -> None:
    """Lay the note beside a copy that is about to get the name `target`: a note without its copy counts for nothing."""
    note = Note(
        node=node,
        made_at=iso(made_us),
        size_bytes=proved.size_bytes,
        sha256=proved.sha256,
        entries=proved.entries,
    )
    partial = target.with_name(f"{target.name}{NOTE}{PARTIAL}")
    partial.touch(mode=0o600)
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(note)) + b"\n")
    sync_file(partial)
    partial.rename(target.with_name(target.name + NOTE))


def remove(copy: Path) -> None:
    """The copy, then its note: what is left if this is cut off is a note without a copy."""
    copy.unlink(missing_ok=True)
    copy.with_name(copy.name + NOTE).unlink(missing_ok=True)


def set_aside(copy: Path) -> None:
    """A copy that is no longer what it was: it keeps its bytes under another name, and counts no more."""
    copy.rename(copy.with_name(copy.name + DAMAGED))
    copy.with_name(copy.name + NOTE).unlink(missing_ok=True)


def looked_at_s(copy: Path) -> float:
    """When the copy was last found to be what its note says; the time of the note's file."""
    return copy.with_name(copy.name + NOTE).stat().st_mtime


def note_look(copy: Path) -> None:
    """It was found to be that now."""
    os.utime(copy.with_name(copy.name + NOTE))


def remove_leftovers(directory: Path, node: str) -> None:
    """What a copy or a thinning that was cut off left behind; call it while nobody else makes copies here."""
    for file in directory.iterdir():
        copy = file.with_name(file.name.removesuffix(NOTE))
        is_lost_note = _NAME.fullmatch(copy.name) and file != copy and not copy.exists()
        if _LEFTOVER.fullmatch(file.name) or (is_lost_note and _note(file, node) is not None):
            file.unlink(missing_ok=True)


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Nobody else makes copies here meanwhile. Raises BackupError if somebody does."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise BackupError(
            f"{directory} is no directory that can be read ({error.strerror}); make it, or name another with"
            " [backup] directory"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"another copy is being made in {directory}; it goes on") from None
        except OSError:
            pass  # a file system without locks on directories
        yield
    finally:
        os.close(descriptor)


def _read(file: Path, node: str) -> Copy | None:
    path = file.with_name(file.name.removesuffix(NOTE))
    note = _note(file, node)
    try:
        if note is None or path.stat().st_size != note.size_bytes:
            return None
    except OSError:
        return None
    return Copy(
        path=path,
        made_us=us_from_iso(note.made_at),
        size_bytes=note.size_bytes,
        sha256=note.sha256,
        entries=note.entries,
        by_clock=_NAME.fullmatch(path.name) is not None,
    )


def _note(file: Path, node: str) -> Note | None:
    """The note of a copy of this node; None of anything else."""
    try:
        note = msgspec.json.decode(file.read_bytes(), type=Note)
        us_from_iso(note.made_at)
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    return note if note.node == node else None
