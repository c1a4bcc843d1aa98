"""gwd backup and restore: a copy proves itself, and nothing is replaced by less than a whole node."""

import hashlib
import json
import os
import shutil
import subprocess
import time

import apsw
import httpx
import pytest

from gwd import settings
from gwd.backups import BackupError
from gwd.credentials import keyring
from gwd.node import backup
from gwd.store.lock import InstanceLock
from tests.cases.caserunner.ports import free_port
from tests.commands.conftest import ROOT
from tests.faults.test_kill_follow import wait_until_followed
from tests.flows.disk import Disk
from tests.support.quick import TRUST
from tests.support.warm import WarmProcess


@pytest.fixture
def copy(gwd, made, tmp_path):
    done = gwd("backup", "copy.db", "--config", "node")
    assert (done.code, done.err) == (0, "")
    return tmp_path / "copy.db"


def change(path, *statements):
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def names(path):
    rows = apsw.Connection(str(path)).execute("SELECT name FROM organization").fetchall()
    return [row[0] for row in rows]


def test_a_copy_is_one_private_file_that_proves_itself(gwd, copy, tmp_path):
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "node"]
    done = gwd("backup", "again.db", "--config", "node")
    digest = hashlib.sha256((tmp_path / "again.db").read_bytes()).hexdigest()
    assert f"sha256 {digest}" in done.out
    assert "1 ledger entry" in done.out


def test_an_existing_file_is_never_overwritten(gwd, copy):
    before = copy.read_bytes()
    done = gwd("backup", "copy.db", "--config", "node")
    assert (done.code, "exists; name another file" in done.err) == (1, True)
    assert copy.read_bytes() == before


def test_a_broken_node_is_copied_and_said_to_be_broken(gwd, made, tmp_path):
    change(tmp_path / "node" / "gwd.db", "UPDATE account SET pool_nano = pool_nano + 1")
    done = gwd("backup", "copy.db", "--config", "node")
    assert done.code == 1
    assert done.err.startswith("error: ")
    assert (tmp_path / "copy.db").is_file()


def test_what_came_after_the_backup_is_set_aside_and_counted(gwd, made, copy, tmp_path):
    database = tmp_path / "node" / "gwd.db"
    change(database, "UPDATE organization SET name = 'Later'")
    done = gwd("restore", "copy.db", "--config", "node", "--yes")
    assert (done.code, done.err) == (0, "")
    assert "no ledger entry was lost" in done.out
    assert "revoked after the backup work again" in done.out
    assert names(database) == ["Default"]
    aside = list((tmp_path / "node").glob("gwd.db.replaced-*"))
    assert len(aside) == 1
    assert names(aside[0]) == ["Later"]
    assert copy.is_file()
    assert gwd("check", "--config", "node").code == 0


def test_lost_ledger_entries_are_counted(gwd, made, tmp_path):
    other = json.loads(gwd("init", "--dir", "empty", "--json").out)
    shutil.copy(tmp_path / "empty" / "keyring.json", tmp_path / "node" / "keyring.json")
    assert gwd("backup", "empty.db", "--config", other["config"]).code == 0
    done = gwd("restore", "empty.db", "--config", "node", "--yes")
    assert done.code == 0
    assert "1 later ledger entry is only in the replaced database" in done.out


def test_a_lost_database_comes_back(gwd, made, copy, tmp_path):
    (tmp_path / "node" / "gwd.db").unlink()
    assert gwd("restore", "copy.db", "--config", "node", "--yes").code == 0
    assert gwd("check", "--config", "node").code == 0


def test_a_damaged_database_is_replaced_with_its_log(gwd, made, copy, tmp_path):
    database = tmp_path / "node" / "gwd.db"
    database.write_bytes(b"garbage" * 1000)
    (tmp_path / "node" / "gwd.db-wal").write_bytes(b"stale")
    done = gwd("restore", "copy.db", "--config", "node", "--yes")
    assert done.code == 0
    assert "could not be read" in done.out
    assert not (tmp_path / "node" / "gwd.db-wal").exists()
    assert gwd("check", "--config", "node").code == 0


def damage(copy, tmp_path):
    content = bytearray(copy.read_bytes())
    content[8192:12288] = b"x" * 4096
    copy.write_bytes(content)


def unbalance(copy, tmp_path):
    change(copy, "UPDATE account SET pool_nano = pool_nano + 1")


def another_ring(copy, tmp_path):
    (tmp_path / "node" / "keyring.json").unlink()
    keyring.create(tmp_path / "node" / "keyring.json")


def no_node(copy, tmp_path):
    copy.unlink()
    change(copy, "CREATE TABLE mine (x)")


def newer(copy, tmp_path):
    change(copy, "INSERT INTO schema_history VALUES ('9999_future', 1)")


@pytest.mark.parametrize("spoil", [damage, unbalance, another_ring, no_node, newer])
def test_less_than_a_whole_node_is_not_restored(gwd, made, copy, tmp_path, spoil):
    spoil(copy, tmp_path)
    before = (tmp_path / "node" / "gwd.db").read_bytes()
    done = gwd("restore", "copy.db", "--config", "node", "--yes")
    assert done.code == 1
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert (tmp_path / "node" / "gwd.db").read_bytes() == before
    assert not [file for file in (tmp_path / "node").iterdir() if "incoming" in file.name]


def test_without_yes_and_terminal_nothing_is_done(gwd, made, copy, tmp_path):
    before = (tmp_path / "node" / "gwd.db").read_bytes()
    done = gwd("restore", "copy.db", "--config", "node")
    assert (done.code, "--yes" in done.err) == (2, True)
    assert (tmp_path / "node" / "gwd.db").read_bytes() == before


def test_a_running_node_is_not_replaced(gwd, made, copy, tmp_path):
    lock = InstanceLock(tmp_path / "node" / "gwd.lock")
    try:
        done = gwd("restore", "copy.db", "--config", "node", "--yes")
    finally:
        lock.close()
    assert (done.code, "stop it first" in done.err) == (1, True)


def test_a_serving_node_is_backed_up(gwd, serve, made, tmp_path):
    port = free_port()
    url = f"http://127.0.0.1:{port}/api/v1/credits/purchases"
    with serve(port):
        bought = httpx.post(
            url,
            json={"amount": 7},
            headers={"authorization": f"Bearer {made['management_key']}"},
        )
        assert bought.status_code in (200, 201), bought.text
        done = gwd("backup", "live.db", "--config", "node")
        assert (done.code, "2 ledger entries" in done.out) == (0, True)
    assert gwd("restore", "live.db", "--config", "node", "--yes").code == 0
    assert gwd("check", "--config", "node").code == 0


def test_without_its_ring_a_copy_is_kept_and_the_ring_is_named(gwd, made, tmp_path):
    ring = tmp_path / "node" / "keyring.json"
    ring.rename(tmp_path / "ring")
    done = gwd("backup", "copy.db", "--config", "node")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert f"{ring} is missing" in done.err
    assert "1 ledger entry" in done.out
    elsewhere = {"GWD_STORE_KEYRING": str(tmp_path / "ring")}
    done = gwd("restore", "copy.db", "--config", "node", "--yes")
    assert (done.code, "GWD_STORE_KEYRING" in done.err) == (1, True)
    assert gwd("restore", "copy.db", "--config", "node", "--yes", environ=elsewhere).code == 0
    assert gwd("check", "--config", "node", environ=elsewhere).code == 0


def test_a_ring_that_cannot_be_read_leaves_the_copy_too(gwd, made, tmp_path):
    nowhere = {"GWD_STORE_KEYRING": str(tmp_path / "node" / "gwd.toml" / "ring")}
    done = gwd("backup", "copy.db", "--config", "node", environ=nowhere)
    assert (done.code, "cannot be read: Not a directory" in done.err) == (1, True)
    assert (tmp_path / "copy.db").is_file()


def test_the_lines_of_the_page_leave_a_node_whose_commands_work(gwd, made, tmp_path):
    node, ring = tmp_path / "node", tmp_path / "ring.json"
    (node / "keyring.json").rename(ring)
    page = (ROOT / "docs" / "operations.md").read_text()
    line = next(line for line in page.splitlines() if "sed -i" in line).removeprefix("sudo ")
    line = line.replace("/etc/gwd/keyring.json", str(ring)).replace("/var/lib/gwd", str(node))
    subprocess.run(["sh", "-c", line], check=True)
    for words in (("check",), ("backup", "c.db"), ("restore", "c.db", "--yes")):
        assert gwd(*words, "--config", "node").code == 0
    assert gwd("operator-key", "--new", "--config", "node").code == 0


def test_a_source_that_is_no_database_is_named(gwd, made, tmp_path):
    (tmp_path / "notes").write_text("not a database, but long enough to be read as one")
    done = gwd("restore", "notes", "--config", "node", "--yes")
    assert done.code == 1
    assert done.err.startswith(f"error: {tmp_path}/notes is damaged or no database")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_restores_belongs_to_the_nodes_user(gwd, made, copy, tmp_path):
    node = tmp_path / "node"
    for path in (node, *node.iterdir()):
        os.chown(path, 65534, 65534)
    assert gwd("restore", "copy.db", "--config", "node", "--yes").code == 0
    assert {path.name for path in node.iterdir() if path.stat().st_uid != 65534} == set()


def test_a_copy_without_room_says_where_and_how_much(made, tmp_path, monkeypatch):
    node = settings.load(tmp_path / "node", {})
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4_096))
    with pytest.raises(BackupError, match=rf"no room for a copy in {tmp_path}: .* 4,096 are"):
        backup.backup(node, tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir()] == ["node"]


def test_a_disk_that_fills_while_copying_leaves_nothing(made, tmp_path):
    node = settings.load(tmp_path / "node", {})
    disk = Disk()
    try:
        disk.free = 40_000
        with pytest.raises(BackupError, match="no room for a copy"):
            backup.backup(node, tmp_path / "copy.db")
    finally:
        disk.free = None
        disk.remove()
    assert [file.name for file in tmp_path.iterdir()] == ["node"]


def test_a_copy_into_no_directory_names_it(gwd, made, tmp_path):
    done = gwd("backup", "missing/copy.db", "--config", "node")
    assert done.code == 1
    assert f"{tmp_path / 'missing'} is no directory; make it" in done.err


def test_a_drill_says_that_a_backup_can_be_restored_and_leaves_nothing(gwd, made, copy, tmp_path):
    scratch, node = tmp_path / "scratch", tmp_path / "node"
    scratch.mkdir()
    before = {file.name: file.read_bytes() for file in node.iterdir()}
    lock = InstanceLock(node / "gwd.lock")  # the node may serve meanwhile
    try:
        environ = {"TMPDIR": str(scratch)}
        done = gwd("restore", "copy.db", "--config", "node", "--drill", environ=environ)
    finally:
        lock.close()
    assert (done.code, done.err) == (0, "")
    assert "copy.db  1 ledger entry  last moment 20" in done.out
    assert list(scratch.iterdir()) == []
    assert {name: (node / name).read_bytes() for name in before if name != "gwd.lock"} == {
        name: content for name, content in before.items() if name != "gwd.lock"
    }
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "node", "scratch"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "name the file of one copy, or --follow DIR"),
        (("copy.db", "--follow", "copies"), 2, "name the file of one copy, or --follow DIR"),
        (("--follow", "nowhere"), 1, "nowhere is no directory"),
        (("--follow", "node"), 1, "is the node's own directory"),
        (("--follow", "foreign"), 1, "that is no continuous copy"),
        (("--follow", "others"), 1, "follows another node"),
    ],
)
def test_what_cannot_be_followed_is_said(gwd, made, tmp_path, words, code, said):
    for name, file in (("copies", None), ("foreign", "gwd.db"), ("others", "gwd.follow")):
        (tmp_path / name).mkdir()
        if file is not None:
            (tmp_path / name / file).write_text("mine\n")
    done = gwd("backup", *words, "--config", "node")
    assert (done.code, said in done.err) == (code, True), done.err
    assert (tmp_path / "foreign" / "gwd.db").read_text() == "mine\n"


def test_a_continuous_copy_ends_when_it_is_asked_to_and_goes_on_later(gwd, serve, made, tmp_path):
    copies, log = tmp_path / "copies", tmp_path / "follow.log"
    copies.mkdir()
    words = ["backup", "--follow", str(copies), "--config", made["config"]]
    with serve(free_port()):
        for _ in range(2):
            given = {"PATH": os.environ["PATH"], **TRUST}
            process = WarmProcess("gwd", words, given, out=log, err=log)
            wait_until_followed(copies, process, time.time())
            second = gwd(*words)
            assert (second.code, "another copy is being made" in second.err) == (1, True)
            process.terminate()
            assert process.wait(20) == 0
    assert [line.rpartition(", ")[2] for line in log.read_text().splitlines()] == [
        "with a new copy",
        "where it ended",
    ]
    names = {file.name for file in copies.iterdir()}
    assert names == {"gwd.db", "gwd.db-wal", "gwd.follow", "gwd.revocations"}
    content = (tmp_path / "node" / "gwd.revocations").read_bytes()
    assert (copies / "gwd.revocations").read_bytes() == content
    assert gwd("restore", "copies/gwd.db", "--config", "node", "--drill").code == 0


def test_a_drill_without_a_file_takes_the_newest_copy_of_the_directory(gwd, made, tmp_path):
    (tmp_path / "copies").mkdir()
    environ = {"GWD_BACKUP_DIRECTORY": str(tmp_path / "copies")}
    line = ("restore", "--drill", "--config", "node")
    done = gwd(*line)
    assert (done.code, "[backup] directory is not set" in done.err) == (1, True)
    done = gwd(*line, environ=environ)
    assert (done.code, "there is no proved copy" in done.err) == (1, True)
    for name in ("copies/one.db", "two.db"):
        assert gwd("backup", name, "--config", "node", environ=environ).code == 0
    assert (tmp_path / "copies" / "one.db.json").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "two.db.json").exists()
    done = gwd(*line, environ=environ)
    assert (done.code, done.err) == (0, "")
    assert f"can be restored: {tmp_path}/copies/one.db" in done.out
    assert "0 h 0 min ago" in done.out
    done = gwd("restore", "--yes", "--config", "node", environ=environ)
    assert (done.code, "name the backup to put back" in done.err) == (2, True)


@pytest.mark.parametrize("spoil", [damage, unbalance, another_ring, no_node, newer])
def test_a_drill_fails_for_less_than_a_whole_node(gwd, made, copy, tmp_path, spoil):
    spoil(copy, tmp_path)
    (tmp_path / "scratch").mkdir()
    environ = {"TMPDIR": str(tmp_path / "scratch")}
    done = gwd("restore", "copy.db", "--config", "node", "--drill", environ=environ)
    assert done.code == 1
    assert done.err.startswith("error: ")
    assert "can be restored" not in done.out
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_drill_migrates_the_copy_and_recomputes_it_then(gwd, made, copy, tmp_path):
    change(copy, "DROP TABLE day_sum", "DELETE FROM schema_history WHERE name = '0019_day_sums'")
    before = copy.read_bytes()
    done = gwd("restore", "copy.db", "--config", "node", "--drill")
    assert (done.code, done.err) == (0, "")
    assert "applied 0019_day_sums to the copy" in done.out
    assert "1 ledger entry" in done.out
    assert copy.read_bytes() == before
