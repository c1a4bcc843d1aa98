"""chat, embed, launch and receipts: calls with an inference key."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gwctl.client import sse_data
from gwctl.commands.launch import claude, codex_arguments
from gwctl.inference import receipt_lines
from tests.cli.conftest import Run
from tests.cli.gateway import SECRET, Answer, FakeGateway, error, events

RECEIPT: dict[str, Any] = {
    "generation_id": "gen-1",
    "requested_model": "acme/fast:floor",
    "model": "acme/fast",
    "vendor": "Acme",
    "routing": {
        "strategy": "expiry_first",
        "sort": "price",
        "eligible_endpoints": 2,
        "attempt": 2,
        "attempts": 2,
        "fallbacks": [{"vendor": "Acme", "reason": "rate_limited", "duration_ms": 41}],
    },
    "timing_ms": {"routing": 2, "ttft": 300, "total": 900},
    "cost": {"total": 0.000138, "prompt": 0.0001, "completion": 0.000038},
}


def stream(*chunks: Any, done: bool = True) -> Answer:
    sent = events(*chunks, done=done)
    return replace(sent, raw=b": GW PROCESSING\n\n" + (sent.raw or b""))


def delta(text: str) -> dict[str, Any]:
    return {"id": "gen-1", "choices": [{"index": 0, "delta": {"content": text}}]}


USAGE = {"id": "gen-1", "choices": [], "usage": {"total_tokens": 3}, "gateway_metadata": RECEIPT}


@pytest.fixture
def key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GWCTL_INFERENCE_KEY", SECRET)


@pytest.mark.usefixtures("key")
def test_the_answer_goes_to_stdout_and_the_receipt_to_stderr(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.on("POST", "/chat/completions", stream(delta("Hel"), delta("lo\x1b[2J"), USAGE))
    code, out, err = run("chat", "acme/fast:floor", "hi", "--receipt")
    assert (code, out) == (0, "Hello\n")
    assert "attempt 2 of 2" in err
    assert "rate_limited after 41 ms" in err
    assert "$0.000138" in err
    sent = gateway.sent("POST", "/chat/completions")
    assert sent.body["messages"] == [{"role": "user", "content": "hi"}]
    assert sent.body["stream"] is True
    assert sent.headers["x-gw-metadata"] == "enabled"
    assert sent.headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.usefixtures("key")
def test_a_prompt_may_come_from_a_pipe(run: Run, gateway: FakeGateway) -> None:
    gateway.on("POST", "/chat/completions", stream(delta("ok"), USAGE))
    run("chat", "acme/fast", "--system", "Be brief.", stdin="from a pipe\n")
    assert gateway.sent("POST", "/chat/completions").body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "from a pipe\n"},
    ]
    assert run("chat", "acme/fast", stdin="").code == 2


@pytest.mark.usefixtures("key")
def test_a_refusal_for_money_is_exit_5_also_inside_the_stream(
    run: Run, gateway: FakeGateway
) -> None:
    refusal = error(402, "insufficient_credits", "The balance is too small.")
    gateway.on("POST", "/chat/completions", refusal)
    assert run("chat", "acme/fast", "hi").code == 5
    inside = {"choices": [], "error": {"code": "budget_exceeded", "message": "Used up."}}
    gateway.on("POST", "/chat/completions", stream(delta("part"), inside))
    code, out, err = run("chat", "acme/fast", "hi")
    assert code == 5
    assert out == "part"
    assert "used up" in err


@pytest.mark.usefixtures("key")
def test_a_stream_that_is_cut_is_a_failure_and_not_a_short_answer(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.on("POST", "/chat/completions", stream(delta("part"), done=False))
    code, _, err = run("chat", "acme/fast", "hi")
    assert code == 1
    assert "before the answer was complete" in err


@pytest.mark.usefixtures("key")
def test_json_asks_for_the_whole_answer(run: Run, gateway: FakeGateway) -> None:
    gateway.on("POST", "/chat/completions", {"choices": [{"message": {"content": "hi"}}]})
    out = run("chat", "acme/fast", "hi", "--json", "--jq", ".choices[0].message.content").out
    assert out == "hi\n"
    assert "stream" not in gateway.sent("POST", "/chat/completions").body


def test_without_an_inference_key_yes_makes_one_for_an_hour(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys")
    gateway.on("POST", "/chat/completions", stream(delta("ok"), USAGE))
    code, _, err = run("chat", "acme/fast", "hi")
    assert code == 4
    assert "--yes" in err
    assert gateway.writes() == []
    assert run("chat", "acme/fast", "hi", "--yes").out == "ok\n"
    body = gateway.sent("POST", "/keys").body
    assert (body["name"], body["limit"]) == ("gwctl-chat", 1)
    assert body["expires_at"].endswith("Z")
    assert gateway.sent("POST", "/chat/completions").headers["authorization"].endswith(SECRET)


@pytest.mark.usefixtures("key")
def test_embed_prints_one_number_a_line(run: Run, gateway: FakeGateway) -> None:
    reply = {"data": [{"embedding": [0.25, -1.5]}], "usage": {"prompt_tokens": 2}}
    gateway.on("POST", "/embeddings", reply)
    assert run("embed", "acme/embed", "text").out == "0.25\n-1.5\n"
    assert gateway.sent("POST", "/embeddings").body["input"] == "text"


def test_events_are_split_at_newlines_only_and_survive_odd_cuts() -> None:
    text = 'data: {"a": "\u2028"}\r\n\r\n: comment\n\ndata: one\ndata: two\n\ndata: last'
    raw = text.encode()
    expected = ['{"a": "\u2028"}', "one\ntwo", "last"]
    assert list(sse_data(iter([raw]))) == expected
    assert list(sse_data(raw[i : i + 1] for i in range(len(raw)))) == expected


def test_a_receipt_without_fallbacks_has_no_failed_line() -> None:
    routing = {**RECEIPT["routing"], "fallbacks": []}
    lines = receipt_lines({**RECEIPT, "routing": routing})
    assert not any(line.startswith("failed") for line in lines)
    assert any("asked for acme/fast:floor" in line for line in lines)


def test_a_receipt_says_that_the_conversation_stayed() -> None:
    assert not any(line.startswith("sticky") for line in receipt_lines(RECEIPT))
    lines = receipt_lines({**RECEIPT, "pipeline": {"sticky": True}})
    assert "sticky      it served this conversation last" in lines


def test_claude_gets_the_address_it_appends_to_and_codex_the_whole_one() -> None:
    environment = claude("http://gw:8080/api/v1", "gwi_x", "acme/fast")
    assert environment == {
        "ANTHROPIC_BASE_URL": "http://gw:8080/api",
        "ANTHROPIC_AUTH_TOKEN": "gwi_x",
        "ANTHROPIC_MODEL": "acme/fast",
    }
    words = codex_arguments("http://gw:8080/api/v1", "acme/fast")
    assert 'model_providers.gateway.base_url="http://gw:8080/api/v1"' in words
    assert 'model_providers.gateway.wire_api="responses"' in words
    assert words[-2:] == ["-m", "acme/fast"]


def test_launch_replaces_foreign_credentials_and_passes_arguments_on(
    shell: Any, home: Path, gateway: FakeGateway
) -> None:
    agent = home / "bin" / "claude"
    agent.write_text('#!/bin/sh\necho "$ANTHROPIC_AUTH_TOKEN|$ANTHROPIC_API_KEY|$*"\nexit 9\n')
    agent.chmod(0o755)
    done = shell(
        "gwctl", "launch", "claude", "--", "-p", "hi",
        GWCTL_INFERENCE_KEY=SECRET, ANTHROPIC_API_KEY="sk-other",
    )  # fmt: skip
    assert done.stdout == f"{SECRET}||-p hi\n"
    assert done.returncode == 9


def test_launch_gives_gemini_its_address_and_the_kind_of_its_credential(
    shell: Any, home: Path, gateway: FakeGateway
) -> None:
    agent = home / "bin" / "gemini"
    agent.write_text(
        "#!/bin/sh\n"
        'echo "$GOOGLE_GEMINI_BASE_URL|$GEMINI_API_KEY|$GEMINI_MODEL|$GOOGLE_API_KEY|$*"\n'
        'cat "$GEMINI_CLI_SYSTEM_SETTINGS_PATH"\n'
    )
    agent.chmod(0o755)
    done = shell(
        "gwctl", "launch", "gemini", "--model", "acme/fast", "--", "-p", "hi",
        GWCTL_INFERENCE_KEY=SECRET, GOOGLE_API_KEY="AIza-other",
    )  # fmt: skip
    said, settings = done.stdout.splitlines()
    address = gateway.url.removesuffix("/v1")
    assert said == f"{address}|{SECRET}|acme/fast||-p hi"
    assert settings == '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'


@pytest.mark.usefixtures("key")
def test_launch_print_masks_the_key(run: Run) -> None:
    code, out, _ = run("launch", "claude", "--print")
    assert code == 0
    assert SECRET not in out
    assert "ANTHROPIC_AUTH_TOKEN=gwi_6vR2…9Zq1" in out
    assert run("launch", "vim").code == 2
    assert os.environ.get("ANTHROPIC_AUTH_TOKEN") != SECRET
