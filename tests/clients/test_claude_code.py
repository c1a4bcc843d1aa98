"""Claude Code's requests, in the shapes recorded from version 2.1.197, replayed through a tool loop.

The vendor behind the gateway is as strict as the real one: a field, header or block that it does not know, a signature
that was touched, or a call without its result makes it answer 400.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.clients.messages_clients import (
    CLAUDE,
    CLAUDE_NEXT,
    OPEN,
    PLAIN,
    RESPONSES,
    add_open_models,
    base_url,
)
from tests.support.node import Gateway

# An older and a newer model of the vendor's own format, and three of other formats.
MODELS = (CLAUDE, CLAUDE_NEXT, PLAIN, OPEN, RESPONSES)
BILLING = "x-anthropic-billing-header: cc_version=2.1.197.5e1; cc_entrypoint=cli; cch=0f3a1;"
SESSION = "5b7f0c1e-8f6e-4f2e-9a53-2e1d4c0a9b11"
MARK = {"type": "ephemeral"}


def headers(key: str) -> dict[str, str]:
    return {
        "authorization": f"Bearer {key}",
        "x-api-key": "sk-ant-api03-left-over-from-another-login",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,"
        "context-management-2025-06-27,effort-2025-11-24",
        "anthropic-dangerous-direct-browser-access": "true",
        "x-app": "cli",
        "x-claude-code-session-id": SESSION,
        "x-stainless-lang": "js",
        "user-agent": "claude-cli/2.1.197 (external, cli)",
    }


def tools() -> list[dict[str, Any]]:
    made = []
    for name in ["Read", "Write", "Bash", "Glob", *(f"mcp__server__tool_{n}" for n in range(20))]:
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"path": {"type": "string", "description": "A path."}},
            "required": ["path"],
            "additionalProperties": False,
        }
        made.append({"name": name, "description": f"The tool {name}.", "input_schema": schema})
    return made


def body(model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    user_id = json.dumps({"device_id": "d" * 64, "account_uuid": "", "session_id": SESSION})
    return {
        "model": model,
        "max_tokens": 32_000,
        "stream": True,
        "system": [
            {"type": "text", "text": BILLING},
            {
                "type": "text",
                "text": "You are an agent for the command line.",
                "cache_control": MARK,
            },
            {"type": "text", "text": "# Rules\nBe careful.", "cache_control": MARK},
        ],
        "messages": messages,
        "tools": tools(),
        "metadata": {"user_id": user_id},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    }


def first_turn() -> list[dict[str, Any]]:
    content = [{"type": "text", "text": "Call the tool Read on /a.py.", "cache_control": MARK}]
    return [
        {"role": "user", "content": content},
        {"role": "system", "content": "<system-reminder>The date is 2026-11-28.</system-reminder>"},
    ]


@pytest.fixture
async def http(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    await add_open_models(gateway)
    async with httpx.AsyncClient(
        base_url=base_url(gateway), headers=headers(gateway.key), verify=False, timeout=10
    ) as client:
        yield client


async def ask(http: httpx.AsyncClient, asked: dict[str, Any]) -> dict[str, Any]:
    """The message as the agent puts it together from the stream; it insists on the order of the events."""
    answer = await http.post("/v1/messages?beta=true", json=asked)
    assert answer.status_code == 200, answer.text
    message: dict[str, Any] = {}
    arguments: dict[int, str] = {}
    last = ""
    for frame in answer.text.split("\n\n"):
        if not frame or frame.startswith(":"):
            continue
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        last = event["type"]
        assert name == f"event: {last}"
        match last:
            case "message_start":
                assert not message
                message = event["message"]
            case "content_block_start":
                assert event["index"] == len(message["content"])
                message["content"].append(event["content_block"])
            case "content_block_delta":
                assert event["index"] == len(message["content"]) - 1
                block, delta = message["content"][-1], event["delta"]
                for field in ("text", "thinking", "signature"):
                    if field in delta:
                        block[field] += delta[field]
                if "partial_json" in delta:
                    place = event["index"]
                    arguments[place] = arguments.get(place, "") + delta["partial_json"]
            case "message_delta":
                message |= event["delta"]
                message["usage"] |= event["usage"]
            case "error":
                raise AssertionError(event)
            case _:
                assert last in ("ping", "content_block_stop", "message_stop")
    assert last == "message_stop"
    for place, text in arguments.items():
        message["content"][place]["input"] = json.loads(text)
    return message


@pytest.mark.parametrize("model", MODELS)
async def test_a_tool_loop_runs_to_its_end(http: httpx.AsyncClient, model: str):
    messages = first_turn()
    first = await ask(http, body(model, messages))
    assert first["stop_reason"] == "tool_use"
    assert first["model"] == model
    call = next(block for block in first["content"] if block["type"] == "tool_use")
    assert call["name"] == "Read"
    result = {
        "type": "tool_result",
        "tool_use_id": call["id"],
        "content": "x = 1 # the file",
        "is_error": False,
        "cache_control": MARK,
    }
    messages += [
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": [result]},
    ]
    second = await ask(http, body(model, messages))
    assert second["stop_reason"] == "end_turn"
    assert "the file" in "".join(block.get("text", "") for block in second["content"])
    assert second["usage"]["output_tokens"] > 0


@pytest.mark.parametrize("model", [CLAUDE, CLAUDE_NEXT])
async def test_its_own_vendor_gets_what_it_sent(
    http: httpx.AsyncClient, gateway: Gateway, model: str
):
    asked = body(model, first_turn())
    await ask(http, asked)
    call = gateway.vendor.calls.last
    assert call.body is not None
    assert call.headers["x-api-key"] == "sk-demo-0000"
    assert "context-management-2025-06-27" in call.headers["anthropic-beta"]
    assert "x-claude-code-session-id" not in call.headers
    for name in ("system", "tools", "metadata", "context_management", "max_tokens"):
        assert call.body[name] == asked[name]
    if model == CLAUDE_NEXT:
        assert call.body["messages"][1]["role"] == "system"
        assert call.body["thinking"] == {"type": "adaptive"}
        assert call.body["output_config"] == {"effort": "high"}
    else:
        assert "The date is" in call.body["messages"][0]["content"][1]["text"]
        assert call.body["thinking"] == {"type": "enabled", "budget_tokens": 25_600}


async def test_another_vendor_gets_none_of_what_only_the_first_knows(
    http: httpx.AsyncClient, gateway: Gateway
):
    await ask(http, body(PLAIN, first_turn()))
    call = gateway.vendor.calls.last
    sent = json.dumps(call.body)
    for word in (
        "billing",
        "context_management",
        "cache_control",
        "$schema",
        "device_id",
        "adaptive",
    ):
        assert word not in sent
    assert "anthropic-beta" not in call.headers
    assert "The date is" in sent
    assert call.body is not None
    assert [message["role"] for message in call.body["messages"]] == ["system", "user", "system"]
    assert len(call.body["tools"]) == 24


async def test_the_session_of_the_agent_is_the_session_of_the_record(
    http: httpx.AsyncClient, gateway: Gateway
):
    message = await ask(http, body(PLAIN, first_turn()))
    answer = await http.get("/v1/generation", params={"id": message["id"]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["session_id"] == SESSION


async def test_the_context_view_counts_many_things_at_once(
    http: httpx.AsyncClient, gateway: Gateway
):
    asked = body(CLAUDE, first_turn())
    del asked["stream"], asked["max_tokens"]
    answers = await asyncio.gather(
        *(http.post("/v1/messages/count_tokens?beta=true", json=asked) for _ in range(14))
    )
    counts = {answer.json()["input_tokens"] for answer in answers}
    assert len(counts) == 1
    assert counts.pop() > 500
    assert len(gateway.vendor.calls) == 0


async def test_it_may_probe_and_list_models(http: httpx.AsyncClient, gateway: Gateway):
    assert (await http.head("")).status_code == 204
    listed = (await http.get("/v1/models", params={"limit": 1000})).json()
    assert listed["has_more"] is False
    assert {CLAUDE, PLAIN} <= {model["id"] for model in listed["data"]}
    assert all(model["type"] == "model" and model["display_name"] for model in listed["data"])


async def test_errors_before_and_after_routing_are_told_in_its_envelope(http: httpx.AsyncClient):
    unknown = await http.post("/v1/messages?beta=true", json=body("demo/none", first_turn()))
    broken = await http.post("/v1/messages?beta=true", content=b"{")
    lost = await http.get("/v1/messages/nowhere")
    for answer, status, kind in (
        (unknown, 404, "not_found_error"),
        (broken, 400, "invalid_request_error"),
        (lost, 404, "not_found_error"),
    ):
        reported = answer.json()
        assert (answer.status_code, reported["type"], reported["error"]["type"]) == (
            status,
            "error",
            kind,
        )
        assert reported["request_id"] == answer.headers["request-id"]
