"""Where calls go and what their heads hold, byte for byte: every format, every way of a key, every kind of address."""

from typing import Any, get_args

import msgspec
import pytest

from gwd.core.request import Embed
from gwd.core.vendor_format import Auth
from gwd.upstream.base import Timeouts
from gwd.upstream.http_client import HttpClient
from gwd.vendors.call import url_for
from gwd.vendors.formats import ADAPTERS
from tests.golden import golden
from tests.support.recorder import Recorder

BY_NAME = {adapter.format.name: adapter for adapter in ADAPTERS}
CHAT = golden.request()
STREAM = golden.request(stream=True)
TEXTS = golden.request(body=Embed(inputs=("hello",)), dialect="embeddings")
KEY = "up-key"
HEADERS: dict[Auth, str] = {
    "bearer": "authorization: Bearer up-key\r\n",
    "api-key": "api-key: up-key\r\n",
    "x-api-key": "x-api-key: up-key\r\n",
    "x-goog-api-key": "x-goog-api-key: up-key\r\n",
    "none": "",
}
JSON = "content-type: application/json\r\n"
TAKES = JSON + "accept: application/json\r\n"
VERSION = "anthropic-version: 2023-06-01\r\n"
MODEL = "/v1beta/models/model-up"
# format, request, its path, its own query, its headers before and behind the key
CALLS: list[tuple[str, Any, str, str, str, str]] = [
    ("openai_chat", CHAT, "/v1/chat/completions", "", TAKES, ""),
    ("openai_chat", STREAM, "/v1/chat/completions", "", TAKES, ""),
    ("openai_responses", CHAT, "/v1/responses", "", TAKES, ""),
    ("openai_embeddings", TEXTS, "/v1/embeddings", "", TAKES, ""),
    ("anthropic_messages", CHAT, "/v1/messages", "", JSON, VERSION),
    ("anthropic_messages", STREAM, "/v1/messages", "", JSON, VERSION),
    ("gemini", CHAT, f"{MODEL}:generateContent", "", TAKES, ""),
    ("gemini", STREAM, f"{MODEL}:streamGenerateContent", "alt=sse", TAKES, ""),
    ("gemini", TEXTS, f"{MODEL}:batchEmbedContents", "", TAKES, ""),
]


async def test_every_call_is_sent_as_its_provider_says() -> None:
    wrong = []
    async with Recorder().running() as server:
        client = HttpClient(Timeouts())
        for name, request, path, own, before, behind in CALLS:
            for auth in get_args(Auth):
                for query in ("", "tenant=a%20b&region=eu"):
                    base = server.url + (f"/proxy/?{query}" if query else "")
                    to = golden.target(name, base_url=base, auth=auth, headers={"X-Team": "seven"})
                    call = BY_NAME[name].build(request, to)
                    reply = await client.send(call, 5)
                    await reply.read_all(5)
                    reply.close()
                    asked = "&".join(filter(None, (query, own)))
                    place = ("/proxy" if query else "") + path + (f"?{asked}" if asked else "")
                    wanted = (
                        f"POST {place} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
                        f"accept-encoding: identity\r\n{before}{HEADERS[auth]}{behind}x-team: seven\r\n"
                        f"content-length: {len(call.body)}\r\n\r\n"
                    )
                    if server.heads[-1] != wanted or KEY.encode() in server.bodies[-1]:
                        wrong.append((name, auth, query, server.heads[-1], wanted))
        await client.close()
    assert wrong == []
    assert len(server.heads) == len(CALLS) * len(get_args(Auth)) * 2


@pytest.mark.parametrize("auth", get_args(Auth))
def test_an_empty_key_has_no_header(auth: Auth) -> None:
    nothing = msgspec.structs.replace(golden.target("openai_chat").credential, secret="")
    for name, request, *_ in CALLS:
        call = BY_NAME[name].build(request, golden.target(name, auth=auth, credential=nothing))
        assert HEADERS.keys().isdisjoint(call.headers)
        assert "authorization" not in call.headers


def test_addresses_lead_where_vendors_serve() -> None:
    """Each as its vendor documents it: the base that people are told, the path of a call, and the whole address."""
    azure = "https://x.openai.azure.com/openai"
    flare = "https://gateway.ai.cloudflare.com/v1/account/gateway"
    dated = "?api-version=2024-10-21"
    table: list[tuple[str, str, dict[str, Any], str]] = [
        (
            f"{azure}/deployments/d{dated}",
            "chat/completions",
            {},
            f"{azure}/deployments/d/chat/completions{dated}",
        ),
        (
            f"{azure}/deployments/d/{dated}",
            "embeddings",
            {},
            f"{azure}/deployments/d/embeddings{dated}",
        ),
        (
            f"{azure}/deployments/d/chat/completions{dated}",
            "chat/completions",
            {},
            f"{azure}/deployments/d/chat/completions{dated}",
        ),
        (f"{azure}/v1", "responses", {}, f"{azure}/v1/responses"),
        (f"{azure}/v1/", "chat/completions", {}, f"{azure}/v1/chat/completions"),
        (f"{azure}{dated}", "responses", {}, f"{azure}/responses{dated}"),
        (
            "https://x.services.ai.azure.com/models?api-version=2024-05-01-preview",
            "chat/completions",
            {},
            "https://x.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
        ),
        (
            "https://x.services.ai.azure.com/anthropic",
            "messages",
            {"version_is_last": True},
            "https://x.services.ai.azure.com/anthropic/v1/messages",
        ),
        (
            f"{flare}/anthropic",
            "messages",
            {"version_is_last": True},
            f"{flare}/anthropic/v1/messages",
        ),
        (f"{flare}/openai", "chat/completions", {}, f"{flare}/openai/chat/completions"),
        ("https://h/v1/chat/completions", "models", {}, "https://h/v1/models"),
        ("https://h/v1/messages?a=b", "models", {"version_is_last": True}, "https://h/v1/models?a=b"),
        ("https://h/chat/completions", "chat/completions", {}, "https://h/chat/completions"),
        ("https://h?a=b", "m:s", {"version": "v1beta", "query": "alt=sse"}, "https://h/v1beta/m:s?a=b&alt=sse"),
        ("https://h/v1", "m:s", {"query": "alt=sse"}, "https://h/v1/m:s?alt=sse"),
    ]  # fmt: skip
    assert [
        (base, path, found, wanted)
        for base, path, fields, wanted in table
        if (found := url_for(base, path, **fields)) != wanted
    ] == []
