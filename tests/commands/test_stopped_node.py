"""gwd check, migrate and operator-key: a node that does not serve is looked after by one process at a time."""

import subprocess
import sys
import time

import apsw
import msgspec
import pytest

from gwd import ledger, proof
from gwd.credentials import keyring
from gwd.credentials.vault import Vault
from gwd.keys import admission, secret
from gwd.store import migrations
from gwd.store.connection import open_connection, transaction
from gwd.store.lock import InstanceLock


@pytest.fixture
def node(gwd, tmp_path):
    assert gwd("init", "--dir", "node", "--credit", "5", "--json").code == 0
    return tmp_path / "node"


def change(node, *statements):
    connection = apsw.Connection(str(node / "gwd.db"))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_a_sound_node_passes(gwd, node):
    done = gwd("check", "--config", "node")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("ok ") for line in lines)


def test_the_configuration_may_be_named_in_the_environment(gwd, node):
    assert gwd("check", environ={"GWD_CONFIG": str(node / "gwd.toml")}).code == 0


def test_a_cached_balance_that_differs_from_its_entries_is_found(gwd, node):
    change(node, "UPDATE account SET pool_nano = pool_nano + 1, funding_nano = funding_nano - 1")
    done = gwd("check", "--config", "node")
    assert done.code == 1
    assert "wrong  ledger" in done.out
    assert "I2 org_" in done.out


def test_an_entry_changed_behind_the_triggers_breaks_the_chain(gwd, node):
    names = [
        row[0]
        for row in apsw.Connection(str(node / "gwd.db")).execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'entry'"
        )
    ]
    change(node, *(f"DROP TRIGGER {name}" for name in names), "UPDATE entry SET note = 'a gift'")
    done = gwd("check", "--config", "node")
    assert (done.code, "I16" in done.out) == (1, True)


def test_a_history_that_was_cut_off_does_not_contain_the_head_that_was_kept(gwd, node, tmp_path):
    vault = Vault(keyring.read(node / "keyring.json"))
    connection = open_connection(str(node / "gwd.db"), "reader")
    head = proof.take(connection, vault, now_us=0)
    connection.raw.close()
    kept = tmp_path / "head.json"
    kept.write_bytes(msgspec.json.encode(head))
    assert gwd("check", "--config", "node", "--head", str(kept)).code == 0
    for spoilt in (b"a head", b"{}", msgspec.json.encode(head).replace(b"1970", b"1971")):
        (tmp_path / "spoilt.json").write_bytes(spoilt)
        done = gwd("check", "--config", "node", "--head", str(tmp_path / "spoilt.json"))
        assert (done.code, "wrong  ledger: not verified" in done.out) == (1, True)
    change(
        node,
        "DROP TRIGGER audit_no_delete",
        "DELETE FROM audit",
        "DELETE FROM audit_end",
        "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    )
    assert gwd("check", "--config", "node").code == 0
    done = gwd("check", "--config", "node", "--head", str(kept))
    assert (done.code, "the audit trail was cut off" in done.out) == (1, True)


def test_another_key_ring_is_found(gwd, node):
    (node / "keyring.json").unlink()
    keyring.create(node / "keyring.json")
    done = gwd("check", "--config", "node")
    assert done.code == 1
    assert "wrong  key ring" in done.out
    assert "restore keyring.json" in done.out


def test_a_ring_that_others_can_read_is_found(gwd, node):
    (node / "keyring.json").chmod(0o644)
    done = gwd("check", "--config", "node")
    assert (done.code, "chmod 600" in done.out) == (1, True)


def test_a_damaged_file_is_one_line(gwd, node):
    content = bytearray((node / "gwd.db").read_bytes())
    content[0:16] = b"not a database!!"
    (node / "gwd.db").write_bytes(content)
    done = gwd("check", "--config", "node")
    assert done.code == 1
    assert done.err.startswith("error: the database is damaged")
    assert done.err.count("\n") == 1


def test_a_missing_database_is_one_line(gwd, node):
    (node / "gwd.db").unlink()
    for command in (("check",), ("migrate",), ("operator-key", "--new")):
        done = gwd(*command, "--config", "node")
        assert (done.code, "does not exist" in done.err) == (1, True)
    assert not (node / "gwd.db").exists()


def test_a_node_that_runs_is_left_alone(gwd, node):
    lock = InstanceLock(node / "gwd.lock")
    try:
        for command in (
            ("check",),
            ("migrate",),
            ("migrate", "--dry-run"),
            ("clock",),
            ("clock", "--mend", "--by", "ana", "--why", "it was ahead"),
            ("operator-key", "--new"),
        ):
            done = gwd(*command, "--config", "node")
            assert done.code == 1
            assert "stop it first" in done.err
    finally:
        lock.close()


def test_a_node_that_runs_is_left_alone_although_its_lock_file_was_deleted(gwd, node):
    lock = InstanceLock(node / "gwd.lock")
    try:
        (node / "gwd.lock").unlink()
        done = gwd("check", "--config", "node")
        assert (done.code, "stop it first" in done.err) == (1, True)
    finally:
        lock.close()


def test_a_ledger_that_is_ahead_is_found_and_mended_with_a_name_and_a_reason(gwd, node):
    done = gwd("clock", "--config", "node")
    assert (done.code, "no ledger entry lies in the future" in done.out) == (0, True)
    at_us = time.time_ns() // 1_000 + 400 * 86_400_000_000
    connection = open_connection(str(node / "gwd.db"), "writer")
    with transaction(connection, "IMMEDIATE"):
        (name,) = connection.row("SELECT organization_id FROM account") or ("",)
        gift = ledger.NewCredit(kind="granted", type="grant", amount_nano=1_000_000_000)
        ledger.add_credit(connection, name, gift, now_us=at_us)
    connection.raw.close()
    done = gwd("check", "--config", "node")
    assert (done.code, "gwd clock --mend --by NAME --why TEXT" in done.out) == (1, True)
    done = gwd("clock", "--config", "node")
    assert (done.code, f"{name} is ahead" in done.out) == (1, True)
    done = gwd("clock", "--config", "node", "--mend", "--by", "ana")
    assert (done.code, "--by NAME --why TEXT" in done.err) == (2, True)
    done = gwd("clock", "--config", "node", "--mend", "--by", "ana", "--why", "a year ahead")
    assert (done.code, f"{name} goes on from" in done.out) == (0, True)
    assert gwd("clock", "--config", "node").code == 0
    done = gwd("check", "--config", "node")
    assert (done.code, "wrong" in done.out) == (0, False)
    done = gwd("clock", "--config", "node", "--mend", "--by", "ana", "--why", "once more")
    assert "nothing was done" in done.out


def test_migrate_has_nothing_to_do_on_a_new_node(gwd, node):
    assert gwd("migrate", "--config", "node").out == "nothing to apply\n"
    assert gwd("migrate", "--config", "node", "--dry-run").out == "nothing to apply\n"


def test_dry_run_names_what_is_missing_and_applies_nothing(gwd, node):
    (node / "gwd.db").unlink()
    apsw.Connection(str(node / "gwd.db")).close()
    for _ in range(2):
        done = gwd("migrate", "--config", "node", "--dry-run")
        assert done.out.splitlines() == [f"would apply {name}" for name in migrations.names()]
    done = gwd("migrate", "--config", "node")
    assert done.out.splitlines() == [f"applied {name}" for name in migrations.names()]
    assert gwd("migrate", "--config", "node").out == "nothing to apply\n"
    assert "holds no node" in gwd("check", "--config", "node").out


def test_a_schema_behind_this_version_fails_the_check(gwd, node):
    change(node, "DELETE FROM schema_history WHERE name = '0001_initial'")
    done = gwd("check", "--config", "node")
    assert (done.code, "run `gwd migrate`" in done.out) == (1, True)


def test_a_newer_schema_is_refused(gwd, node):
    change(node, "INSERT INTO schema_history VALUES ('9999_future', 1)")
    for command in (("check",), ("migrate",)):
        done = gwd(*command, "--config", "node")
        assert (done.code, "written by a newer gwd" in done.err) == (1, True)


def test_a_new_operator_key_works_and_is_alone_on_stdout(gwd, node):
    done = gwd("operator-key", "--new", "--config", "node")
    assert done.code == 0
    plaintext = done.out.strip()
    assert secret.is_well_formed(plaintext)
    connection = open_connection(str(node / "gwd.db"), "reader")
    digest = secret.digest(plaintext, keyring.read(node / "keyring.json").pepper)
    found = admission.find_by_digest(connection, digest)
    connection.raw.close()
    assert found is not None
    assert found.caller.role == "operator"
    assert gwd("check", "--config", "node").code == 0


def test_an_operator_key_is_not_made_with_a_foreign_ring(gwd, node):
    (node / "keyring.json").unlink()
    keyring.create(node / "keyring.json")
    done = gwd("operator-key", "--new", "--config", "node")
    assert (done.code, done.out) == (1, "")
    assert "restore keyring.json" in done.err


def test_operator_key_without_new_says_what_it_would_do(gwd, node):
    done = gwd("operator-key", "--config", "node")
    assert (done.code, "--new" in done.err) == (2, True)


def test_help_needs_none_of_the_house(gwd):
    # Only the command that runs may import the rooms: help must answer at once.
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gwd", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & {
        "sanic",
        "peewee",
        "apsw",
        "httpx",
        "gwd.settings",
        "rich.table",
    }
    for command in ("init", "check", "migrate", "operator-key"):
        assert command in done.stdout


def test_a_setting_that_is_wrong_is_one_line_without_a_trace(gwd, node):
    (node / "gwd.toml").write_text("[server]\nprot = 1\n")
    done = gwd("check", "--config", "node")
    assert done.code == 1
    assert done.err == f"error: {node}/gwd.toml: [server] prot is no setting; did you mean port?\n"
