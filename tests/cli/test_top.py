"""gwctl top: the last minute, the slowest endpoints and what rests, in the width that there is."""

import json
import os
import pty
import re
import select
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from gwctl import layout
from tests.cli.conftest import Run
from tests.cli.gateway import KEY, Answer, FakeGateway, Received, error
from tests.support.warm import WarmProcess


def endpoint(model: str, ttft_ms: int | None, **more: Any) -> dict[str, Any]:
    standing: dict[str, Any] = {
        "tag": f"{model}-tag",
        "status": "healthy",
        "rests": [],
        "reason": None,
    }
    measured = {"p50_ttft_ms": ttft_ms, "p50_tokens_per_second": 61.5, "attempts": 90}
    return {"model": model, **standing, **measured, "failures": 3, "in_flight": 2, **more}


REST = {
    "reason": "overloaded",
    "message": "too\nbusy",
    "credential_id": "pk_1",
    "until": None,
    "tried": False,
}
STATUS = {
    "version": "0.9",
    "uptime_s": 273_600,
    "requests": {
        "last_hour": 9_000,
        "in_flight": 12,
        "streams": 9,
        "p50_ttft_ms": 412,
    },
    "last_minute": {
        "requests": 400,
        "errors": 2,
        "refusals": 3,
        "tokens_prompt": 61_200,
        "tokens_completion": 12_100,
        "charged": 0.4213,
    },
    "vitals": {
        "loop_lag_ms": 3.4,
        "writer_queue": 1,
        "open_holds": 12,
        "connections": 40,
        "disk_free_bytes": 90 * 1024**3,
        "deliveries_pending": 0,
    },
    "credits": {"balance": 182.41, "available": 182.4, "reserved": 0.01},
    "spent_today": 6.12,
    "endpoints": [
        endpoint("a/quick", 90),
        endpoint("a/slow", 2_400),
        endpoint("a/silent", None),
        endpoint("a/rests", 300, status="cooling_down", reason="overloaded", rests=[REST]),
    ],
}


@pytest.fixture
def node(gateway: FakeGateway) -> FakeGateway:
    gateway.on("GET", "/operator/status", {"data": STATUS})
    return gateway


def test_without_a_terminal_it_is_shown_once_and_whole(run: Run, node: FakeGateway) -> None:
    code, out, err = run("top")
    assert (code, err) == (0, "")
    for piece in (
        *("gwd 0.9", "up 3 d 4 h", "400 a minute", "errors 0.5 %", "refused 3", "9 streamed"),
        *("61,200 in a minute", "12,100 out a minute", "$0.4213 a minute", "today $6.12"),
        *("available $182.40", "loop lag 3.4 ms", "writer queue 1", "92,160 MiB free"),
        *("p50 first token 412 ms", "3 of 4 healthy", "a/rests a/rests-tag: cooling down"),
        "not tried (overloaded: too busy)",
    ):
        assert piece in out
    rows = [line.split()[0] for line in out.partition("SLOWEST")[2].splitlines()[1:]]
    assert rows == ["a/slow", "a/rests", "a/quick"]
    assert len(node.requests) == 1


@pytest.mark.parametrize("width", [80, 40])
def test_no_line_is_wider_than_the_terminal(node: FakeGateway, home: Path, width: int) -> None:
    seen = on_terminal(node, home, ["top", "--once"], width)
    lines = seen.replace("\r", "").splitlines()
    assert max(map(layout.cells, lines)) <= width
    for piece in ("400 a minute", "$0.4213 a minute", "a/slow", "2,400 ms"):
        assert piece in seen


def test_json_is_the_gateways_own_and_jsonl_a_line_for_each_look(
    run: Run, node: FakeGateway
) -> None:
    code, out, _ = run("top", "--json", "last_minute")
    assert code == 0
    assert json.loads(out)["last_minute"]["charged"] == 0.4213
    code, out, _ = run("top", "--jsonl", "--once")
    assert len(out.splitlines()) == 1


def test_whoever_is_no_operator_is_told_so(run: Run, gateway: FakeGateway) -> None:
    refusal = error(403, "insufficient_role", "this needs the operator's key")
    gateway.on("GET", "/operator/status", refusal)
    code, out, err = run("top")
    assert (code, out) == (4, "")
    assert "operator" in err


def test_quarantine_a_doubted_clock_and_a_drain_come_first(run: Run, gateway: FakeGateway) -> None:
    clock = {"do": "gwctl server clock --accept", "message": "it jumped"}
    trouble = {"quarantine": "I1 is broken", "draining": True, "clock": clock}
    gateway.on("GET", "/operator/status", {"data": {**STATUS, **trouble}})
    lines = run("top").out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["QUARANTINE", "CLOCK", "DRAINING"]


def test_on_a_terminal_it_is_drawn_again_until_it_is_interrupted(
    gateway: FakeGateway, home: Path
) -> None:
    looks = 0

    def look(_: Received) -> Any:
        nonlocal looks
        looks += 1
        minute = {**STATUS["last_minute"], "requests": 400 + looks}  # type: ignore[dict-item]

        return Answer({"data": {**STATUS, "last_minute": minute}})

    gateway.on("GET", "/operator/status", look)
    seen = on_terminal(
        gateway, home, ["top", "--interval", "1"], 80, until="402 a minute", code=130
    )
    assert "401 a minute" in seen
    assert "\x1b[" in seen  # it goes back to its first line
    assert re.search(r"\$0.4213 a minute   [#█]{2}   today", seen)


def on_terminal(
    gateway: FakeGateway,
    home: Path,
    words: list[str],
    width: int,
    *,
    until: str = "",
    code: int = 0,
) -> str:
    """What gwctl draws on a terminal of that width; interrupted once it has written `until`."""
    ours, theirs = pty.openpty()
    try:
        end = Path(os.ttyname(theirs))
        environment = {
            **os.environ,
            "GWCTL_URL": gateway.url,
            "GWCTL_KEY": KEY,
            "COLUMNS": str(width),
            "LINES": "50",
            "TERM": "xterm-256color",
            "XDG_CONFIG_HOME": str(home / "config"),
        }
        process = WarmProcess("gwctl", words, environment, stdin=end, out=end, err=end)
        seen, deadline = "", time.monotonic() + 60
        while time.monotonic() < deadline:
            is_over = process.poll() is not None
            ready, _, _ = select.select([ours], [], [], 0 if is_over else 0.02)
            if ready:
                seen += os.read(ours, 65536).decode()
            elif is_over:
                break
            if until and until in seen:
                process.send_signal(signal.SIGINT)
                until = ""
        assert process.end(20) == code, seen
        return seen
    finally:
        os.close(theirs)
        os.close(ours)
