"""Odd bytes in the headers that are read: what they say may be refused, but nothing breaks and records stay text."""

import json
from typing import Any

import pytest

from tests.support.node import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = {"GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "100000"}
READ = (
    *("accept", "access-control-request-headers", "anthropic-beta", "anthropic-version"),
    *("authorization", "connection", "content-encoding", "content-type", "expect", "http-referer"),
    *("idempotency-key", "origin", "session-id", "upgrade", "user-agent", "vendor-version"),
    *("x-api-key", "x-claude-code-session-id", "x-forwarded-for", "x-gw-metadata"),
    *("x-gw-session-id", "x-gw-user-id", "x-request-id", "x-title"),
)
VALUES = {
    "no UTF-8": b"\xff\xfe",
    "a surrogate": b"\xed\xa0\x80",
    "cut UTF-8": b"gr\xc3",
    "a C1 control": b"a\x85b",
    "letters": "Grüße".encode(),
    "turned around": "a\u202eb".encode(),
    "an emoji": "👋".encode(),
    "other digits": "٢٠٢٣-٠٦-٠١".encode(),
    "a tab": b"a\tb",
    "long": b"\xff" * 1_000,
}
HELLO = [{"role": "user", "content": "hello"}]
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "chat": ("POST", "/chat/completions", {"model": "demo/chat", "messages": HELLO}),
    "messages": (
        "POST",
        "/messages",
        {"model": "demo/claude", "messages": HELLO, "max_tokens": 16},
    ),
    "responses": ("POST", "/responses", {"model": "demo/responses", "input": "hello"}),
    "create a key": ("POST", "/keys", {"name": "test"}),
    "models": ("GET", "/models", None),
    "preflight": ("OPTIONS", "/chat/completions", None),
    "nowhere": ("GET", "/nowhere", None),
}


@pytest.mark.parametrize("value", ["no UTF-8", "a C1 control", "turned around", "other digits"])
@pytest.mark.parametrize("name", READ)
async def test_no_header_breaks_a_request(node: Gateway, name: str, value: str) -> None:
    for method, path, body in REQUESTS.values():
        key = node.management_key if path == "/keys" else node.key
        headers = {b"authorization": f"Bearer {key}".encode()} | {name.encode(): VALUES[value]}
        reply = await node.client.request(method, path, json=body, headers=headers)
        assert reply.status_code < 500, (path, reply.text)
        if reply.content:
            json.loads(reply.content.decode("utf-8"))


@pytest.mark.parametrize("value", VALUES)
async def test_a_record_holds_text(node: Gateway, value: str) -> None:
    names = (b"user-agent", b"x-title", b"http-referer", b"x-gw-session-id", b"x-gw-user-id")
    reply = await node.chat(headers=dict.fromkeys(names, VALUES[value]))
    assert reply.status_code == 200
    record = await node.generation(reply)
    for field in ("user_agent", "http_referer", "session_id", "external_user"):
        assert (record[field] or "").isprintable()


async def test_an_unknown_packing_is_named_and_refused(node: Gateway) -> None:
    reply = await node.chat(headers={b"content-encoding": b"\xff\xfe"})
    assert reply.status_code == 415
    assert reply.json()["error"]["code"] == "unsupported_media_type"
