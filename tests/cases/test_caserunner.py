"""The runner itself: paths, operators, placeholders, derived streams, fake vendors."""

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest

from tests.cases.caserunner.assertions import (
    NothingThere,
    compact_json,
    failure,
    fill,
    find,
    load_json,
    plain_decimal,
)
from tests.cases.caserunner.stream import EventReader, Json, client_stream
from tests.cases.caserunner.vendors import Vendors
from tests.cases.caserunner.wire import send

ROOT = load_json(
    '{"a":{"b":[{"k":"x","n":1},{"k":"y","n":2.50,"t":[{"id":"1"},{"id":"2"}]},{"z":null}]},'
    '"x-y":"Hi\\nthere","f":false}'
)


def holds(path: str, op: str, **rest: Any) -> bool:
    return failure({"where": "r", "path": path, "op": op, **rest}, ROOT) is None


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.b[0].k", "x"),
        ("a.b[-2].n", Decimal("2.5")),
        ("a.b[*].k", ["x", "y"]),
        ("a.b[*].t[*].id", [["1", "2"]]),
        ("a.b[?k=y].t[?id=2].id", "2"),
        ("a.b[?n=2.50].k", "y"),
        ("a.b.length()", 3),
        ("x-y.length()", 8),
        ("a.b[2].z", None),
    ],
)
def test_path_leads_to_its_value(path: str, found: Any) -> None:
    assert find(ROOT, path) == found


@pytest.mark.parametrize(
    "path", ["a.c", "a.b[3]", "a.b[?k=q]", "f.x", "a.b.k", "f.length()", "x-y[*].a"]
)
def test_path_without_end_is_told(path: str) -> None:
    with pytest.raises(NothingThere):
        find(ROOT, path)


@pytest.mark.parametrize(
    ("path", "op", "rest"),
    [
        ("a.b[1].n", "equals", {"value": Decimal("2.5")}),
        ("a.b[0].n", "equals", {"value": Decimal("1.0")}),
        ("a.b[0]", "equals", {"value_path": "a.b[?k=x]"}),
        ("x-y", "contains", {"value": "i\nt"}),
        ("a.b", "contains", {"value": {"n": 1}}),
        ("a.b[1]", "contains", {"value": {"k": "y", "n": Decimal("2.5")}}),
        ("q", "absent", {}),
        ("x-y", "matches", {"value": "^Hi.there$"}),
        ("a.b[2].z", "matches", {"value": "^null$"}),
        ("a.b[1]", "matches", {"value": r'"n":2\.50,"t":\[\{"id"'}),
    ],
)
def test_operator_accepts(path: str, op: str, rest: Json) -> None:
    assert holds(path, op, **rest)


@pytest.mark.parametrize(
    ("path", "op", "rest"),
    [
        ("f", "equals", {"value": 0}),
        ("a.b[0].n", "equals", {"value": True}),
        ("a.b[0].k", "equals", {"value_path": "a.b[*].k[0]"}),
        ("a.b", "contains", {"value": {"n": 3}}),
        ("a.b[2].z", "absent", {}),
        ("q", "matches", {"value": ".*"}),
        ("a", "matches", {"value": '^(?!.*"k")'}),
    ],
)
def test_operator_refuses(path: str, op: str, rest: Json) -> None:
    assert not holds(path, op, **rest)


def test_numbers_are_plain_and_json_is_compact() -> None:
    reported = [plain_decimal(Decimal(n)) for n in ("10.00", "2E-7", "0E-9", "1E+2", "-0")]
    assert reported == ["10", "0.0000002", "0", "100", "0"]
    value = {"é": [1, Decimal("0E-3"), True, None, 'a"b']}
    assert compact_json(value) == '{"é":[1,0.000,true,null,"a\\"b"]}'


def test_placeholder_is_a_value_alone_and_text_inside_text() -> None:
    names = {"key": "a.b", "message": {"role": "x"}, "http_date": lambda s: f"+{s}"}
    filled = fill({"m": ["{{message}}", "k={{key}}"], "d": "{{http_date+9s}}"}, names)
    assert filled == {"m": [{"role": "x"}, "k=a.b"], "d": "+9"}
    assert fill("^{{key}}$", names, escape=True) == r"^a\.b$"


def derived(dialect: str, events: list[Any], step: int = 3) -> Json:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    raw = "".join(f": c\n\ndata:{line}\r\n\r\n" for line in lines).encode()
    reader = EventReader()
    for start in range(0, len(raw), step):
        reader.feed(raw[start : start + step], start)
    return client_stream(dialect, 200, {}, raw.decode(), reader.frames)


def chunk(delta: Json, finish: str | None = None, **rest: Any) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "choices": [choice], **rest}


def call(index: int, **function: str) -> Json:
    named = {"id": f"c{index}"} if "name" in function else {}
    return {"tool_calls": [{"index": index, **named, "function": function}]}


def test_chat_stream_is_joined_by_index() -> None:
    error = {"code": "x", "message": "m"}
    view = derived(
        "chat",
        [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "né"}),
            chunk({"content": "e"}),
            chunk(call(0, name="f", arguments="")),
            chunk(call(1, name="g", arguments="{}")),
            chunk(call(0, arguments="{1}")),
            "oops",
            chunk({}, "tool_calls"),
            {"choices": [], "usage": {"n": 3}, "gateway_metadata": {"model": "m"}},
            chunk({"content": ""}, "error", error={**error, "metadata": {}}),
            {"error": {**error, "param": None}},
            "[DONE]",
        ],
    )
    assert (view["text"], view["starts"], view["done"]) == ("née", 1, True)
    assert view["bad_data"] == ["oops"]
    assert view["tool_calls"] == [
        {"index": 0, "id": "c0", "name": "f", "arguments": "{1}"},
        {"index": 1, "id": "c1", "name": "g", "arguments": "{}"},
    ]
    assert view["finish"] == "error"
    assert len(view["errors"]) == 1
    assert view["usage"] == {"n": 3}
    assert view["receipt"] == {"model": "m"}
    assert view["objects"] == ["chat.completion.chunk"]
    assert view["terminal"] is None
    assert view["first_text_ms"] > 0


def test_cut_completions_stream_has_no_end() -> None:
    view = derived("completions", [{"choices": [{"index": 0, "text": "a", "finish_reason": None}]}])
    assert (view["text"], view["finish"], view["done"], view["errors"]) == ("a", None, False, [])


MESSAGE_START = {
    "type": "message_start",
    "message": {"usage": {"input_tokens": 5, "output_tokens": 1}},
}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}
TOOL_USE = {"type": "tool_use", "id": "t", "name": "n", "input": {}}
MESSAGES_EVENTS: list[Any] = [
    MESSAGE_START,
    {"type": "content_block_start", "index": 0, "content_block": THINKING},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "signature_delta", "signature": "s"},
    },
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": TOOL_USE},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 9},
        "gateway_metadata": {"a": 1},
    },
    {"type": "message_stop"},
]


def test_messages_stream_is_rebuilt_from_blocks() -> None:
    view = derived("messages", MESSAGES_EVENTS)
    assert view["blocks"][0]["signature"] == "s"
    assert (view["block_order_ok"], view["done"], view["starts"]) == (True, True, 1)
    assert view["tool_calls"] == [{"index": 1, "id": "t", "name": "n", "arguments": "{}"}]
    assert view["finish"] == "tool_use"
    assert view["usage"] == {"input_tokens": 5, "output_tokens": 9}
    assert view["receipt"] == {"a": 1}


def test_block_left_open_is_out_of_order() -> None:
    assert not derived("messages", MESSAGES_EVENTS[:3] + MESSAGES_EVENTS[4:])["block_order_ok"]


def test_messages_stream_that_fails_has_an_error_and_no_end() -> None:
    error = {"type": "error", "error": {"type": "api_error", "message": "m"}}
    view = derived("messages", [MESSAGE_START, error])
    assert len(view["errors"]) == 1
    assert (view["terminal"], view["finish"], view["done"]) == ("error", None, False)


def test_responses_stream_is_joined_by_item() -> None:
    item = {"id": "fc", "type": "function_call", "call_id": "c", "name": "f"}
    done = {"status": "completed", "usage": {"total_tokens": 3}, "error": None}
    view = derived(
        "responses",
        [
            {"type": "response.created", "response": {"status": "in_progress", "usage": None}},
            {"type": "response.output_item.added", "output_index": 1, "item": item},
            {"type": "response.function_call_arguments.delta", "item_id": "fc", "delta": "{}"},
            {"type": "response.output_text.delta", "delta": "hi"},
            {"type": "response.completed", "response": done},
        ],
    )
    assert (view["text"], view["done"], view["finish"]) == ("hi", True, "completed")
    assert view["usage"] == {"total_tokens": 3}
    assert view["tool_calls"] == [{"index": 1, "id": "c", "name": "f", "arguments": "{}"}]
    assert view["errors"] == []


async def test_vendor_plays_its_script_and_records_every_call() -> None:
    vendors = Vendors()
    await vendors.start(["a"])
    address = ("127.0.0.1", int(vendors.url("a", "openai").rsplit(":", 1)[1]))
    sse = [{"data": chunk({"content": "né"})}, {"data": "[DONE]", "delay_ms": 400}]
    script: list[Json] = [
        {"status": 503, "body": {"error": {}}, "encode": "gzip"},
        {"fault": "disconnect_before_headers"},
        {"status": 200, "sse": sse, "write_bytes": 1},
    ]
    vendors.play("openai", script)
    path, body = "/v1/chat/completions", b'{"model":"m"}'
    refused, dropped, streamed = [
        await send(address, "POST", path, {}, body) for _ in range(len(script))
    ]
    assert (refused.status, refused.text) == (503, '{"error":{}}')
    assert dropped.status is None
    assert streamed.frames[-1][1] == "[DONE]"
    assert streamed.frames[-1][0] >= 400
    assert "né" in streamed.text
    wrong = await send(address, "POST", "/chat/completions", {}, b"{}")
    left = await send(address, "POST", path, {}, body, leave_when=bool)
    await asyncio.sleep(0.1)
    assert (wrong.status, left.trouble) == (404, "left on purpose")
    assert [seen["aborted"] for seen in vendors.calls] == [False] * 4 + [True]
    assert vendors.seen()["count"] == 5
    assert vendors.seen(1)["models_called"] == ["m", "m", "m", None, "m"]
    vendors.stop()
