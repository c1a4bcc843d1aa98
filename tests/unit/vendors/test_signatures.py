"""The one retry after a refused signature goes out without any: whatever the vendor's form of it."""

from typing import Any

import msgspec
import pytest

from gwd.core.request import Request
from gwd.dialects.chat_completions import DIALECT
from gwd.vendors.anthropic_messages import ADAPTER as ANTHROPIC
from gwd.vendors.base import Adapter
from gwd.vendors.gemini import ADAPTER as GEMINI
from gwd.vendors.openai_chat import ADAPTER as CHAT
from gwd.vendors.openai_responses import ADAPTER as RESPONSES
from tests.golden import golden

ADAPTERS = [ANTHROPIC, GEMINI, RESPONSES, CHAT]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALL = {"id": "t", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def _asked(turn: dict[str, Any], **fields: Any) -> Request:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "x", "tool_calls": [CALL], **turn},
        {"role": "tool", "tool_call_id": "t", "content": "3"},
    ]
    body = {"model": "test/model", "messages": messages, "tools": [TOOL], **fields}
    return DIALECT.parse(msgspec.json.encode(body), {})


def _detail(kind: str, format_: str, **fields: Any) -> dict[str, Any]:
    return {"id": None, "index": 0, "type": f"reasoning.{kind}", "format": format_, **fields}


@pytest.mark.parametrize(
    ("adapter", "turn"),
    [
        (
            ANTHROPIC,
            {
                "reasoning_details": [
                    _detail("text", "anthropic-claude-v1", text="T", signature="SIGNATURE1"),
                    _detail("encrypted", "anthropic-claude-v1", data="SIGNATURE2"),
                ]
            },
        ),
        (
            GEMINI,
            {
                "reasoning_details": [
                    _detail("encrypted", "google-gemini-v1", data="SIGNATURE", id="t")
                ]
            },
        ),
        (
            GEMINI,
            {"reasoning_details": [_detail("encrypted", "google-gemini-v1", data="SIGNATURE")]},
        ),
        (
            RESPONSES,
            {
                "reasoning_details": [
                    _detail("encrypted", "openai-responses-v1", data="SIGNATURE", id="rs_1")
                ]
            },
        ),
        (CHAT, {"reasoning_opaque": "SIGNATURE"}),
        (CHAT, {"extra_content": {"google": {"thought_signature": "SIGNATURE"}}}),
    ],
    ids=lambda value: value.format.name if hasattr(value, "format") else "",
)
def test_no_signature_is_left(adapter: Adapter, turn: dict[str, Any]):
    target = golden.target(adapter.format.name)
    asked = _asked(turn, reasoning={"effort": "low"}, max_tokens=5000)
    assert b"SIGNATURE" in adapter.build(asked, target).body
    body = adapter.build(adapter.without_signatures(asked), target).body
    assert b"SIGNATURE" not in body
    assert b"look" in body
    for kind in (b'"thinking"', b"redacted_thinking", b'encrypted_content"'):
        assert b'"type":' + kind not in body.replace(b'"thinking":{"type":"disabled"}', b"")


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.format.name)
def test_a_request_without_signatures_stays_as_it_is(adapter: Adapter):
    target = golden.target(adapter.format.name)
    asked = _asked({"reasoning_content": "hm", "custom": 1}, max_tokens=5000)
    same = adapter.build(adapter.without_signatures(asked), target)
    assert same.body == adapter.build(asked, target).body


@pytest.mark.parametrize("turn", [{"reasoning_content": "hm"}, {}], ids=["known", "unknown"])
def test_readable_reasoning_goes_as_the_vendor_asked(turn: dict[str, Any]):
    """After a refusal: none of it, or some on every turn with calls, where the client has kept none too."""
    target = golden.target("openai_chat")
    asked = _asked(turn, max_tokens=5000)

    def sent(replay: bool | None) -> list[Any]:
        request = msgspec.structs.replace(asked, replay_reasoning=replay)
        messages = msgspec.json.decode(CHAT.build(request, target).body)["messages"]
        return [m.get("reasoning_content") for m in messages if m["role"] == "assistant"]

    assert sent(False) == [None]
    assert sent(True) == [turn.get("reasoning_content", " ")]
