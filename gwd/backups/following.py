"""A continuous copy of a database that is written to: its write-ahead log, taken over frame by frame.

The directory holds a plain database and its log. SQLite opens them as it opens what a killed process left: what is
whole in the log counts, what was cut off does not. Nothing here reads or writes a page of its own.

- The source cannot begin its log anew before we have all of it: one of two connections always holds a snapshot, taken
  before the other lets go of its own. One that read from the log keeps the log; one that found all of it in the
  database keeps what comes later from being moved there, so the log begins anew at most once before the next look.
- How far the log counts is what its index says, which its writer sets once the frames are on the disk. POSIX drops a
  process's locks on a file with the first descriptor of it that is closed: that of the index stays open.
- When the source's log has begun anew, SQLite moves ours into our database and ours begins anew as well.
- A base is a copy of one moment no older than the log's begin; with every frame of the log it is the last state.
"""

import logging
import os
import struct
import time
from pathlib import Path
from typing import Final

import apsw
import msgspec

from gwd.backups.copying import BackupError, private_copy, sync_file, with_logs
from gwd.store import Connection
from gwd.store.connection import open_connection, require

LONG_FRAMES: Final = 4_000
"""16 MiB: from here on the source's log is given the chance to begin anew."""
LOCK_MS: Final = 1_000
TRIES: Final = 1_000

_HEAD: Final = struct.Struct("=IIIBBHII8s8s8s")
_VERSION: Final = 3_007_000
_WAL_HEAD: Final = 32
_FRAME_HEAD: Final = 24
_CHUNK: Final = 1024 * 1024

log = logging.getLogger(__name__)


class _Index(msgspec.Struct, frozen=True):
    """What the log's index says: its salt, how many frames count, and a page's size."""

    salt: bytes
    frames: int
    page_bytes: int


class _NotNowError(Exception):
    """Somebody reads our copy; the next look tries again."""


class Follower:
    """One for a directory of copies, in a process of its own. `frames` and `bases` are what was taken over so far."""

    def __init__(self, database: Path, directory: Path) -> None:
        require(database)
        self.frames = 0
        self.bases = 0
        self._database = database
        self._target = directory / database.name
        self._target_log = self._target.with_name(self._target.name + "-wal")
        self._old = open_connection(str(database), "reader")
        self._new = open_connection(str(database), "reader")
        self._writer = open_connection(str(database), "writer")
        self._writer.raw.set_busy_timeout(LOCK_MS)
        self._checkpointer = open_connection(str(database), "writer")
        self._checkpointer.raw.set_busy_timeout(0)
        _hold(self._old)
        self._inode = database.stat().st_ino
        self._index = os.open(f"{database}-shm", os.O_RDONLY)
        self._source = os.open(f"{database}-wal", os.O_RDONLY)
        self._log = -1
        self._salt = b""
        self._count = 0

    def begin(self) -> None:
        """Go on with the copy that is there, where it is one of this log; else begin with a base."""
        if not self._resume():
            self._base()

    def look(self) -> None:
        """Take over what was committed since the last look. Raises BackupError where the source is another file now."""
        if self._database.stat().st_ino != self._inode:
            raise BackupError(f"{self._database} was replaced; start again, with a new base")
        _hold(self._new)
        try:
            self._ship()
        except _NotNowError:
            # The older snapshot stays: what is not taken over yet is kept by it.
            _release(self._new)
            log.info("somebody reads the copy; it goes on at the next look")
            return
        _release(self._old)
        self._old, self._new = self._new, self._old
        if self._count >= LONG_FRAMES:
            self._let_go()

    def close(self) -> None:
        for connection in (self._old, self._new, self._writer, self._checkpointer):
            connection.raw.close()
        for descriptor in (self._index, self._source, self._log):
            if descriptor >= 0:
                os.close(descriptor)

    def _resume(self) -> bool:
        """Whether our log is a beginning of the source's; the frames of one that is were written to both."""
        index = self._read_index()
        if not (self._target.is_file() and self._target_log.is_file()):
            return False
        ours = os.open(self._target_log, os.O_RDWR)
        frame_bytes = _FRAME_HEAD + index.page_bytes
        count = (os.fstat(ours).st_size - _WAL_HEAD) // frame_bytes
        last = _WAL_HEAD + (count - 1) * frame_bytes
        is_same = 0 < count <= index.frames and all(
            os.pread(ours, size, at) == os.pread(self._source, size, at)
            for at, size in ((0, _WAL_HEAD), (last, _FRAME_HEAD))  # with the sum over all before
        )
        if not is_same:
            os.close(ours)
            return False
        os.ftruncate(ours, last + frame_bytes)
        self._log, self._salt, self._count = ours, index.salt, count
        os.lseek(ours, 0, os.SEEK_END)
        return True

    def _base(self) -> None:
        """A copy of the whole database in place of what is there, whose own log is moved into it before."""
        partial = self._target.with_name(f"{self._target.name}.partial")
        with private_copy(self._database, partial) as copy:
            _keep_log_mode(copy)
            sync_file(copy)
            self._drop_log()
            copy.rename(self._target)
        sync_file(self._target.parent)
        self.bases += 1
        index = self._read_index()
        self._salt, self._count = index.salt, 0
        if index.frames:
            self._begin_log(index)

    def _ship(self) -> None:
        index = self._read_index()
        if index.frames == 0:
            return
        if index.salt != self._salt:
            if index.salt[:4] != _successor(self._salt):
                log.warning("the log is not the one that comes next; the copy begins anew")
                self._base()
                return
            self._fold()
            self._begin_log(index)
        elif self._log < 0:
            self._begin_log(index)
        elif index.frames > self._count:
            self._check_ours(index)
            self._append(self._log, index)

    def _begin_log(self, index: _Index) -> None:
        """Our log from the head of the source's on; it has its name when it is on the disk."""
        partial = self._target_log.with_name(f"{self._target_log.name}.partial")
        partial.unlink(missing_ok=True)
        fresh = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        head = os.pread(self._source, _WAL_HEAD, 0)
        assert head[16:24] == index.salt, "the head is written before a frame counts"
        os.write(fresh, head)
        self._count = 0
        self._append(fresh, index)
        partial.rename(self._target_log)
        sync_file(self._target.parent)
        self._log, self._salt = fresh, index.salt

    def _append(self, descriptor: int, index: _Index) -> None:
        frame_bytes = _FRAME_HEAD + index.page_bytes
        at, end = (_WAL_HEAD + count * frame_bytes for count in (self._count, index.frames))
        while at < end:
            piece = os.pread(self._source, min(_CHUNK, end - at), at)
            written = os.write(descriptor, piece)
            if not written:
                raise BackupError(f"{self._database}-wal ends before its index says; start again")
            at += written
        os.fsync(descriptor)
        self.frames += index.frames - self._count
        self._count = index.frames

    def _check_ours(self, index: _Index) -> None:
        """A stranger that opened the copy for writing may have taken its log away."""
        wanted = _WAL_HEAD + self._count * (_FRAME_HEAD + index.page_bytes)
        try:
            is_ours = self._target_log.samefile(f"/proc/self/fd/{self._log}")
        except OSError:
            is_ours = False
        if not is_ours or os.fstat(self._log).st_size != wanted:
            raise BackupError(
                f"{self._target} was changed by somebody else; start again, with a new base, and restore from it only"
                " with `gwd restore`"
            )

    def _fold(self) -> None:
        """Move our log into our database: all of it, or nothing is said to be done."""
        if self._log < 0:
            return
        moved = _checkpointed(self._target)
        if moved != self._count:
            raise BackupError(
                f"{self._target}: {moved} of {self._count} frames could be moved; start again, with a new base"
            )
        os.close(self._log)
        self._log = -1

    def _drop_log(self) -> None:
        """Before another base takes the place of ours: alone it is as old as its last turn, so its log goes into it."""
        if self._log >= 0:
            os.close(self._log)
            self._log = -1
        if self._target.is_file() and self._target_log.is_file():
            try:
                _checkpointed(self._target)
            except apsw.Error as error:
                log.warning("the copy that is there cannot be read (%s); it is replaced", error)
        for leftover in with_logs(self._target)[:-1]:
            leftover.unlink(missing_ok=True)

    def _let_go(self) -> None:
        """Have the source's log begin anew: nobody writes for the moment in which all of it is moved and taken over."""
        self._checkpoint()
        try:
            self._writer.raw.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return
        try:
            self._ship()
            self._checkpoint()
            _hold(self._new)
            _release(self._old)
            self._old, self._new = self._new, self._old
        except _NotNowError:
            log.info("somebody reads the copy; the log begins anew later")
        finally:
            self._writer.raw.execute("ROLLBACK")

    def _checkpoint(self) -> None:
        """As far as readers allow; another one may be at it."""
        try:
            self._checkpointer.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            log.debug("the log is being moved by somebody else")

    def _read_index(self) -> _Index:
        """The index's head stands twice; its writer makes the two differ while it writes."""
        for _ in range(TRIES):
            head = os.pread(self._index, 2 * _HEAD.size, 0)
            one, two = head[: _HEAD.size], head[_HEAD.size :]
            version, _, _, is_ready, _, page, frames, _, _, salt, _ = _HEAD.unpack(one)
            if one == two and is_ready and version == _VERSION:
                return _Index(salt, frames, 65_536 if page == 1 else page)
            time.sleep(0.001)
        raise BackupError(f"{self._database}-shm cannot be read; this SQLite writes another form")


def _hold(connection: Connection) -> None:
    connection.raw.execute("BEGIN")
    connection.row("SELECT 1 FROM sqlite_master LIMIT 1")


def _release(connection: Connection) -> None:
    connection.raw.execute("COMMIT")


def _successor(salt: bytes) -> bytes:
    """The first half of the salt counts how often a log began."""
    return ((int.from_bytes(salt[:4], "big") + 1) & 0xFFFF_FFFF).to_bytes(4, "big")


def _keep_log_mode(copy: Path) -> None:
    """The copy is a database with a log, as its source is."""
    connection = apsw.Connection(str(copy))
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()


def _checkpointed(database: Path) -> int:
    """Move the log of a database that nobody uses into it, and remove it; how many frames. Raises _NotNowError."""
    connection = apsw.Connection(str(database))
    try:
        connection.execute(
            "PRAGMA locking_mode=EXCLUSIVE"
        )  # an index of its own, read from the log
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        frames, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
        return moved if moved == frames else -1
    except apsw.BusyError:
        raise _NotNowError from None
    finally:
        connection.close()
