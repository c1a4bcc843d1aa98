"""One copy by the clock: proved before it has its name, thinned by the rules, and nothing foreign touched."""

import shutil
from pathlib import Path

import apsw
import msgspec
import pytest

from gwd.backups import copying, directory, making
from gwd.backups.making import Order, make
from gwd.backups.rhythm import HOUR_US, Keep
from gwd.core.clock import US_PER_S, SystemClock, iso
from gwd.management.setup import NewNode
from gwd.node.init import initialize
from tests.support.store import NOW_US

START_US = NOW_US // HOUR_US * HOUR_US


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "node"
    initialize(folder, NewNode(organization="Acme"), SystemClock())
    return folder


@pytest.fixture
def order(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Order:
    monkeypatch.setattr(making, "LITTLE_BYTES", 0)  # the machine's disk is its own business
    shutil.copytree(made, tmp_path / "node")
    (tmp_path / "copies").mkdir()
    return Order(
        database=tmp_path / "node" / "gwd.db",
        ring=tmp_path / "node" / "keyring.json",
        directory=tmp_path / "copies",
        made_us=START_US,
        keep=Keep(hourly=3, daily=2, weekly=0),
    )


def later(order: Order, hours: int) -> Order:
    return msgspec.structs.replace(order, made_us=START_US + hours * HOUR_US)


def names(order: Order) -> list[str]:
    return sorted(file.name for file in order.directory.iterdir())


def name(hours: int) -> str:
    return directory.name_of(START_US + hours * HOUR_US)


def found(order: Order) -> list[directory.Copy]:
    return directory.copies(order.directory, making.node_of(order.database))


def test_a_copy_is_private_named_by_its_moment_and_noted(order: Order) -> None:
    done = make(order)
    assert (done.wrong, done.thinned, done.damaged) == ("", 0, ())
    assert names(order) == ["gwd-20260921T140000Z.db", "gwd-20260921T140000Z.db.json"]
    assert {file.stat().st_mode & 0o777 for file in order.directory.iterdir()} == {0o600}
    [copy] = found(order)
    assert (copy.made_us, copy.size_bytes) == (START_US, done.size_bytes)
    assert copy.by_clock
    rows = apsw.Connection(str(copy.path)).execute("SELECT name FROM organization").fetchall()
    assert rows == [("Acme",)]


def test_what_no_hour_and_no_day_needs_is_thinned_and_nothing_else(order: Order) -> None:
    foreign = {
        "gwd-monday.db": b"by hand, never proved",
        "gwd-20260101T000000Z.db": b"a name like ours without a note",
        "gwd-20260102T000000Z.db.json": b"{}",
        "letters.json": b"[1]",
        "gwd-20260103T000000Z.db.json": msgspec.json.encode(
            directory.Note(
                node="org_other", made_at=iso(START_US), size_bytes=3, sha256="", entries=1
            )
        ),
        "gwd-20260103T000000Z.db": b"abc",
    }
    for file, content in foreign.items():
        (order.directory / file).write_bytes(content)
    for hours in range(30):
        assert make(later(order, hours)).wrong == ""
    stay = [name(hours) for hours in (9, 27, 28, 29)]  # the last of Monday, and three hours
    assert [copy.path.name for copy in found(order)] == stay
    assert {file: (order.directory / file).read_bytes() for file in foreign} == foreign
    assert len(names(order)) == 2 * len(stay) + len(foreign)


def test_a_copy_by_hand_counts_and_stays(order: Order) -> None:
    assert make(order).wrong == ""
    for suffix in ("", directory.NOTE):
        (order.directory / f"{name(0)}{suffix}").rename(order.directory / f"mine.db{suffix}")
    for hours in range(1, 9):
        make(later(order, hours))
    assert [copy.path.name for copy in found(order)] == [
        "mine.db",
        *[name(hours) for hours in (6, 7, 8)],
    ]


def test_a_copy_that_proves_wrong_is_not_kept_and_nothing_is_thinned(order: Order) -> None:
    for hours in range(3):
        make(later(order, hours))
    before = names(order)
    with apsw.Connection(str(order.database)) as connection:
        connection.execute("UPDATE account SET pool_nano = pool_nano + 1")
    done = make(later(order, 30))
    assert done.is_unproved
    assert done.wrong.startswith("the copy is not a whole node: ")
    assert names(order) == before


def test_a_damaged_database_is_said_to_be(order: Order) -> None:
    order.database.write_bytes(b"garbage" * 1_000)
    assert "cannot be read" in make(order).wrong
    assert names(order) == []


@pytest.mark.parametrize("spoil", ["cut", "changed"])
def test_a_copy_that_has_changed_is_found_and_counts_no_more(order: Order, spoil: str) -> None:
    make(order)
    copy = order.directory / name(0)
    content = bytearray(copy.read_bytes())
    if spoil == "cut":
        copy.write_bytes(content[:-4096])
        assert found(order) == [], "at once, by its size"
        return
    content[-1] ^= 1
    copy.write_bytes(content)
    done = make(later(order, 1))
    assert (done.wrong, done.damaged) == ("", (name(0),))
    assert names(order) == [f"{name(0)}.damaged", name(1), f"{name(1)}.json"]


def test_every_copy_is_looked_at_again_in_turn(order: Order) -> None:
    for hours in range(3):
        make(later(order, hours))
    content = bytearray((order.directory / name(1)).read_bytes())
    content[-1] ^= 1
    (order.directory / name(1)).write_bytes(content)
    wide = msgspec.structs.replace(order, keep=Keep(hourly=99, daily=9, weekly=9))
    damaged = [make(later(wide, hours)).damaged for hours in range(3, 12)]
    assert [each for each in damaged if each] == [(name(1),)]


def test_what_was_cut_off_is_cleared_away(order: Order) -> None:
    make(order)
    for left in (
        f"{name(1)}.partial",
        f"{name(1)}.partial-journal",
        f"{name(1)}.partial-wal",
        f"{name(1)}.json.partial",
    ):
        (order.directory / left).write_bytes(b"half")
    lost = order.directory / f"{name(2)}.json"
    lost.write_bytes((order.directory / f"{name(0)}.json").read_bytes())
    make(later(order, 3))
    assert names(order) == sorted(
        f"{name(hours)}{suffix}" for hours in (0, 3) for suffix in ("", ".json")
    )


def test_only_one_makes_copies_in_a_directory(order: Order) -> None:
    with directory.alone(order.directory):
        assert "another copy is being made" in make(order).wrong
    assert make(order).wrong == ""


def test_a_directory_that_is_missing_is_named_and_not_made(order: Order) -> None:
    """A disk that is not mounted must not become a directory on the wrong one."""
    nowhere = msgspec.structs.replace(order, directory=order.directory / "off")
    done = make(nowhere)
    assert f"{nowhere.directory} is no directory" in done.wrong
    assert not nowhere.directory.exists()


def test_a_copy_does_not_take_the_last_room_of_the_nodes_disk(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "LITTLE_BYTES", 2**60)
    done = make(order)
    assert "on the disk of the database" in done.wrong
    assert "name a directory on another disk" in done.wrong
    assert names(order) == []


def test_a_copy_from_the_future_is_left_alone(order: Order) -> None:
    make(later(order, 1_000))
    for hours in range(6):
        make(later(order, hours))
    assert [copy.path.name for copy in found(order)] == [
        *[name(hours) for hours in (3, 4, 5)],
        name(1_000),
    ]


def test_writers_go_on_while_a_copy_is_made(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy is of the moment it began, though the file changes between its pieces."""
    writer = apsw.Connection(str(order.database))
    writer.execute("CREATE TABLE log_of_test (x)")
    writer.execute("INSERT INTO log_of_test VALUES (zeroblob(2000000))")
    monkeypatch.setattr("gwd.backups.copying.PIECE_PAGES", 10)
    pieces = []

    def write(_: Path) -> None:
        writer.execute("INSERT INTO log_of_test VALUES (1)")
        pieces.append(1)

    monkeypatch.setattr("gwd.backups.copying.sync_file", write)
    with copying.private_copy(order.database, order.directory / "copy") as copy:
        rows = apsw.Connection(str(copy)).execute("SELECT count(*) FROM log_of_test").fetchall()
    assert rows == [(1,)]
    assert len(pieces) > 40
    writer.close()


def test_seconds_name_a_copy() -> None:
    assert directory.name_of(START_US + 61 * US_PER_S) == "gwd-20260921T140101Z.db"
