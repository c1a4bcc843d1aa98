"""GET /models and /models/{slug}: public, one list for every client."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import anthropic
import httpx
import openai
import pytest

from tests.support.node import PRICES, Gateway


async def public(gateway: Gateway, path: str, **query: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=gateway.base_url) as stranger:
        return await stranger.get(path, params=query)


async def test_the_list_is_public_and_has_the_fields_of_the_spec(gateway: Gateway) -> None:
    body = (await public(gateway, "/models")).json()
    assert body["object"] == "list"
    record = next(record for record in body["data"] if record["id"] == "demo/chat")
    assert record["context_length"] == 200_000
    assert record["endpoints_available"] == 1
    assert record["top_provider"].keys() >= {
        "context_length",
        "max_completion_tokens",
        "is_moderated",
    }
    assert "tools" in record["supported_parameters"]
    for field, price in PRICES.items():
        assert Decimal(record["pricing"][field]) == Decimal(price)
        assert "E" not in record["pricing"][field]


async def test_embedding_models_are_listed_when_asked_for(gateway: Gateway) -> None:
    asked = (await public(gateway, "/models", output_modalities="embeddings")).json()["data"]
    assert [record["id"] for record in asked] == ["demo/embed"]
    assert asked[0]["architecture"]["modality"] == "text->embedding"
    usual = (await public(gateway, "/models")).json()["data"]
    assert "demo/embed" not in [record["id"] for record in usual]


@pytest.mark.parametrize(
    "path", ["/models/demo/chat", "/models/demo%2Fchat", "/models/demo/chat:floor"]
)
async def test_a_slug_is_found_with_its_slash_raw_or_encoded(gateway: Gateway, path: str) -> None:
    body = (await public(gateway, path)).json()
    assert body["data"]["id"] == "demo/chat"
    assert body["id"] == "demo/chat"


async def test_an_unknown_slug_is_not_found_in_our_envelope(gateway: Gateway) -> None:
    reply = await public(gateway, "/models/demo/none")
    assert reply.status_code == 404
    assert reply.json()["error"]["code"] == "model_not_found"


async def test_an_alias_is_a_row_of_its_own_and_leads_to_its_target(gateway: Gateway) -> None:
    await gateway.manage(
        "PATCH", "/catalog/models/demo/chat", {"family": "chat", "aliases": ["gpt-short"]}
    )
    rows = (await public(gateway, "/models")).json()["data"]
    targets = {row["id"]: row["alias_target"]["slug"] for row in rows if "alias_target" in row}
    assert targets == {"~demo/chat-latest": "demo/chat", "gpt-short": "demo/chat"}
    for name in targets:
        assert (await public(gateway, f"/models/{name}")).json()["data"]["id"] == "demo/chat"
    record = (await public(gateway, "/models/demo/chat")).json()["data"]
    assert record["latest_alias"] == "~demo/chat-latest"


async def test_the_family_alias_stands_only_where_it_leads_to(gateway: Gateway) -> None:
    """A key that may use the alias may use its target, and sees both where lists are narrowed."""
    for slug, released in (("demo/chat", "2026-01-01"), ("demo/chat-b", "2026-02-01")):
        fields = {"family": "chat", "released_at": f"{released}T00:00:00Z"}
        await gateway.manage("PATCH", f"/catalog/models/{slug}", fields)
    rows = {row["id"]: row for row in (await public(gateway, "/models")).json()["data"]}
    assert rows["demo/chat"]["latest_alias"] is None
    assert rows["demo/chat-b"]["latest_alias"] == "~demo/chat-latest"
    await gateway.manage(
        "PATCH", "/organization/settings", {"is_filtered_model_catalog_enabled": True}
    )
    key, _ = await gateway.new_key(allowed_models=["~demo/chat-latest"])
    gateway.client.headers["authorization"] = f"Bearer {key}"
    listed = (await gateway.client.get("/models")).json()["data"]
    assert {row["id"] for row in listed} == {"~demo/chat-latest", "demo/chat-b"}


@pytest.mark.parametrize("slug", ["demo/chat", "demo%2Fchat"])
async def test_the_endpoints_of_a_model_are_listed_without_secrets(
    gateway: Gateway, slug: str
) -> None:
    reply = await public(gateway, f"/models/{slug}/endpoints")
    (endpoint,) = reply.json()["data"]["endpoints"]
    assert endpoint["provider_name"] == "openai-chat"
    assert Decimal(endpoint["pricing"]["prompt"]) == Decimal(PRICES["prompt"])
    assert "sk-demo" not in reply.text
    assert gateway.vendor.url not in reply.text


async def test_a_retired_model_leaves_the_list_and_answers_alone(gateway: Gateway) -> None:
    past = [datetime.now(UTC) - timedelta(days=days) for days in (2, 1)]
    fields = {
        "deprecated_at": past[0].isoformat(),
        "retired_at": past[1].isoformat(),
        "successor": "demo/chat-b",
    }
    await gateway.manage("PATCH", "/catalog/models/demo/chat", fields)
    rows = (await public(gateway, "/models")).json()["data"]
    assert "demo/chat" not in [row["id"] for row in rows]
    record = (await public(gateway, "/models/demo/chat")).json()["data"]
    assert (record["lifecycle"], record["successor"]) == ("retired", "demo/chat-b")


async def test_client_version_adds_the_list_that_codex_reads(gateway: Gateway) -> None:
    body = (await public(gateway, "/models", client_version="0.171.0")).json()
    assert [row["slug"] for row in body["models"]] == [row["id"] for row in body["data"]]
    assert "models" not in (await public(gateway, "/models")).json()


async def test_the_vendors_sdks_read_list_and_single_record(gateway: Gateway) -> None:
    async with openai.AsyncOpenAI(base_url=gateway.base_url, api_key=gateway.key) as sdk:
        assert "demo/chat" in [model.id async for model in sdk.models.list()]
        assert (await sdk.models.retrieve("demo/chat")).id == "demo/chat"
    root = gateway.base_url.removesuffix("/v1")
    async with anthropic.AsyncAnthropic(base_url=root, api_key=gateway.key) as other:
        assert "demo/claude" in [model.id async for model in other.models.list()]
        assert (await other.models.retrieve("demo/claude")).display_name == "demo/claude"
