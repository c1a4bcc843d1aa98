"""POST /responses as a client sees it: whole, streamed, cut short, refused."""

import json
from typing import Any

import httpx
import pytest

from tests.support.node import Gateway

MODELS = ("demo/responses", "demo/chat", "demo/claude")


async def send(gateway: Gateway, **fields: Any) -> httpx.Response:
    headers = fields.pop("headers", {})
    body = {"model": "demo/responses", "input": "hello", **fields}
    return await gateway.client.post("/responses", json=body, headers=headers)


def events_of(text: str) -> list[Any]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize("model", MODELS)
async def test_whole_answer_has_the_dialects_shape(gateway: Gateway, model: str) -> None:
    body = (await send(gateway, model=model)).json()
    assert (body["object"], body["status"], body["model"]) == ("response", "completed", model)
    assert body["id"].startswith("resp_")
    (item,) = [item for item in body["output"] if item["type"] == "message"]
    assert item["role"] == "assistant"
    assert "".join(part["text"] for part in item["content"]) == body["output_text"]
    usage = body["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert "cached_tokens" in usage["input_tokens_details"]
    assert "reasoning_tokens" in usage["output_tokens_details"]
    assert body["store"] is False


@pytest.mark.parametrize("model", MODELS)
async def test_stream_is_numbered_without_gaps_and_ends_completed(
    gateway: Gateway, model: str
) -> None:
    events = events_of((await send(gateway, model=model, stream=True)).text)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [events[0]["type"], events[-1]["type"]] == ["response.created", "response.completed"]
    deltas = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
    assert "".join(deltas) == events[-1]["response"]["output_text"]
    assert events[-1]["response"]["usage"]["output_tokens"] > 0


@pytest.mark.parametrize("model", MODELS)
async def test_a_truncated_answer_is_incomplete(gateway: Gateway, model: str) -> None:
    fields: dict[str, Any] = {
        "model": model,
        "input": "tell me a long story",
        "max_output_tokens": 16,
    }
    gateway.vendor.script.always("finish=length")
    body = (await send(gateway, **fields)).json()
    assert body["status"] == "incomplete"
    assert body["incomplete_details"] == {"reason": "max_output_tokens"}
    events = events_of((await send(gateway, **fields, stream=True)).text)
    assert events[-1]["type"] == "response.incomplete"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"previous_response_id": "resp_1"}, "unsupported_parameter"),
        ({"conversation": "conv_1"}, "unsupported_parameter"),
        ({"background": True}, "unsupported_parameter"),
        ({"prompt": {"id": "pmpt_1"}}, "unsupported_parameter"),
        (
            {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
            "unsupported_tool",
        ),
        ({"input": []}, None),
        ({"input": 5}, None),
    ],
)
async def test_what_is_not_supported_is_named(
    gateway: Gateway, fields: dict[str, Any], code: str | None
) -> None:
    reply = await send(gateway, **fields)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["type"] == "invalid_request_error"
    if code is not None:
        assert error["code"] == code
        assert error["message"]


async def test_a_hosted_tool_is_left_out_and_the_answer_comes(gateway: Gateway) -> None:
    own = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    reply = await send(gateway, tools=[{"type": "web_search"}, own])
    assert reply.status_code == 200
    (call,) = gateway.vendor.calls.on("/v1/responses")
    assert call.body
    assert [tool["name"] for tool in call.body["tools"]] == ["f"]


@pytest.mark.parametrize("strict", [False, True])
async def test_a_hosted_tool_that_has_to_run_is_refused(gateway: Gateway, *, strict: bool) -> None:
    """Without any tool of its own the request would be answered from nothing."""
    own = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    tools = [{"type": "web_search"}, *([own] if strict else [])]
    reply = await send(gateway, tools=tools, provider={"require_parameters": strict})
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "unsupported_tool"
    assert not gateway.vendor.calls.on("/v1/responses")


async def test_an_item_that_nobody_holds_is_skipped(gateway: Gateway) -> None:
    items = [
        {"type": "item_reference", "id": "rs_gone"},
        {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
    ]
    assert (await send(gateway, input=items)).status_code == 200
