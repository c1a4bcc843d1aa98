"""/catalog/providers: named upstream services."""

from typing import Any

import pytest

from tests.support.node import Gateway

NEW = {
    "slug": "other",
    "name": "Other",
    "adapter": "openai_chat",
    "base_url": "http://127.0.0.1:9/v1",
}


async def test_a_provider_is_created_read_changed_and_deleted(gateway: Gateway) -> None:
    made = (await gateway.manage("POST", "/catalog/providers", NEW))["data"]
    assert {field: made[field] for field in NEW} == NEW
    path = "/catalog/providers/other"
    assert (await gateway.manage("GET", path))["data"] == made
    changed = (await gateway.manage("PATCH", path, {"name": "Another"}))["data"]
    assert (changed["name"], changed["adapter"]) == ("Another", "openai_chat")
    assert "other" in [p["slug"] for p in (await gateway.manage("GET", path[:18]))["data"]]
    await gateway.manage("DELETE", path)
    await gateway.manage("GET", path, status=404)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"adapter": "telegraph"}, "adapter"),
        ({"auth": "basic"}, "auth"),
        ({"auth": None}, "auth"),
        ({"base_url": "ftp://127.0.0.1/v1"}, "base_url"),
        ({"base_url": "http://1.2.3.4/v1"}, "base_url"),
        ({"base_url": "http://127.0.0.1:9/v1#part"}, "base_url"),
        ({"base_url": "http://127.0.0.1:9/v1?a=b#part"}, "base_url"),
        ({"base_url": "http://127.0.0.1:9/v1?key=x"}, "base_url"),
        ({"base_url": "http://127.0.0.1:9/v1?a=b&api_key=x"}, "base_url"),
        ({"base_url": "http://127.0.0.1:9/v1?note=sk-proj-abcdef123456"}, "base_url"),
        ({"base_url": "http://127.0.0.1:9/v1?a b"}, "base_url"),
        ({"base_url": "http://user:pass@127.0.0.1/v1"}, "base_url"),
        ({"base_url": "http://:pass@127.0.0.1/v1"}, "base_url"),
        ({"base_url": "https://[/"}, "base_url"),
        ({"base_url": "http://127.0.0.1:99999/v1"}, "base_url"),
        ({"base_url": "https://ex%61mple.com/v1"}, "base_url"),
        ({"headers": {"x-note": "Bearer abc"}}, "headers"),
        ({"slug": "Not A Slug"}, "slug"),
        ({"headers": {"Authorization": "Bearer sk-1"}}, "headers"),
        ({"headers": {"X-Api-Key": "sk-1"}}, "headers"),
        ({"headers": {"api-key": "sk-1"}}, "headers"),
        ({"headers": {"cookie": "a=b"}}, "headers"),
        ({"headers": {"Host": "other.example"}}, "headers"),
        ({"headers": {"content-length": "5"}}, "headers"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "headers"),
        ({"headers": {"connection": "close"}}, "headers"),
        ({"headers": {"content-encoding": "gzip"}}, "headers"),
        ({"headers": {"x-a": "1", "X-A": "2"}}, "headers"),
        ({"headers": {"x-a": "1\r\nx-b: 2"}}, "headers"),
    ],
)
async def test_a_provider_that_cannot_be_names_the_field(
    gateway: Gateway, fields: dict[str, Any], param: str
) -> None:
    refused = await gateway.manage("POST", "/catalog/providers", NEW | fields, status=400)
    assert refused["error"]["param"] == param


async def test_a_header_that_is_a_credential_says_where_credentials_belong(
    gateway: Gateway,
) -> None:
    await gateway.manage("POST", "/catalog/providers", NEW)
    refused = await gateway.manage(
        "PATCH", "/catalog/providers/other", {"headers": {"x-goog-api-key": "AIza"}}, status=400
    )
    assert "/catalog/credentials" in refused["error"]["message"]


async def test_a_query_stays_and_a_credential_in_it_says_where_it_belongs(
    gateway: Gateway,
) -> None:
    asked = "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21"
    made = await gateway.manage("POST", "/catalog/providers", {**NEW, "base_url": asked})
    assert made["data"]["base_url"] == asked
    path = "/catalog/providers/other"
    for given, kept in (
        ("https://h/v1?", "https://h/v1"),
        ("https://h/v1/?", "https://h/v1"),
        ("https://h/v1/?path=/a/", "https://h/v1/?path=/a/"),
    ):
        changed = await gateway.manage("PATCH", path, {"base_url": given})
        assert changed["data"]["base_url"] == kept
    with_key = {"base_url": "https://h/v1?code=1&subscription-key=secretsecret"}
    refused = await gateway.manage("PATCH", path, with_key, status=400)
    assert "/catalog/credentials" in refused["error"]["message"]
    assert "`auth`" in refused["error"]["message"]
    assert "secretsecret" not in str(refused)
    await gateway.add_model("demo/other", pricing={"prompt": "0", "completion": "0"})
    endpoint = {"model": "demo/other", "provider": "other", "upstream_model": "m", **with_key}
    refused = await gateway.manage("POST", "/catalog/endpoints", endpoint, status=400)
    assert refused["error"]["param"] == "base_url"
    made = await gateway.manage("POST", "/catalog/endpoints", {**endpoint, "base_url": asked})
    assert made["data"]["base_url"] == asked


async def test_what_a_header_holds_is_shown_to_the_operator_alone(gateway: Gateway) -> None:
    headers = {"x-tenant": "tenant-7f3a9b"}
    await gateway.manage("POST", "/catalog/providers", {**NEW, "headers": headers})
    owner = await gateway.manage(
        "POST", "/keys", {"name": "o", "type": "management", "role": "owner"}
    )
    own = {"authorization": f"Bearer {owner['key']}"}
    for path in ("/catalog/providers/other", "/catalog/providers?limit=100"):
        shown = await gateway.client.get(path, headers=own)
        assert "tenant-7f3a9b" not in shown.text
        data = shown.json()["data"]
        found = data if isinstance(data, dict) else next(p for p in data if p["slug"] == "other")
        assert found["headers"] == {"x-tenant": "***"}
    assert (await gateway.manage("GET", "/catalog/providers/other"))["data"]["headers"] == headers


@pytest.mark.parametrize(
    ("adapter", "own"),
    [
        ("openai_chat", "bearer"),
        ("openai_responses", "bearer"),
        ("openai_embeddings", "bearer"),
        ("anthropic_messages", "x-api-key"),
        ("gemini", "x-goog-api-key"),
    ],
)
async def test_a_provider_takes_its_key_as_its_adapter_does_unless_it_says_otherwise(
    gateway: Gateway, adapter: str, own: str
) -> None:
    path = "/catalog/providers/other"
    made = await gateway.manage("POST", "/catalog/providers", {**NEW, "adapter": adapter})
    assert made["data"]["auth"] == own
    for auth in ("bearer", "api-key", "x-api-key", "x-goog-api-key", "none"):
        await gateway.manage("PATCH", path, {"auth": auth})
        assert (await gateway.manage("GET", path))["data"]["auth"] == auth
    await gateway.manage("DELETE", path)
    body = {**NEW, "adapter": adapter, "auth": "api-key"}
    assert (await gateway.manage("POST", "/catalog/providers", body))["data"]["auth"] == "api-key"


async def test_the_adapter_of_a_provider_that_serves_can_be_corrected(gateway: Gateway) -> None:
    """People choose the wrong one first; what served a moment ago is asked in the other format from then on."""
    wrong = {**NEW, "adapter": "openai_chat", "base_url": gateway.vendor.url}
    path = "/catalog/providers/other"
    await gateway.manage("POST", "/catalog/providers", wrong)
    key = {"provider": "other", "key": "sk-demo-0000"}
    await gateway.manage("POST", "/catalog/credentials", key)
    prices = {"prompt": "0.000003", "completion": "0.000015"}
    await gateway.add_model("demo/other", pricing=prices)
    await gateway.add_endpoint("demo/other", "other", "claude-demo")
    for adapter, auth, asked in (
        ("openai_chat", "bearer", "/v1/chat/completions"),
        ("anthropic_messages", "x-api-key", "/v1/messages"),
        ("openai_responses", "bearer", "/v1/responses"),
    ):
        changed = (await gateway.manage("PATCH", path, {"adapter": adapter}))["data"]
        assert (changed["adapter"], changed["auth"]) == (adapter, auth)
        assert (await gateway.chat(model="demo/other")).status_code == 200
        assert gateway.vendor.calls.last.path == asked
    # An `auth` of its own stays what it is.
    await gateway.manage("PATCH", path, {"auth": "api-key"})
    changed = (await gateway.manage("PATCH", path, {"adapter": "gemini"}))["data"]
    assert (changed["adapter"], changed["auth"]) == ("gemini", "api-key")
    refused = await gateway.manage("PATCH", path, {"adapter": "telegraph"}, status=400)
    assert refused["error"]["param"] == "adapter"


async def test_a_slug_is_taken_once(gateway: Gateway) -> None:
    await gateway.manage("POST", "/catalog/providers", NEW)
    refused = await gateway.manage("POST", "/catalog/providers", NEW, status=409)
    assert refused["error"]["code"] == "already_exists"


async def test_the_catalog_is_written_by_the_operator_alone(gateway: Gateway) -> None:
    reply = await gateway.client.post("/catalog/providers", json=NEW)
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong_key_type")
