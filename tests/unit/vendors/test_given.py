"""What each vendor format says of the priced extras, in whole answers and in streams, also in ones that break off."""

import json
from typing import Any

import msgspec
import pytest

from gwd.core.events import Finished
from gwd.core.extras import Given, Sold
from gwd.core.sse import SseSplitter
from gwd.vendors.anthropic_messages import ADAPTER as ANTHROPIC
from gwd.vendors.base import Adapter
from gwd.vendors.gemini import ADAPTER as GEMINI
from gwd.vendors.openai_chat import ADAPTER as CHAT
from gwd.vendors.openai_responses import ADAPTER as RESPONSES
from tests.golden import golden
from tests.unit.pricing.builders import chat

Json = dict[str, Any]

CALL: Json = {"type": "web_search_call", "id": "ws", "status": "completed"}
MESSAGE: Json = {
    "type": "message", "id": "m", "role": "assistant",
    "content": [{"type": "output_text", "text": "ok", "annotations": []}],
}  # fmt: skip
SEARCHING: Json = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}


def of_chat(usage: Json | None = None, **fields: Any) -> Json:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "ok"},
        "finish_reason": "stop",
    }
    counts = {"prompt_tokens": 9, "completion_tokens": 1, **(usage or {})}
    return {"id": "c", "choices": [choice], "usage": counts, **fields}


def of_messages(usage: Json | None = None, *blocks: Json) -> Json:
    content = [*blocks, {"type": "text", "text": "ok"}]
    counts = {"input_tokens": 9, "output_tokens": 1, **(usage or {})}
    return {"type": "message", "content": content, "stop_reason": "end_turn", "usage": counts}


def of_responses(*items: Json, **fields: Any) -> Json:
    return {"id": "r", "status": "completed", "output": [*items, MESSAGE], **fields}


def of_gemini(**grounding: Any) -> Json:
    candidate = {
        "content": {"role": "model", "parts": [{"text": "ok"}]},
        "finishReason": "STOP",
        "groundingMetadata": grounding,
    }
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 9}}


WHOLE: list[tuple[str, Adapter, Json, Given | None]] = [
    ("chat: nothing", CHAT, of_chat(), None),
    ("chat: a tier", CHAT, of_chat(service_tier="Priority"),
     Given(values={"service_tier": "priority"})),
    ("chat: a tier that is no word", CHAT, of_chat(service_tier=2), None),
    ("chat: searches of one relative", CHAT, of_chat({"num_search_queries": 2}), Given(searches=2)),
    ("chat: searches of another", CHAT,
     of_chat({"server_tool_use": {"web_search_requests": 3}}), Given(searches=3)),
    ("chat: searches that are no count", CHAT, of_chat({"num_search_queries": -2}), None),
    ("messages: nothing", ANTHROPIC, of_messages({"server_tool_use": None}), None),
    ("messages: words", ANTHROPIC,
     of_messages({"service_tier": "standard", "speed": "fast", "inference_geo": "us"}),
     Given(values={"service_tier": "standard", "speed": "fast", "inference_geo": "us"})),
    ("messages: searches", ANTHROPIC,
     of_messages({"server_tool_use": {"web_search_requests": 3}}), Given(searches=3)),
    ("messages: searches by their count, not by their blocks", ANTHROPIC,
     of_messages({"server_tool_use": {"web_search_requests": 1}}, SEARCHING, SEARCHING),
     Given(searches=1)),
    ("messages: searches by their blocks", ANTHROPIC, of_messages(None, SEARCHING, SEARCHING),
     Given(searches=2)),
    ("messages: a count that is none", ANTHROPIC,
     of_messages({"server_tool_use": {"web_search_requests": "9"}}, SEARCHING), Given(searches=1)),
    ("responses: nothing", RESPONSES, of_responses(), None),
    ("responses: a tier", RESPONSES, of_responses(service_tier="flex"),
     Given(values={"service_tier": "flex"})),
    ("responses: calls", RESPONSES,
     of_responses(CALL, {**CALL, "id": "b", "action": {"type": "search"}}), Given(searches=2)),
    ("responses: calls that cost nothing", RESPONSES,
     of_responses({**CALL, "action": {"type": "open_page"}}, {**CALL, "id": "b", "status": "failed"}),
     None),
    ("responses: the vendor's own count", RESPONSES,
     of_responses(CALL, tool_usage={"web_search": {"num_requests": 4}}), Given(searches=4)),
    ("gemini: nothing", GEMINI, of_gemini(), None),
    ("gemini: different queries", GEMINI, of_gemini(webSearchQueries=["a", "", "b", "a", None]),
     Given(searches=2)),
]  # fmt: skip

STREAMS: list[tuple[str, Adapter, list[Json], Given | None]] = [
    ("chat: the last tier", CHAT, [
        {"id": "c", "service_tier": "auto", "choices": [{"index": 0, "delta": {"content": "o"}}]},
        {"choices": [{"index": 0, "delta": {"content": "k"}}], "service_tier": "auto"},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "service_tier": "flex"},
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1, "num_search_queries": 1}},
    ], Given(values={"service_tier": "flex"}, searches=1)),
    ("messages: from both reports", ANTHROPIC, [
        {"type": "message_start", "message": {"usage": {
            "input_tokens": 9, "speed": "fast", "server_tool_use": {"web_search_requests": 0}}}},
        {"type": "content_block_start", "index": 0, "content_block": SEARCHING},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {
            "output_tokens": 1, "server_tool_use": {"web_search_requests": 2}}},
        {"type": "message_stop"},
    ], Given(values={"speed": "fast"}, searches=2)),
    ("messages: broken off", ANTHROPIC, [
        {"type": "message_start", "message": {"usage": {
            "input_tokens": 9, "server_tool_use": {"web_search_requests": 0}}}},
        {"type": "content_block_start", "index": 0, "content_block": SEARCHING},
    ], Given(searches=1)),
    ("responses: broken off", RESPONSES, [
        {"type": "response.created", "response": {"id": "r", "service_tier": "auto"}},
        {"type": "response.output_item.done", "output_index": 0, "item": CALL},
    ], Given(values={"service_tier": "auto"}, searches=1)),
    ("responses: the last tier", RESPONSES, [
        {"type": "response.created", "response": {"id": "r", "service_tier": "auto"}},
        {"type": "response.output_item.done", "output_index": 0, "item": CALL},
        {"type": "response.completed", "response": of_responses(CALL, service_tier="priority")},
    ], Given(values={"service_tier": "priority"}, searches=1)),
    ("gemini: the last grounding", GEMINI, [of_gemini(webSearchQueries=["a"])], Given(searches=1)),
]  # fmt: skip


def test_a_whole_answer_says_what_it_gave() -> None:
    found = {}
    for name, adapter, body, _ in WHOLE:
        events = adapter.decode(
            json.dumps(body).encode(), chat("hi"), golden.target(adapter.format.name)
        )
        assert isinstance(events[-1], Finished), name
        found[name] = events[-1].given
    assert found == {name: given for name, *_, given in WHOLE}


def test_a_stream_says_what_it_gave_also_when_it_breaks_off() -> None:
    found = {}
    for name, adapter, chunks, _ in STREAMS:
        decoder = adapter.decoder(chat("hi"), golden.target(adapter.format.name))
        data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
        for frame in SseSplitter().feed(data):
            decoder.feed(frame)
        found[name] = decoder.given
    assert found == {name: given for name, *_, given in STREAMS}


@pytest.mark.parametrize("sold", [(), ("web_search",)])
def test_calls_of_the_vendors_tools_are_shown_where_it_was_asked_to_run_them(
    sold: tuple[str, ...],
) -> None:
    target = golden.target("openai_responses", sold=Sold(tools=sold))
    body = json.dumps(of_responses(CALL)).encode()
    request = msgspec.structs.replace(chat("hi"), family="openai_responses")
    items = [
        event.item for event in RESPONSES.decode(body, request, target) if hasattr(event, "item")
    ]
    assert (CALL in items) is bool(sold)
