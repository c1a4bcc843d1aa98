"""Codex as it was recorded: its bodies, its headers, and what it takes from the stream.

Codex reads items from `response.output_item.done` alone, needs `response.completed` with id and usage, matches a call
by separate `name` and `namespace`, and replays reasoning without its raw content.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from gwd.core.sse import SseSplitter
from gwd.demo import Behaviour, PlannedCall
from tests.support.node import Gateway

CHAT, MESSAGES, RESPONSES = MODELS = ("demo/chat", "demo/claude", "demo/responses")
THREAD = "0199a213-81c0-7800-8aa1-bbab2a035a53"
HEADERS = {
    "accept": "text/event-stream",
    "session-id": THREAD,
    "thread-id": THREAD,
    "originator": "codex_exec",
    "user-agent": "codex_exec/0.171.0",
}
SHELL: dict[str, Any] = {
    "type": "function",
    "name": "shell",
    "description": "Runs a shell command and returns its output.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {
            "command": {"type": "array", "items": {"type": "string"}},
            "workdir": {"type": "string"},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
}
FILES: dict[str, Any] = {
    "type": "namespace",
    "name": "mcp__files",
    "description": "Tools of the files server.",
    "tools": [
        {
            "type": "function",
            "name": "read",
            "description": "Reads a file.",
            "strict": False,
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        }
    ],
}
SEARCH: dict[str, Any] = {"type": "web_search", "external_web_access": False}
OPENING: list[dict[str, Any]] = [
    {
        "type": "message",
        "id": f"msg_{number}",
        "role": role,
        "content": [{"type": "input_text", "text": text}],
    }
    for number, (role, text) in enumerate(
        (
            ("developer", "<permissions instructions>read-only</permissions instructions>"),
            ("developer", "<collaboration_mode>default</collaboration_mode>"),
            ("user", "<environment_context><cwd>/tmp</cwd></environment_context>"),
            ("user", "List the files, then read a.txt."),
        )
    )
]


class Turn:
    """One request of Codex and what it takes from the answer."""

    def __init__(self, stream: bytes) -> None:
        splitter = SseSplitter()
        frames = splitter.feed(stream) + splitter.close()
        self.events: list[dict[str, Any]] = [msgspec.json.decode(frame.data) for frame in frames]
        self.items = [
            event["item"] for event in self.events if event["type"] == "response.output_item.done"
        ]
        self.last = self.events[-1]

    def replayed(self) -> list[dict[str, Any]]:
        """The items as the next request carries them."""
        return [_replayed(item) for item in self.items]

    def calls(self) -> list[dict[str, Any]]:
        return [item for item in self.items if item["type"].endswith("_call")]


def _replayed(item: dict[str, Any]) -> dict[str, Any]:
    match item["type"]:
        case "reasoning":
            names = ("type", "id", "summary", "encrypted_content")
            return {**{name: item[name] for name in names}, "content": None}
        case "message":
            return {name: item[name] for name in ("type", "role", "content", "status")}
        case _:
            kept = ("type", "id", "call_id", "name", "namespace", "arguments", "input", "status")
            return {name: item[name] for name in kept if name in item}


async def turn(gateway: Gateway, model: str, items: Sequence[dict[str, Any]], **more: Any) -> Turn:
    body = {
        "model": model,
        "instructions": "You are Codex, a coding agent.",
        "input": [*OPENING, *items],
        "tools": [SHELL, FILES, SEARCH],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": THREAD,
        "client_metadata": {"x-codex-installation-id": "1c2b3a"},
        **more,
    }
    reply = await gateway.client.post("/responses", json=body, headers=HEADERS)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/event-stream")
    return Turn(reply.content)


def result(call: dict[str, Any], output: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": output}


@pytest.mark.parametrize("model", MODELS)
async def test_codex_lists_reads_and_answers(gateway: Gateway, model: str):
    """A loop of three turns: a function, a tool in a namespace, and the closing message."""
    script = gateway.vendor.script
    script.next(Behaviour(calls=(PlannedCall(name="shell", arguments='{"command":["ls"]}'),)))
    first = await turn(gateway, model, [])
    [ls] = first.calls()
    assert (ls["type"], ls["name"], ls["arguments"]) == (
        "function_call",
        "shell",
        '{"command":["ls"]}',
    )
    assert "namespace" not in ls
    history = [*first.replayed(), result(ls, "a.txt\n")]

    script.next(
        Behaviour(calls=(PlannedCall(name="mcp__files__read", arguments='{"path":"a.txt"}'),))
    )
    second = await turn(gateway, model, history)
    [read] = second.calls()
    assert (read["name"], read["namespace"]) == ("read", "mcp__files")
    assert msgspec.json.decode(read["arguments"]) == {"path": "a.txt"}
    history += [*second.replayed(), result(read, "42 apples")]

    third = await turn(gateway, model, history)
    assert third.last["type"] == "response.completed"
    assert third.items[-1]["type"] == "message"
    assert "42 apples" in third.last["response"]["output_text"]
    for one in (first, second, third):
        response = one.last["response"]
        assert response["id"].startswith("resp_")
        assert response["usage"]["total_tokens"] > 0
        assert [event["sequence_number"] for event in one.events] == list(range(len(one.events)))


@pytest.mark.parametrize("model", MODELS)
async def test_the_vendor_sees_flat_names_and_no_hosted_tool(gateway: Gateway, model: str):
    await turn(gateway, model, [])
    sent = gateway.vendor.calls.last.body
    assert sent is not None
    names = [tool.get("name") or tool["function"]["name"] for tool in sent["tools"]]
    assert names == ["shell", "mcp__files__read"]
    assert "client_metadata" not in sent


@pytest.mark.parametrize("model", MODELS)
async def test_the_session_and_the_dropped_tool_are_on_record(gateway: Gateway, model: str):
    response = (await turn(gateway, model, [])).last["response"]
    record = (await gateway.manage("GET", f"/generation?id={response['id']}"))["data"]
    assert record["session_id"] == THREAD
    assert record["dropped_tools"] == ["web_search"]


@pytest.mark.parametrize("model", [MESSAGES, RESPONSES])
async def test_replayed_reasoning_is_accepted_by_its_vendor(gateway: Gateway, model: str):
    script = gateway.vendor.script
    effort = {"effort": "medium", "summary": "auto"}
    script.next(Behaviour(calls=(PlannedCall(name="shell", arguments='{"command":["ls"]}'),)))
    first = await turn(gateway, model, [], reasoning=effort)
    assert [item["type"] for item in first.items] == ["reasoning", "function_call"]
    assert first.items[0]["encrypted_content"]
    assert first.items[0]["summary"][0]["text"]
    history = [*first.replayed(), result(first.calls()[0], "a.txt\n")]
    second = await turn(gateway, model, history, reasoning=effort)
    assert second.last["type"] == "response.completed"


async def test_reasoning_of_one_vendor_never_reaches_another(gateway: Gateway):
    """A session that moves to another model keeps its text and drops its signatures."""
    gateway.vendor.script.next(
        Behaviour(calls=(PlannedCall(name="shell", arguments='{"command":["ls"]}'),))
    )
    effort = {"effort": "medium", "summary": "auto"}
    first = await turn(gateway, MESSAGES, [], reasoning=effort)
    history = [*first.replayed(), result(first.calls()[0], "a.txt\n")]
    for model in (RESPONSES, CHAT):
        moved = await turn(gateway, model, history)
        assert moved.last["type"] == "response.completed"
        assert first.items[0]["encrypted_content"] not in gateway.vendor.calls.last.raw.decode()


@pytest.mark.parametrize("model", MODELS)
async def test_a_broken_turn_leaves_nothing_that_codex_would_run(gateway: Gateway, model: str):
    """Codex runs every call that is done, and repeats the turn after a failure."""
    script = gateway.vendor.script
    call = PlannedCall(name="shell", arguments='{"command":["rm","-r","build","dist"]}')
    script.next(Behaviour(calls=(call,), cut="end", cut_after=6))
    broken = await turn(gateway, model, [])
    assert broken.last["type"] == "response.failed"
    assert broken.last["response"]["error"]["code"] == "server_error"
    assert broken.last["response"]["error"]["message"]
    for item in broken.calls():
        assert item["arguments"] == call.arguments


async def test_errors_before_the_stream_are_plain_http(gateway: Gateway):
    """Codex shows the body of a 400 raw and `error.message` of 401, 404 and 503."""
    body = {"model": "demo/nothing", "input": OPENING, "stream": True}
    missing = await gateway.client.post("/responses", json=body, headers=HEADERS)
    assert missing.status_code == 404
    assert missing.json()["error"]["message"]
    foreign = await gateway.client.post(
        "/responses", json=body, headers={**HEADERS, "authorization": "Bearer sk-something"}
    )
    assert foreign.status_code == 401
    assert "sk-something" not in foreign.text
