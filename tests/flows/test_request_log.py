"""What an organization has stored of its requests: only if it wants that, hidden and sealed, for a time, and then gone.

Canaries are looked for in every file of the node and in all that leaves it; the search itself is shown to see.
"""

import base64
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gwd.demo import Behaviour
from gwd.node import backup
from tests.support.node import Gateway

ASKED = "canary-question-1a2b"
ANSWERED = "canary-answer-3c4d"
ARGUMENT = "canary-argument-5e6f"
RESULT = "canary-result-7a8b"
CANARIES = (ASKED, ANSWERED, ARGUMENT, RESULT)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


async def switch_on(gateway: Gateway, **fields: Any) -> Any:
    wanted = {"days": 7, **fields}
    changed = await gateway.manage("PATCH", "/organization/settings", {"request_log": wanted})
    return changed["data"]["request_log"]


async def content(gateway: Gateway, generation_id: str, *, status: int = 200) -> Any:
    """What is stored of a request, once it is."""
    await gateway.at_rest()
    reply = await gateway.operator.get("/generation/content", params={"id": generation_id})
    assert reply.status_code == status, reply.text
    return reply.json().get("data")


def conversation() -> list[dict[str, Any]]:
    """Two turns with a call of a tool and its result."""
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "look", "arguments": f'{{"at": "{ARGUMENT}"}}'},
    }
    return [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": RESULT},
    ]


async def talk(gateway: Gateway) -> list[str]:
    """Requests in every way that an answer can take; their generations."""
    generations = []
    for model in ("demo/chat", "demo/claude", "demo/responses"):
        for stream in (False, True):
            gateway.vendor.script.next(Behaviour(text=ANSWERED))
            reply = await gateway.client.post(
                "/chat/completions",
                json={
                    "model": model,
                    "stream": stream,
                    "messages": conversation(),
                    "tools": [TOOL],
                },
            )
            assert reply.status_code == 200, reply.text
            assert stream or ANSWERED in reply.text
            generations.append(reply.headers["x-gw-generation-id"])
    await gateway.at_rest()
    return generations


def files(gateway: Gateway) -> dict[str, bytes]:
    """Every file of the node, its log of writes included."""
    directory = gateway.running.settings.directory
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def found_in(outputs: dict[str, bytes], words: tuple[str, ...]) -> list[str]:
    return [
        f"{word} in {name}"
        for name, content in outputs.items()
        for word in words
        if any(
            form in content
            for form in (
                word.encode(),
                base64.b64encode(word.encode()).rstrip(b"="),
                word.encode().hex().encode(),
            )
        )
    ]


async def test_nothing_is_stored_of_anybody_who_has_not_switched_it_on(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "gwd")
    generations = await talk(gateway)
    metrics = await gateway.operator.get(gateway.base_url.removesuffix("/api/v1") + "/metrics")
    outputs = {**files(gateway), "log": caplog.text.encode(), "metrics": metrics.content}
    for path in ("/generations", "/audit", "/notifications/events", "/request-log"):
        outputs[path] = (await gateway.operator.get(path)).content
    assert found_in(outputs, CANARIES) == []
    assert await gateway.store.read(_count) == 0
    await content(gateway, generations[0], status=404)
    assert found_in(outputs, (generations[0],))  # the search can see


async def test_what_was_asked_and_answered_is_read_back_and_lies_in_no_file(
    gateway: Gateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "gwd")
    await switch_on(gateway)
    generations = await talk(gateway)
    for generation_id in generations:
        stored = await content(gateway, generation_id)
        whole = msgspec.json.encode(stored).decode()
        assert all(word in whole for word in CANARIES), whole
        assert stored["cut"] == []
        assert stored["answer"]["parts"][-1] == {"type": "text", "text": ANSWERED}
        assert stored["request"]["body"]["messages"][0] == {
            "role": "user",
            "parts": [{"type": "text", "text": ASKED}],
        }
    made = backup.backup(gateway.running.settings, tmp_path / "copy.db")
    outputs = {**files(gateway), "backup": made.path.read_bytes(), "log": caplog.text.encode()}
    assert found_in(outputs, CANARIES) == []
    read = [
        line
        for line in (await gateway.manage("GET", "/audit?limit=100"))["data"]
        if line["action"] == "request_log.read"
    ]
    assert {line["subject_id"] for line in read} == set(generations)


def _count(connection: Any) -> int:
    return int(connection.row("SELECT COUNT(*) FROM request_log")[0])
