"""POST /chat/completions as a client sees it: whole, streamed, paid, refused."""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.support.node import Gateway


def frames_of(text: str) -> list[Any]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


async def test_whole_answer_has_usage_and_the_six_headers(gateway: Gateway) -> None:
    reply = await gateway.chat()
    assert reply.status_code == 200
    body = reply.json()
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"]["total_tokens"] > 0
    assert "cost" not in body["usage"]
    for name in (
        "x-gw-generation-id",
        "x-gw-provider",
        "x-gw-model",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-request-id",
    ):
        assert name in reply.headers
    assert body["id"] == reply.headers["x-gw-generation-id"]


@pytest.mark.parametrize("stream", [False, True])
async def test_headers_are_latin_on_one_line(gateway: Gateway, stream: bool) -> None:
    broken = await gateway.operator.patch("/catalog/models/demo/chat", json={"vendor": "a\r\nb"})
    assert (broken.status_code, broken.json()["error"]["param"]) == (400, "vendor")
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"vendor": "M\u00fcller \u5b57"})
    reply = await gateway.chat(stream=stream)
    values = [value for name, value in reply.headers.raw if name == b"x-gw-provider"]
    assert values == [b"M\xfcller ?"]


async def test_stream_ends_with_usage_on_empty_choices_and_done(gateway: Gateway) -> None:
    reply = await gateway.chat(stream=True)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.text.endswith("data: [DONE]\n\n")
    frames = frames_of(reply.text)
    assert frames[-1]["choices"] == []
    assert frames[-1]["usage"]["completion_tokens"] > 0
    assert "usage" not in frames[0]


async def test_whole_and_stream_give_the_same_text_and_cost(gateway: Gateway) -> None:
    whole = (await gateway.chat(usage={"include": True})).json()
    frames = frames_of((await gateway.chat(usage={"include": True}, stream=True)).text)
    text = "".join(f["choices"][0]["delta"].get("content", "") for f in frames if f["choices"])
    assert text == whole["choices"][0]["message"]["content"]
    assert frames[-1]["usage"]["cost"] == whole["usage"]["cost"]


async def test_balance_falls_by_exactly_the_cost(gateway: Gateway) -> None:
    before = await gateway.balance()
    reply = await gateway.chat(usage={"include": True})
    cost = json.loads(reply.text, parse_float=Decimal)["usage"]["cost"]
    assert await gateway.balance() == before - cost


async def test_receipt_is_on_the_usage_chunk_only_when_asked_for(gateway: Gateway) -> None:
    asked = frames_of((await gateway.chat(stream=True, headers={"x-gw-metadata": "enabled"})).text)
    silent = frames_of((await gateway.chat(stream=True)).text)
    assert asked[-1]["gateway_metadata"]["routing"]["attempt"] == 1
    assert all("gateway_metadata" not in frame for frame in silent)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"{", 400, None),
        (b"[]", 400, None),
        (b'{"model": 5, "messages": []}', 400, "model"),
        (b'{"messages": [{"role": "user", "content": "x"}]}', 400, "model"),
        (b'{"model": "demo/chat"}', 400, "messages"),
        (b'{"model": "demo/chat", "messages": []}', 400, "messages"),
        (b'{"model": "demo/chat", "messages": [{"role": "x", "content": "y"}]}', 400, None),
        (b'{"model": "demo/none", "messages": [{"role": "user", "content": "x"}]}', 404, "model"),
        (
            b'{"model": "demo/chat", "messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
            400,
            None,
        ),
        (
            b'{"model": "demo/chat", "messages": [{"role": "user", "content": "\\ud800"}]}',
            400,
            None,
        ),
        (b"\xff\xfe", 400, None),
        (b'{"model": "demo/chat", "messages": ' + b"[" * 100_000, 400, None),
    ],
)
async def test_malformed_request_is_a_4xx_in_our_envelope(
    gateway: Gateway, body: bytes, status: int, param: str | None
) -> None:
    reply = await gateway.client.post(
        "/chat/completions", content=body, headers={"content-type": "application/json"}
    )
    assert reply.status_code == status
    error = reply.json()["error"]
    assert error["code"] != "internal_error"
    assert error["message"]
    if param is not None:
        assert error["param"] == param
    assert gateway.vendor.calls.on("/v1/chat/completions") == []


async def test_byte_order_mark_is_taken_in(gateway: Gateway) -> None:
    body = json.dumps({"model": "demo/chat", "messages": [{"role": "user", "content": "x"}]})
    reply = await gateway.client.post("/chat/completions", content=b"\xef\xbb\xbf" + body.encode())
    assert reply.status_code == 200


async def test_refusal_is_on_record(gateway: Gateway) -> None:
    reply = await gateway.chat(model="demo/none")
    record = await gateway.generation(reply)
    assert record["status"] == "refused"
    assert record["error"]["code"] == "model_not_found"
    assert record["total_cost"] == 0


@pytest.mark.parametrize("model", ["demo/chat", "demo/claude", "demo/responses"])
async def test_instructions_alone_are_answered(gateway: Gateway, model: str) -> None:
    messages = [{"role": "system", "content": "Write a haiku about tea."}]
    reply = await gateway.chat(model=model, messages=messages)
    assert reply.status_code == 200, reply.text
    assert reply.json()["choices"][0]["message"]["content"]
    reply = await gateway.chat(model=model, messages=[{"role": "system", "content": ""}])
    assert reply.status_code == 400


@pytest.mark.parametrize("model", ["demo/chat", "demo/claude", "demo/responses"])
async def test_what_clients_keep_on_a_message_stays_with_them(gateway: Gateway, model: str) -> None:
    answer = {
        "role": "assistant",
        "content": [{"type": "text", "text": "b", "role": "assistant", "annotations": []}],
        "id": "gen-1",
        "parsed": {"a": 1},
        "provider_specific_fields": {"reasoning": "hm"},
        "thinking_blocks": [],
        "annotations": [],
        "timestamp": 1,
    }
    user = {"role": "user", "content": "a"}
    reply = await gateway.chat(model=model, messages=[user, answer, user])
    assert reply.status_code == 200, reply.text
