"""gwd init: a node made whole or not at all."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gwd import __version__, ledger
from gwd.audit.tables import AuditTable
from gwd.core.clock import SystemClock
from gwd.credentials import keyring
from gwd.keys import admission, secret
from gwd.keys.tables import KeyTable
from gwd.management import setup
from gwd.node import init as node_init
from gwd.orgs import members, organizations, workspaces
from gwd.store.connection import open_connection
from tests.commands.conftest import ROOT

USD = 1_000_000_000


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def made(gwd, tmp_path):
    done = gwd("init", "--dir", "node", "--org", "Acme", "--email", "Ada@example.com",
               "--credit", "12.5", "--json")  # fmt: skip
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


@pytest.fixture
def opened(made, tmp_path):
    connection = open_connection(str(tmp_path / "node" / "gwd.db"), "reader")
    yield connection
    connection.raw.close()


def test_json_is_one_object_with_three_names(made, tmp_path):
    assert set(made) == {"management_key", "organization_id", "config"}
    assert made["config"] == str(tmp_path / "node" / "gwd.toml")


def test_directory_holds_three_files_nobody_else_can_read(made, tmp_path):
    directory = tmp_path / "node"
    assert mode(directory) == 0o700
    assert sorted(file.name for file in directory.iterdir()) == [
        "gwd.db",
        "gwd.toml",
        "keyring.json",
    ]
    assert mode(directory / "keyring.json") == 0o600
    assert mode(directory / "gwd.db") == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["node"]


def test_one_organization_one_workspace_one_owner(made, opened):
    found, count = organizations.list_organizations(opened, limit=10, offset=0)
    assert (count, found[0].name, found[0].id) == (1, "Acme", made["organization_id"])
    spaces, _ = workspaces.list_workspaces(opened, found[0].id, limit=10, offset=0)
    assert [space.slug for space in spaces] == ["default"]
    people, _ = members.list_members(opened, found[0].id, limit=10, offset=0)
    assert [(person.email, person.role) for person in people] == [("ada@example.com", "owner")]


def test_the_key_is_an_operator_key_stored_as_a_digest_only(made, opened, tmp_path):
    pepper = keyring.read(tmp_path / "node" / "keyring.json").pepper
    plaintext = made["management_key"]
    assert secret.is_well_formed(plaintext)
    found = admission.find_by_digest(opened, secret.digest(plaintext, pepper))
    assert found is not None
    assert (found.caller.kind, found.caller.role) == ("management", "operator")
    assert plaintext.encode() not in (tmp_path / "node" / "gwd.db").read_bytes()
    assert opened.count(KeyTable.select()) == 1


def test_the_key_leaves_an_audit_line(made, opened):
    lines = list(opened.run(AuditTable.select()))
    assert [(line.action, line.actor_key_id) for line in lines] == [("key.create", None)]
    assert made["management_key"] not in str(lines[0].details)


def test_credit_is_a_purchase_in_a_ledger_that_adds_up(made, opened):
    found = ledger.list_entries(
        opened, made["organization_id"], ledger.LedgerFilter(), limit=10, offset=0
    )
    (entry,) = found.rows
    assert (found.total, entry.type, entry.amount_nano) == (1, "purchase", 12 * USD + USD // 2)
    assert ledger.verify(opened).ok


def test_the_database_knows_its_key_ring(made, opened, tmp_path):
    setup.check_ring(opened, keyring.read(tmp_path / "node" / "keyring.json"))
    with pytest.raises(setup.WrongKeyRingError, match=r"restore keyring\.json"):
        setup.check_ring(opened, keyring.fresh())


def test_without_credit_and_address_the_account_is_empty_and_open(gwd, tmp_path):
    made = json.loads(gwd("init", "--json").out)
    assert made["config"] == str(tmp_path / "gwd-data" / "gwd.toml")
    connection = open_connection(str(tmp_path / "gwd-data" / "gwd.db"), "reader")
    assert ledger.free_nano(connection, made["organization_id"], now_us=SystemClock().now_us()) == 0
    assert members.emails_of_roles(connection, made["organization_id"], ["owner"]) == []
    connection.raw.close()


def test_plain_output_shows_key_once_and_warns_of_losing_the_ring(gwd):
    done = gwd("init")
    assert done.code == 0
    assert done.out.count("gwm_") == 1
    assert "losing it loses every stored secret" in done.out
    assert "gwd serve --config" in done.out


def snapshot(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def test_an_existing_node_is_refused_and_not_touched(gwd, made, tmp_path):
    before = snapshot(tmp_path / "node")
    done = gwd("init", "--dir", "node", "--json")
    assert (done.code, done.out) == (1, "")
    assert "exists and is not empty; nothing was changed" in done.err
    assert done.err.count("\n") == 1
    assert snapshot(tmp_path / "node") == before


def test_a_directory_with_anything_in_it_is_refused(gwd, tmp_path):
    (tmp_path / "node").mkdir(mode=0o755)
    (tmp_path / "node" / "notes").write_text("mine")
    assert gwd("init", "--dir", "node").code == 1
    assert snapshot(tmp_path / "node") == {"notes": b"mine"}
    assert mode(tmp_path / "node") == 0o755


def test_a_file_or_a_link_in_the_way_is_refused(gwd, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("file", "link"):
        done = gwd("init", "--dir", name)
        assert (done.code, "is not a directory" in done.err) == (1, True)
    assert (tmp_path / "file").read_text() == "mine"


def test_an_empty_directory_becomes_the_node(gwd, tmp_path):
    # systemd makes the state directory; a script may have used mktemp.
    (tmp_path / "node").mkdir(mode=0o755)
    assert gwd("init", "--dir", "node", "--json").code == 0
    assert sorted(snapshot(tmp_path / "node")) == ["gwd.db", "gwd.toml", "keyring.json"]
    assert mode(tmp_path / "node") == 0o700


@pytest.mark.parametrize("arguments", [
    ("--credit", "-1"), ("--credit", "0.0000000001"), ("--email", "ada"),
    ("--org", ""), ("--org", "x" * 500),
])  # fmt: skip
@pytest.mark.parametrize("exists", [False, True])
def test_bad_input_is_one_line_and_leaves_nothing(gwd, tmp_path, arguments, exists):
    if exists:
        (tmp_path / "node").mkdir()
    done = gwd("init", "--dir", "node", *arguments)
    assert done.code == 1
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == (["node"] if exists else [])
    assert not exists or not list((tmp_path / "node").iterdir())


@pytest.mark.parametrize("text", ["ten", "NaN", "12,50"])
def test_a_number_that_is_none_is_wrong_usage(gwd, text):
    done = gwd("init", "--credit", text)
    assert done.code == 2
    assert "12.50" in done.err if text == "12,50" else "write 25 or 0.50" in done.err


@pytest.mark.parametrize("exists", [False, True])
def test_a_failure_half_way_leaves_nothing(tmp_path, monkeypatch, exists):
    directory = tmp_path / "node"
    if exists:
        directory.mkdir()

    def fail(*_arguments, **_named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(node_init, "create_node", fail)
    with pytest.raises(OSError, match="No space left"):
        node_init.initialize(directory, setup.NewNode(organization="Acme"), SystemClock())
    assert list(tmp_path.rglob("*")) == ([directory] if exists else [])


def test_killed_at_any_moment_there_is_a_whole_node_or_none(tmp_path):
    finished = 0
    for number in range(8):
        directory = tmp_path / f"node{number}"
        process = subprocess.Popen(
            [sys.executable, "-m", "gwd", "init", "--dir", str(directory), "--json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(0.05 * (number + 1))
        process.kill()
        process.wait()
        if directory.exists():
            finished += 1
            assert sorted(snapshot(directory)) == ["gwd.db", "gwd.toml", "keyring.json"]
            connection = open_connection(str(directory / "gwd.db"), "reader")
            setup.check_ring(connection, keyring.read(directory / "keyring.json"))
            connection.raw.close()
    assert finished < 8


def test_a_key_that_could_not_be_printed_is_told_of(tmp_path):
    command = [sys.executable, "-m", "gwd"]
    done = subprocess.run(
        ["sh", "-c", '"$@" >/dev/full', "sh", *command, "init", "--dir", str(tmp_path / "node")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"gwd operator-key --new --config {tmp_path}/node/gwd.toml" in done.stderr
    assert done.stderr.count("\n") == 1
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command, "init", "--dir", str(tmp_path / "other")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "standard output is closed" in done.stderr) == (2, True)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["", " ", b"\xff"])
def test_a_directory_without_a_proper_name_is_refused(tmp_path, name):
    done = subprocess.run(
        [sys.executable, "-m", "gwd", "init", "--dir", name],
        stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_one_line(gwd):
    assert gwd("--version").out == f"gwd {__version__}\n"


def test_only_the_owner_reads_what_a_node_is_made_of(made, gwd, tmp_path):
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "node").iterdir()}
    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}
    assert "gwd.toml" in modes
