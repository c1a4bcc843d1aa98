"""What an error advises can be done: commands and flags that exist, and nothing that destroys."""

import json
import re
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.gateway import KEY, SECRET, FakeGateway, error, events
from tests.cli.test_help import COMMANDS


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("workspace create web", "/workspaces"),
        ("model add a/b --context 5", "/catalog/models"),
        ("endpoint add a/b --provider x", "/catalog/endpoints"),
        ("member invite a@b.example", "/organization/invitations"),
        ("org create Acme", "/organizations"),
    ],
)
def test_what_exists_already_leads_to_commands_that_exist(
    run: Run, gateway: FakeGateway, line: str, path: str
) -> None:
    gateway.on("POST", path, error(409, "already_exists", "It exists."))
    code, _, err = run(*line.split())
    assert code == 1
    advice = err.split("do:", 1)[1]
    for named in re.findall(r"gwctl ([a-z]+ [a-z]+)", advice):
        assert named in COMMANDS
    if "--if-absent" in advice:
        assert any("--if-absent" in p.opts for p in COMMANDS[" ".join(line.split()[:2])].params)


@pytest.mark.parametrize(
    ("status", "code"),
    [(409, "conflict"), (502, "upstream_error"), (503, "upstream_unavailable")],
)
def test_what_may_pass_says_what_to_do(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch, status: int, code: str
) -> None:
    monkeypatch.setenv("GWCTL_INFERENCE_KEY", SECRET)
    if status == 409:
        gateway.collection("/keys", {"id": "key_1", "name": "ci"})
        gateway.on("PATCH", "/keys/key_1", error(status, code, "Not now."))
        assert "  do:  " in run("key", "disable", "ci").err
    else:
        gateway.on("POST", "/embeddings", error(status, code, "Not now."))
        assert "  do:  " in run("embed", "acme/embed", "text").err


def test_a_record_that_is_no_endpoint_is_not_an_older_gateway(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.on("GET", "/catalog/endpoints/ep_1", error(404, "not_found", "no such endpoint"))
    code, _, err = run("endpoint", "show", "ep_1")
    assert code == 3
    assert "older" not in err
    assert "gwctl endpoint list" in err


def test_a_misspelt_profile_is_named_before_a_missing_key(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GWCTL_KEY")
    for words in (("whoami",), ("key", "list"), ("chat", "a/b", "hello")):
        code, _, err = run(*words, "-P", "typo")
        assert code == 2
        assert "no profile is called typo" in err


def test_what_needs_the_node_is_sent_there(run: Run) -> None:
    code, _, err = run("server", "backup")
    assert (code, "gwd backup FILE" in err) == (2, True)


def test_the_version_is_one_line(run: Run) -> None:
    code, out, _ = run("--version")
    assert code == 0
    assert re.fullmatch(r"gwctl \d+\.\d+\.\d+\n", out)


@pytest.mark.parametrize("noun", ["key", "route", "model price", "server"])
def test_every_group_shows_two_examples(run: Run, noun: str) -> None:
    assert run(*noun.split(), "--help").out.count(f"$ gwctl {noun} ") == 2


def test_an_unknown_field_is_an_error_that_names_the_known_ones(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci"}, prefix="key_")
    code, out, err = run("key", "list", "--json", "nosuch,id")
    assert (code, out) == (2, "")
    hint = json.loads(err)["hint"]
    assert hint.startswith("fields: alert_thresholds, ")
    assert ", id, " in hint
    assert run("key", "list", "--json", "id,name").code == 0
    gateway.collection("/workspaces")
    assert run("key", "list", "--json", "id,pricing.prompt").code == 2
    code, out, _ = run("key", "create", "b", "--json", "nosuch,id")
    assert code == 2
    assert SECRET in out  # it was made, so what is shown once is shown


def test_status_shows_every_digit_of_the_balance(run: Run, gateway: FakeGateway) -> None:
    credit = {"balance": 1234.567891234, "available": 5, "reserved": 0.000138}
    holds = {"amount": 0.000138, "requests": 1}
    gateway.on("GET", "/operator/status", {"data": {"credits": credit, "holds": holds}})
    out = run("status").out
    assert "balance     $1,234.567891234   available $5.00   " in out
    assert "holds $0.000138 in 1 request" in out


def test_one_is_one(run: Run, gateway: FakeGateway) -> None:
    gateway.on("POST", "/ledger/verify", {"data": {"ok": True, "checked": 1, "differences": []}})
    assert "1 entry checked" in run("ledger", "verify").out
    gateway.on("POST", "/ledger/verify", {"data": {"ok": True, "checked": 2, "differences": []}})
    assert "2 entries checked" in run("ledger", "verify").out


def _answering(gateway: FakeGateway) -> None:
    gateway.collection("/keys", prefix="key_")
    choice = {"delta": {"content": "hi"}}
    chunk = {"choices": [choice], "usage": {"total_tokens": 1}}
    gateway.on("POST", "/chat/completions", events(chunk))


def test_a_script_that_agrees_makes_one_key_for_its_hour(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answering(gateway)
    for _ in range(3):
        assert run("chat", "a/b", "hello", "--yes").code == 0
    assert gateway.writes().count(("POST", "/keys")) == 1
    monkeypatch.setenv("GWCTL_KEY", KEY.replace("ABCDEF", "GHIJKL"))
    assert run("chat", "a/b", "hello", "--yes").code == 0  # another's key is not spent
    assert gateway.writes().count(("POST", "/keys")) == 2


def test_a_key_of_ones_own_does_not_end_with_the_made_one(
    run: Run, gateway: FakeGateway, home: Any
) -> None:
    _answering(gateway)
    run("chat", "a/b", "hello", "--yes")
    gateway.on("GET", "/auth/key", {"data": {"id": "key_9", "name": "mine"}})
    assert run("login", "--secret-stdin", stdin=SECRET).code == 0
    text = (home / "config" / "gwctl" / "config.toml").read_text()
    assert SECRET in text
    assert "inference_key_" not in text
