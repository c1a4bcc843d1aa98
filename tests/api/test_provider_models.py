"""GET /catalog/providers/{slug}/models: the lists of many servers, their pages, and what is none."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gwd.demo import SimulatedVendor
from tests.support.node import Gateway
from tests.support.recorder import Recorder, answer
from tests.vendor import StrictVendor

NOTHING: dict[str, Any] = {
    "context_length": None,
    "max_completion_tokens": None,
    "owned_by": None,
    "created_at": None,
    "in_catalog": [],
}
# A server, its adapter, a model in its list, and what is read of it; as its documentation or its source has it.
LISTS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (
        "openai",
        "openai_chat",
        {"id": "gpt-5", "object": "model", "created": 1785974400, "owned_by": "openai"},
        {"name": "gpt-5", "created_at": "2026-08-06T00:00:00Z", "owned_by": "openai"},
    ),
    (
        "vllm",
        "openai_responses",
        {"id": "org/m", "created": 1785974400, "owned_by": "vllm", "max_model_len": 8192},
        {
            "name": "org/m",
            "created_at": "2026-08-06T00:00:00Z",
            "owned_by": "vllm",
            "context_length": 8192,
        },
    ),
    (
        "openrouter",
        "openai_chat",
        {
            "id": "a/b",
            "name": "A: B",
            "created": 0,
            "context_length": 200000,
            "top_provider": {"context_length": 100000, "max_completion_tokens": 4096},
        },
        {"name": "A: B", "context_length": 200000, "max_completion_tokens": 4096},
    ),
    (
        "groq",
        "openai_embeddings",
        {"id": "m", "context_window": 131072, "max_completion_tokens": 8192, "active": True},
        {"name": "m", "context_length": 131072, "max_completion_tokens": 8192},
    ),
    (
        "mistral",
        "openai_chat",
        {"id": "m", "name": "mistral-m", "max_context_length": 32768, "created": -1},
        {"name": "mistral-m", "context_length": 32768},
    ),
    (
        "ollama, lm studio",
        "openai_chat",
        {"id": "llama3:8b", "object": "model", "created": 1.5, "owned_by": "library"},
        {"name": "llama3:8b", "owned_by": "library"},
    ),
    (
        "anthropic",
        "anthropic_messages",
        {
            "id": "claude-x",
            "type": "model",
            "display_name": "Claude X",
            "created_at": "2026-08-06T00:00:00Z",
            "max_input_tokens": 200000,
            "max_tokens": 64000,
        },
        {
            "name": "Claude X",
            "created_at": "2026-08-06T00:00:00Z",
            "context_length": 200000,
            "max_completion_tokens": 64000,
        },
    ),
    (
        "gemini",
        "gemini",
        {
            "name": "models/gemini-x",
            "displayName": "Gemini X",
            "inputTokenLimit": 1048576,
            "outputTokenLimit": 65536,
        },
        {
            "id": "gemini-x",
            "name": "Gemini X",
            "context_length": 1048576,
            "max_completion_tokens": 65536,
        },
    ),
    (
        "odd values",
        "openai_chat",
        {"id": "m", "name": 7, "created": "soon", "owned_by": "", "context_length": -1},
        {"name": "m"},
    ),
    (
        "something secret",
        "openai_chat",
        {"id": "m", "name": "sk-proj-abcdef123456", "owned_by": "a\nb", "max_tokens": True},
        {"name": "m"},
    ),
]


@pytest.fixture
async def server() -> AsyncIterator[Recorder]:
    async with Recorder().running() as made:
        yield made


async def add(gateway: Gateway, server: Recorder, adapter: str = "openai_chat") -> str:
    """A provider on the server; the path of its list."""
    slug = f"s-{adapter.replace('_', '-')}"
    await gateway.add_provider(slug, adapter, server.url, "sk-secret-00001111")
    return f"/catalog/providers/{slug}/models"


def listing(*rows: object, field: str = "data", **more: object) -> Callable[[str], bytes]:
    body = json.dumps({field: rows, **more}).encode()
    return lambda head: answer(body)


async def test_every_servers_list_is_read(gateway: Gateway, server: Recorder) -> None:
    paths: dict[str, str] = {}
    wrong = []
    for name, adapter, row, wanted in LISTS:
        server.says = listing(row, field="models" if adapter == "gemini" else "data")
        path = paths[adapter] = paths.get(adapter) or await add(gateway, server, adapter)
        found = await gateway.manage("GET", path)
        expected = {**NOTHING, "id": row.get("id"), **wanted}
        if found != {"data": [expected], "total_count": 1, "truncated": False}:
            wrong.append((name, found))
    assert wrong == []


async def test_the_list_is_asked_for_as_requests_are(gateway: Gateway, server: Recorder) -> None:
    server.says = listing(field="models")
    for adapter, asked, key in (
        ("openai_chat", "/v1/models", "authorization: Bearer sk-secret-00001111\r\n"),
        (
            "anthropic_messages",
            "/v1/models?limit=1000",
            "x-api-key: sk-secret-00001111\r\nanthropic-version: 2023-06-01\r\n",
        ),
        ("gemini", "/v1beta/models?pageSize=1000", "x-goog-api-key: sk-secret-00001111\r\n"),
    ):
        path = await add(gateway, server, adapter)
        assert (await gateway.manage("GET", path))["data"] == []
        assert server.heads[-1] == (
            f"GET {asked} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\naccept-encoding: identity\r\n"
            f"accept: application/json\r\n{key}\r\n"
        )
    changes = {"auth": "api-key", "base_url": f"{server.url}/openai/v1?api-version=1"}
    await gateway.manage("PATCH", "/catalog/providers/s-openai-chat", changes)
    await gateway.manage("GET", "/catalog/providers/s-openai-chat/models")
    assert server.heads[-1].startswith("GET /openai/v1/models?api-version=1 HTTP/1.1\r\n")
    assert "\r\napi-key: sk-secret-00001111\r\n" in server.heads[-1]


@pytest.mark.parametrize("adapter", ["anthropic_messages", "gemini"])
async def test_a_list_of_several_pages_is_read_to_its_end(
    gateway: Gateway, server: Recorder, adapter: str
) -> None:
    def says(head: str) -> bytes:
        query = parse_qs(urlsplit(head.split()[1]).query)
        place = query.get("after_id" if adapter != "gemini" else "pageToken", ["0"])[0]
        number = int(place.removeprefix("a/&="))
        is_last = number == 2
        if adapter == "gemini":
            more = {} if is_last else {"nextPageToken": f"a/&={number + 1}"}
            return answer(json.dumps({"models": [{"name": f"models/m{number}"}], **more}).encode())
        page = {
            "data": [{"id": f"m{number}"}],
            "has_more": not is_last,
            "last_id": f"a/&={number + 1}",
        }
        return answer(json.dumps(page).encode())  # fmt: skip

    server.says = says
    path = await add(gateway, server, adapter)
    found = await gateway.manage("GET", path)
    assert [model["id"] for model in found["data"]] == ["m0", "m1", "m2"]


async def test_a_list_without_end_is_cut(gateway: Gateway, server: Recorder) -> None:
    path = await add(gateway, server, "gemini")
    server.says = listing({"name": "models/m"}, field="models", nextPageToken="same")
    assert (await gateway.manage("GET", path))["total_count"] == 1
    assert len(server.heads) == 2  # the same place again is no further page
    path = await add(gateway, server)
    server.says = listing(*[{"id": f"m{number}"} for number in range(5_001)])
    found = await gateway.manage("GET", path)
    assert (found["total_count"], found["truncated"]) == (5_000, True)


async def test_endpoints_of_the_catalog_stand_beside_their_models(
    gateway: Gateway, server: Recorder
) -> None:
    path = await add(gateway, server)
    server.says = listing({"id": "gpt-demo"}, {"id": "other"})
    await gateway.add_endpoint("demo/chat", "s-openai-chat", "gpt-demo")
    [served, other] = (await gateway.manage("GET", path))["data"]
    [endpoint] = served["in_catalog"]
    assert (endpoint["model"], endpoint["tag"]) == ("demo/chat", "s-openai-chat")
    assert endpoint["id"].startswith("ep_")
    assert other["in_catalog"] == []


@pytest.mark.parametrize(
    ("says", "reason", "words"),
    [
        (answer(b"<html>no</html>", kind="text/html"), "upstream_error", "not of its format"),
        (answer(b'{"ok": true}'), "upstream_error", "no list of models"),
        (answer(b'{"data": ["' + b"x" * 5_000_000 + b'"]}'), "upstream_error", "4 MiB"),
        (
            answer(b'{"error": {"message": "bad key sk-secret-00001111"}}', status="401 No"),
            "auth_invalid",
            "bad key ***",
        ),
        (answer(b"not here", status="404 No"), "bad_request", "not here"),
    ],
    ids=["page", "other", "long", "refused", "missing"],
)
async def test_what_is_no_list_is_told_with_the_vendors_reason(
    gateway: Gateway, server: Recorder, says: bytes, reason: str, words: str
) -> None:
    path = await add(gateway, server)
    server.says = lambda head: says
    refused = (await gateway.manage("GET", path, status=502))["error"]
    assert refused["metadata"]["reason"] == reason
    assert words in refused["message"]
    assert "sk-secret" not in str(refused)
    states = (await gateway.manage("GET", "/operator/status"))["data"]["endpoints"]
    assert {each["status"] for each in states} == {"healthy"}


async def test_no_provider_no_key_no_right(gateway: Gateway, server: Recorder) -> None:
    await gateway.manage("GET", "/catalog/providers/nobody/models", status=404)
    provider = {"slug": "bare", "name": "bare", "adapter": "openai_chat", "base_url": server.url}
    await gateway.manage("POST", "/catalog/providers", provider)
    refused = await gateway.manage("GET", "/catalog/providers/bare/models", status=409)
    assert refused["error"]["metadata"] == {"reason": "no_credential", "provider": "bare"}
    reply = await gateway.client.get("/catalog/providers/bare/models")
    assert reply.status_code == 403
    assert server.heads == []


async def test_a_keyless_provider_and_a_simulated_vendor_list_theirs(gateway: Gateway) -> None:
    async def listed(vendor: SimulatedVendor, slug: str) -> list[Any]:
        found = await gateway.manage("GET", f"/catalog/providers/{slug}/models")
        assert vendor.calls.last.method == "GET"
        return [model["id"] for model in found["data"]]

    models = list(gateway.vendor.models)
    assert await listed(gateway.vendor, "openai-chat") == models
    assert await listed(gateway.vendor, "anthropic-messages") == models
    async with StrictVendor(keys=()) as local:
        provider = {"slug": "local", "name": "local", "adapter": "openai_chat", "auth": "none"}
        provider["base_url"] = local.openai_url
        await gateway.manage("POST", "/catalog/providers", provider)
        assert await listed(local, "local") == list(local.models)
