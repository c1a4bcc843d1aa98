"""POST /messages as a client sees it: whole, streamed, refused."""

import json
from typing import Any

import httpx
import pytest

from tests.support.node import Gateway

MODELS = ("demo/claude", "demo/chat", "demo/responses")


async def send(gateway: Gateway, **fields: Any) -> httpx.Response:
    headers = {"anthropic-version": "2023-06-01", **fields.pop("headers", {})}
    body = {
        "model": "demo/claude",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "hello"}],
        **fields,
    }
    return await gateway.client.post("/messages", json=body, headers=headers)


def events_of(text: str) -> list[tuple[str, Any]]:
    frames = [frame.split("\n") for frame in text.strip().split("\n\n") if "data: " in frame]
    return [(name[7:], json.loads(data[6:])) for name, data in frames]


@pytest.mark.parametrize("model", MODELS)
async def test_whole_answer_has_the_dialects_shape(gateway: Gateway, model: str) -> None:
    body = (await send(gateway, model=model)).json()
    assert (body["type"], body["role"], body["model"]) == ("message", "assistant", model)
    assert body["id"].startswith("msg_")
    assert [b["type"] for b in body["content"] if b["type"] != "thinking"] == ["text"]
    assert body["stop_reason"] == "end_turn"
    usage = body["usage"]
    assert usage["input_tokens"] > 0
    assert usage["output_tokens"] > 0
    assert {"cache_read_input_tokens", "cache_creation_input_tokens"} <= usage.keys()
    assert "cost" not in usage


@pytest.mark.parametrize("model", MODELS)
async def test_stream_names_every_event_and_ends_with_message_stop(
    gateway: Gateway, model: str
) -> None:
    reply = await send(gateway, model=model, stream=True, headers={"x-gw-metadata": "enabled"})
    events = events_of(reply.text)
    assert all(name == data["type"] for name, data in events)
    assert events[0][0] == "message_start"
    assert [name for name, _ in events[-2:]] == ["message_delta", "message_stop"]
    assert events[-2][1]["gateway_metadata"]["model"] == model
    assert "[DONE]" not in reply.text


async def test_either_version_header_serves_and_none_is_needed(gateway: Gateway) -> None:
    for headers in ({"vendor-version": "2023-06-01"}, {"anthropic-version": "2026-10-21"}, {}):
        assert (await send(gateway, headers=headers)).status_code == 200


async def test_a_version_that_is_no_date_is_refused(gateway: Gateway) -> None:
    reply = await send(gateway, headers={"anthropic-version": "latest"})
    assert reply.status_code == 400
    assert reply.json()["error"]["type"] == "invalid_request_error"


async def test_the_key_may_come_as_x_api_key(gateway: Gateway) -> None:
    del gateway.client.headers["authorization"]
    reply = await send(gateway, headers={"x-api-key": gateway.key})
    assert reply.status_code == 200


async def test_the_vendor_gets_a_maximum_where_the_client_gave_none(gateway: Gateway) -> None:
    body = {"model": "demo/claude", "messages": [{"role": "user", "content": "hello"}]}
    assert (await gateway.client.post("/messages", json=body)).status_code == 200
    (call,) = gateway.vendor.calls.on("/v1/messages")
    assert call.body
    assert call.body["max_tokens"] > 0


@pytest.mark.parametrize(
    ("fields", "status", "kind"),
    [
        ({"model": "demo/none"}, 404, "not_found_error"),
        ({"messages": []}, 400, "invalid_request_error"),
        ({"messages": "hello"}, 400, "invalid_request_error"),
        ({"max_tokens": 0}, 400, "invalid_request_error"),
        ({"fallbacks": [{"model": "demo/chat"}], "models": ["demo/chat"]}, 400, None),
    ],
)
async def test_refusals_come_in_the_dialects_envelope(
    gateway: Gateway, fields: dict[str, Any], status: int, kind: str | None
) -> None:
    reply = await send(gateway, **fields)
    assert reply.status_code == status
    body = reply.json()
    assert body["type"] == "error"
    assert body["error"]["type"] == (kind or "invalid_request_error")
    assert body["error"]["message"]
    assert body["request_id"] == reply.headers["request-id"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}]
)
async def test_a_thread_is_refused_in_the_words_that_sdks_go_on_without_it(
    gateway: Gateway, model: str, thread: dict[str, str]
) -> None:
    reply = await send(gateway, model=model, thread=thread)
    error = reply.json()["error"]
    assert (reply.status_code, error["type"]) == (400, "invalid_request_error")
    assert error["details"] == {
        "error_code": "thread_unsupported_request",
        "param": "thread",
        "unsupported": ["thread"],
    }
    assert (await gateway.generation(reply))["error"]["code"] == "unsupported_parameter"
    assert (await send(gateway, model=model, thread=None)).status_code == 200


@pytest.mark.parametrize("model", ["demo/chat", "demo/responses"])
async def test_a_file_kept_by_another_vendor_is_a_bad_request(gateway: Gateway, model: str) -> None:
    document = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
    reply = await send(gateway, model=model, messages=[{"role": "user", "content": [document]}])
    error = reply.json()["error"]
    assert (reply.status_code, error["details"]["error_code"]) == (400, "unsupported_content")
    assert "send the file's bytes" in error["message"]


@pytest.mark.parametrize("model", MODELS)
async def test_what_sdks_write_on_blocks_stays_with_them(gateway: Gateway, model: str) -> None:
    block = {"type": "text", "text": "b", "parsed_output": {"a": 1}, "index": 0}
    user = {"role": "user", "content": "a"}
    reply = await send(
        gateway, model=model, messages=[user, {"role": "assistant", "content": [block]}, user]
    )
    assert reply.status_code == 200, reply.text
