"""A continuous copy is what the database is, after every look, whatever was written, moved and begun anew between."""

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from gwd.backups import BackupError, following
from gwd.backups.following import Follower
from gwd.store.connection import open_connection

FRAMES = 60


class Followed:
    """A database that is written to as a node does it, and its follower."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "gwd.db"
        self.copies = folder / "copies"
        self.copies.mkdir()
        self.writer = open_connection(str(self.database), "writer").raw
        self.writer.set_busy_timeout(0)
        self.writer.execute("PRAGMA wal_autocheckpoint=0")
        self.writer.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x BLOB)")
        self.number = 0
        self.follower = Follower(self.database, self.copies)
        self.follower.begin()

    def write(self, rows: int = 1, size: int = 100) -> None:
        self.writer.execute("BEGIN IMMEDIATE")
        for _ in range(rows):
            self.number += 1
            self.writer.execute("INSERT INTO t VALUES (?, randomblob(?))", (self.number, size))
        self.writer.execute("COMMIT")

    def erase(self) -> None:
        self.writer.execute("DELETE FROM t WHERE id % 3 = 0")

    def checkpoint(self, mode: int = apsw.SQLITE_CHECKPOINT_PASSIVE) -> None:
        with suppress(apsw.BusyError):
            self.writer.wal_checkpoint(mode=mode)

    def copy(self) -> str:
        """What somebody who takes the directory away finds in it."""
        away = self.folder / "away"
        shutil.rmtree(away, ignore_errors=True)
        shutil.copytree(self.copies, away)
        connection = apsw.Connection(str(away / "gwd.db"))
        try:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return content(connection)
        finally:
            connection.close()

    def check(self) -> None:
        self.follower.look()
        assert self.copy() == content(self.writer)

    def salt(self) -> bytes:
        return (self.folder / "gwd.db-wal").read_bytes()[16:20]


def content(connection: apsw.Connection) -> str:
    [(found,)] = connection.execute(
        "SELECT COALESCE(group_concat(id || hex(x)), '') FROM (SELECT * FROM t ORDER BY id)"
    )
    return str(found)


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Followed]:
    monkeypatch.setattr(following, "LONG_FRAMES", FRAMES)
    made = Followed(tmp_path)
    yield made
    made.follower.close()
    made.writer.close()


def test_what_is_committed_is_taken_over(followed: Followed) -> None:
    followed.check()
    for _ in range(3):
        followed.write()
        followed.check()
    followed.write(rows=50, size=5_000)
    followed.check()
    followed.erase()
    followed.check()
    assert followed.follower.bases == 1
    assert (followed.copies / "gwd.db").stat().st_mode & 0o777 == 0o600
    assert (followed.copies / "gwd.db-wal").stat().st_mode & 0o777 == 0o600


def test_a_log_that_begins_anew_is_followed_without_another_base(followed: Followed) -> None:
    salts = set()
    for _ in range(200):
        followed.write(size=3_000)
        followed.follower.look()
        salts.add(followed.salt())
    followed.check()
    assert len(salts) > 3, "the source's log does not grow without end"
    assert (followed.folder / "gwd.db-wal").stat().st_size < 4 * FRAMES * 4_120
    assert (followed.copies / "gwd.db-wal").stat().st_size < 4 * FRAMES * 4_120
    assert followed.follower.bases == 1


def test_a_log_cannot_begin_anew_unseen(followed: Followed) -> None:
    """Two turns between looks would lose the first one's frames: the snapshot that is held does not let them happen."""
    followed.write(rows=5)
    followed.follower.look()
    followed.checkpoint()
    followed.follower.look()
    before = int.from_bytes(followed.salt(), "big")
    for _ in range(6):
        followed.write(rows=3)
        followed.checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert int.from_bytes(followed.salt(), "big") - before <= 1
    followed.check()
    assert followed.follower.bases == 1


@pytest.mark.parametrize("seed", range(4))
def test_random_lives(followed: Followed, seed: int) -> None:
    """Half of them with checkpoints that cut the log: two in a row count as two begins, which costs a base."""
    restart = apsw.SQLITE_CHECKPOINT_TRUNCATE if seed % 2 else apsw.SQLITE_CHECKPOINT_RESTART
    chance = random.Random(seed)
    reader = open_connection(str(followed.database), "reader").raw
    for _ in range(250):
        match chance.randrange(10):
            case 0 | 1 | 2 | 3:
                followed.write(rows=chance.randrange(1, 8), size=chance.choice([10, 900, 9_000]))
            case 4:
                followed.erase()
            case 5:
                followed.checkpoint()
            case 6:
                followed.checkpoint(restart)
            case 7 if not reader.in_transaction:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM t").fetchall()
            case 7 | 8:
                if reader.in_transaction:
                    reader.execute("COMMIT")
            case _:
                followed.check()
    if reader.in_transaction:
        reader.execute("COMMIT")
    followed.check()
    reader.close()
    assert followed.follower.bases == 1 or seed % 2


def test_a_follower_that_begins_again_goes_on(followed: Followed) -> None:
    followed.write(rows=9)
    followed.check()
    log = followed.copies / "gwd.db-wal"
    with log.open("ab") as file:
        file.write(b"half a frame")
    followed.write(rows=9)
    again = Follower(followed.database, followed.copies)
    again.begin()
    assert again.bases == 0
    followed.follower, old = again, followed.follower
    followed.check()
    old.close()


@pytest.mark.parametrize("spoil", ["log", "frame", "none", "database"])
def test_what_is_no_beginning_of_the_log_gets_a_base(followed: Followed, spoil: str) -> None:
    followed.write(rows=9)
    followed.check()
    log = followed.copies / "gwd.db-wal"
    match spoil:
        case "log":
            content = bytearray(log.read_bytes())
            content[17] ^= 1
            log.write_bytes(content)
        case "frame":
            content = bytearray(log.read_bytes())
            content[-4_096 - 1] ^= 1
            log.write_bytes(content)
        case "none":
            log.unlink()
        case _:
            (followed.copies / "gwd.db").unlink()
    again = Follower(followed.database, followed.copies)
    again.begin()
    assert again.bases == 1
    followed.follower, old = again, followed.follower
    followed.write()
    followed.check()
    old.close()


def test_somebody_who_reads_the_copy_is_waited_for(followed: Followed) -> None:
    followed.write(rows=4)
    followed.follower.look()
    reader = apsw.Connection(str(followed.copies / "gwd.db"), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    before = content(reader)
    for _ in range(200):
        followed.write(size=3_000)
        followed.follower.look()
    assert content(reader) == before
    reader.execute("COMMIT")
    reader.close()
    for _ in range(3):
        followed.follower.look()
    followed.check()
    assert followed.follower.bases == 1


def test_a_copy_that_somebody_wrote_to_is_not_gone_on_with(followed: Followed) -> None:
    followed.write(rows=4)
    followed.follower.look()
    apsw.Connection(str(followed.copies / "gwd.db")).execute("DELETE FROM t").fetchall()
    followed.write()
    with pytest.raises(BackupError, match="was changed by somebody else"):
        followed.follower.look()


def test_a_database_that_was_replaced_ends_it(followed: Followed) -> None:
    shutil.copy(followed.database, followed.folder / "other")
    (followed.folder / "other").rename(followed.database)
    with pytest.raises(BackupError, match="was replaced; start again"):
        followed.follower.look()
