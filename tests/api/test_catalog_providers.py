"""/catalog/providers: named upstream services (design: starting it)."""

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
        ({"base_url": "ftp://127.0.0.1/v1"}, "base_url"),
        ({"base_url": "http://1.2.3.4/v1"}, "base_url"),
        ({"base_url": "http://user:pass@127.0.0.1/v1"}, "base_url"),
        ({"slug": "Not A Slug"}, "slug"),
    ],
)
async def test_a_provider_that_cannot_be_names_the_field(
    gateway: Gateway, fields: dict[str, str], param: str
) -> None:
    refused = await gateway.manage("POST", "/catalog/providers", NEW | fields, status=400)
    assert refused["error"]["param"] == param


async def test_a_slug_is_taken_once(gateway: Gateway) -> None:
    await gateway.manage("POST", "/catalog/providers", NEW)
    refused = await gateway.manage("POST", "/catalog/providers", NEW, status=409)
    assert refused["error"]["code"] == "already_exists"


async def test_the_catalog_is_written_by_the_operator_alone(gateway: Gateway) -> None:
    reply = await gateway.client.post("/catalog/providers", json=NEW)
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong_key_type")
