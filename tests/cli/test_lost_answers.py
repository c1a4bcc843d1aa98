"""A change whose answer is lost may have been made: that is said, with how to repeat it, and has its own exit code."""

import json
import time
from typing import Any

import pytest

from gwctl.errors import OUTCOME_UNKNOWN, UNREACHABLE
from tests.cli.conftest import Run
from tests.cli.gateway import Answer, FakeGateway, Received, error
from tests.cli.test_live import Cli, cli, node

__all__ = ["cli", "node"]

PURCHASE = ("credit", "purchase", "25")


def late(_: Received) -> Answer:
    time.sleep(0.6)
    return Answer({"data": {}})


def cut(_: Received) -> Answer:
    raise ConnectionAbortedError  # the handler dies and the connection with it


def proxy(status: int) -> Answer:
    return Answer(raw=b"<html>bad gateway</html>", status=status)


@pytest.mark.parametrize("script", [late, cut, proxy(502), proxy(503), proxy(504)])
def test_an_unknown_outcome_has_its_own_exit_code_and_names_the_key(
    run: Run, gateway: FakeGateway, script: Any
) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci"})
    gateway.on("POST", "/credits/purchases", script)
    code, out, err = run(*PURCHASE, "--timeout", "0.3")
    assert (code, out) == (OUTCOME_UNKNOWN, "")
    assert "it is not known whether POST /api/v1/credits/purchases was done" in err
    sent = {r.headers["idempotency-key"] for r in gateway.requests if r.method == "POST"}
    assert len(sent) == 1  # a retry of our own carried the same key
    assert f"--idempotency-key {sent.pop()}" in err
    code, _, err = run(*PURCHASE, "--idempotency-key", "inv-1", "--timeout", "0.3", "--json")
    reported = json.loads(next(line for line in err.splitlines() if line.startswith("{")))
    assert (code, reported["code"]) == (OUTCOME_UNKNOWN, "outcome_unknown")
    assert "--idempotency-key inv-1:" in reported["hint"]
    for method in ("PATCH", "DELETE"):
        gateway.on(method, "/keys/key_1", script)
    for words in (("key", "update", "ci", "--limit", "5"), ("key", "delete", "ci", "--yes")):
        code, _, err = run(*words, "--timeout", "0.3")
        assert code == OUTCOME_UNKNOWN
        assert "look at the record" in err


@pytest.mark.parametrize("script", [late, cut, proxy(502)])
def test_what_only_reads_or_was_never_sent_is_unreachable(
    run: Run, gateway: FakeGateway, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.on("GET", "/credits", script)
    gateway.on("POST", "/analytics/query", script)
    gateway.on("POST", "/ledger/verify", script)
    assert run("credit", "balance", "--timeout", "0.3").code == UNREACHABLE
    assert run("usage", "summary", "--timeout", "0.3").code == UNREACHABLE
    if script is not late:  # it has the time that the whole ledger takes
        assert run("ledger", "verify", "--timeout", "0.3").code == UNREACHABLE
    monkeypatch.setenv("GWCTL_URL", "http://127.0.0.1:9/api/v1")
    assert run(*PURCHASE).code == UNREACHABLE


def test_the_gateways_own_refusal_is_no_unknown_outcome(run: Run, gateway: FakeGateway) -> None:
    gateway.on("POST", "/credits/purchases", error(503, "draining", "The gateway is stopping."))
    assert run(*PURCHASE).code == 1


def test_several_posts_are_repeated_with_one_key(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/workspaces", prefix="ws_")
    gateway.on("POST", "/keys", proxy(504))
    words = ("workspace", "create", "web", "--key-limit", "5")
    _, _, err = run(*words)
    first, second = (
        gateway.sent("POST", path).headers["idempotency-key"] for path in ("/workspaces", "/keys")
    )
    assert second == f"{first}-2"
    assert f"--idempotency-key {first}:" in err


def test_apply_says_to_run_it_again(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys")
    gateway.on("POST", "/keys", proxy(502))
    code, _, err = run("apply", "-f", "-", stdin='[[keys]]\nname = "ci"\n')
    assert code == OUTCOME_UNKNOWN
    assert "run the same command again" in err


async def test_a_repeated_purchase_says_when_it_was_booked(cli: Cli) -> None:
    words = ("credit", "purchase", "2.25", "--idempotency-key", "inv-7")
    before = (await cli.json("credit", "balance"))["balance"]
    out, err = await cli(*words)
    assert "$2.25 purchased" in out
    assert err == ""
    out, err = await cli(*words)
    assert out.startswith("already booked on 20")
    assert "nothing was done now" in err
    assert (await cli.json("credit", "balance"))["balance"] == before + 2.25
    first = await cli.json(*words)
    assert first["amount"] == 2.25
