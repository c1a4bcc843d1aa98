"""Exit codes, and what errors and help say."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Run
from tests.cli.gateway import KEY, SECRET, Answer, FakeGateway, error

Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (400, "invalid_value", 1),
        (401, "invalid_api_key", 4),
        (402, "insufficient_credits", 5),
        (403, "insufficient_role", 4),
        (404, "not_found", 3),
        (409, "idempotency_conflict", 1),
        (429, "rate_limit_exceeded", 6),
        (500, "internal_error", 1),
        (503, "draining", 1),
    ],
)
def test_each_kind_of_refusal_has_its_exit_code(
    run: Run,
    gateway: FakeGateway,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    code: str,
    exit_code: int,
) -> None:
    monkeypatch.setenv("GWCTL_INFERENCE_KEY", SECRET)
    path, words = "/credits/purchases", ("credit", "purchase", "5")
    if status == 402:
        path, words = "/embeddings", ("embed", "acme/embed", "text")
    gateway.on("POST", path, error(status, code, "No."))
    assert run(*words).code == exit_code


def test_an_error_is_three_lines_with_the_request_id(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = {
        "budget_scope": "workspace",
        "budget_interval": "monthly",
        "budget_limit": 200,
        "budget_resets_at": "2026-12-01T00:00:00Z",
    }
    message = "The monthly budget of workspace web is used up ($200.00 of $200.00)."
    refused = error(402, "budget_exceeded", message, metadata=metadata)
    gateway.on("POST", "/embeddings", refused)
    monkeypatch.setenv("GWCTL_INFERENCE_KEY", SECRET)
    code, out, err = run("embed", "acme/embed", "text")
    assert (code, out) == (5, "")
    assert err.splitlines() == [
        "error: refused, the monthly budget of workspace web is used up ($200.00 of $200.00)",
        "  why: budget_exceeded, resets 2026-12-01 00:00 UTC",
        "  do:  gwctl budget set workspace:NAME --monthly AMOUNT; gwctl budget list shows them all"
        "   (request req_01JD)",
    ]


def test_with_json_an_error_is_one_object_on_stderr(run: Run, gateway: FakeGateway) -> None:
    gateway.on("GET", "/keys", error(404, "not_found", "No such thing."))
    code, out, err = run("key", "list", "--json")
    assert (code, out) == (3, "")
    found = json.loads(err)
    assert set(found) == {"code", "message", "hint", "request_id"}
    assert (found["code"], found["request_id"]) == ("not_found", "req_01JD")


def test_no_connection_is_exit_7_and_names_the_address(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GWCTL_URL", "http://127.0.0.1:9/api/v1")
    code, _, err = run("key", "list")
    assert code == 7
    assert "http://127.0.0.1:9/api/v1" in err


def test_an_error_page_of_a_proxy_is_not_the_gateway(run: Run, gateway: FakeGateway) -> None:
    page = Answer(raw=b"<html>bad gateway</html>", status=502)
    gateway.on("GET", "/keys", page)
    assert run("key", "list").code == 7


def test_without_a_key_it_is_exit_4_and_nothing_is_sent(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GWCTL_KEY")
    code, _, err = run("key", "list")
    assert code == 4
    assert "gwctl login" in err
    assert gateway.requests == []


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("kye list", "gwctl key"),
        ("key lst", "gwctl key list"),
        ("key create", "NAME"),
        ("key list --limt 3", "--limit"),
        ("key create x --limit many", "--limit"),
        ("key create x --reset hourly", "daily, weekly, monthly"),
        ("key create x --expires soon", "7d"),
        ("key create x --expires 2026-11-01T10:00:00", "2026-11-01T10:00:00Z"),
        ("budget set web --monthly 5", "workspace:SLUG"),
        ("config set colour red", "url"),
    ],
)
def test_wrong_usage_is_exit_2_with_a_hint_and_nothing_is_sent(
    run: Run, gateway: FakeGateway, line: str, hint: str
) -> None:
    code, out, err = run(*line.split())
    assert (code, out) == (2, "")
    assert hint in err
    assert gateway.writes() == []


def test_help_topics_list_every_exit_code_and_variable(run: Run) -> None:
    codes = run("help", "exit-codes").out
    listed = [line.split()[0] for line in codes.splitlines() if line.startswith("  ")]
    assert listed == ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "130"]
    variables = run("help", "environment").out
    for name in ("URL", "KEY", "PROFILE", "CONFIG", "TIMEOUT"):
        assert f"GWCTL_{name}" in variables
    assert all(name in variables for name in ("NO_COLOR", "CLICOLOR_FORCE", "PAGER"))


def test_help_of_a_command_is_its_help(run: Run) -> None:
    assert run("help", "key", "rotate").out.strip() == run("key", "rotate", "-h").out.strip()
    assert run("help", "key", "rotat").code == 2


def test_ctrl_c_ends_with_130(gateway: FakeGateway, home: Path) -> None:
    gateway.collection("/generations")
    environment = {**os.environ, "GWCTL_URL": gateway.url, "GWCTL_KEY": KEY}
    words = [sys.executable, "-m", "gwctl", "activity", "tail"]
    with subprocess.Popen(words, cwd=ROOT, env=environment, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 10
        while not gateway.requests and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_a_reader_that_stops_early_is_no_error(shell: Shell, gateway: FakeGateway) -> None:
    gateway.collection("/keys", *({"id": f"key_{n}", "name": "x" * 200} for n in range(900)))
    done = shell("sh", "-c", "gwctl key list --all --json | head -1")
    assert done.stdout == "[\n"
    assert done.stderr == ""


def test_a_pipe_that_closes_ends_gwctl_quietly(shell: Shell, gateway: FakeGateway) -> None:
    gateway.collection("/keys", *({"id": f"key_{n}", "name": "x" * 2000} for n in range(200)))
    script = "{ gwctl key list --all --jsonl; echo $? >&2; } | head -c 10 >/dev/null"
    assert shell("sh", "-c", script).stderr == "0\n"


def test_a_reply_in_another_shape_is_an_error_and_not_a_traceback(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.untrue("POST", "/keys", {"data": {}})
    code, out, err = run("embed", "acme/embed", "text", "--yes")
    assert (code, out) == (1, "")
    assert "not understood" in err


def test_an_ascii_terminal_gets_no_traceback(shell: Shell, gateway: FakeGateway) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "schlüssel \ud800"})
    done = shell("gwctl", "key", "list", PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert done.returncode == 0
    assert done.stdout.startswith("schl?ssel ")


def test_debug_shows_the_exchange_with_secrets_masked(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys")
    code, out, err = run("key", "create", "ci", "--debug", "-q")
    assert code == 0
    assert "> POST" in err
    assert "< 201" in err
    assert KEY not in err
    assert out.strip() not in err
    assert "gwm_mmmm…CDEF" in err


def test_a_broken_connection_is_tried_once_more_with_the_same_idempotency_key(
    run: Run, gateway: FakeGateway
) -> None:
    seen: list[str] = []

    def script(request: Any) -> Answer:
        seen.append(request.headers["idempotency-key"])
        if len(seen) == 1:
            raise ConnectionAbortedError
        return Answer({"key": "gwi_x", "data": {"id": "key_1", "name": "ci"}}, 201)

    gateway.server.handle_error = lambda *_: None  # type: ignore[method-assign]
    gateway.on("POST", "/keys", script)
    assert run("key", "create", "ci", "-q").out == "gwi_x\n"
    assert len(seen) == 2
    assert seen[0] == seen[1]
