"""/catalog/endpoints: which provider serves which model, at what price, under which name (design: starting it)."""

from typing import Any

import pytest

from tests.support.node import Gateway

NEW: dict[str, Any] = {
    "model": "demo/chat",
    "provider": "openai-chat",
    "upstream_model": "gpt-demo-mini",
    "tag": "openai-chat/mini",
}


async def test_an_endpoint_is_created_read_changed_and_deleted(gateway: Gateway) -> None:
    made = (await gateway.manage("POST", "/catalog/endpoints", NEW))["data"]
    assert {field: made[field] for field in NEW} == NEW
    path = f"/catalog/endpoints/{made['id']}"
    assert (await gateway.manage("GET", path))["data"] == made
    changed = (await gateway.manage("PATCH", path, {"disabled": True}))["data"]
    assert (changed["disabled"], changed["tag"]) == (True, "openai-chat/mini")
    listed = (await gateway.manage("GET", "/catalog/endpoints"))["data"]
    assert made["id"] in [endpoint["id"] for endpoint in listed]
    await gateway.manage("DELETE", path)
    await gateway.manage("GET", path, status=404)


async def test_the_vendor_is_asked_by_the_name_of_the_endpoint(gateway: Gateway) -> None:
    await gateway.manage("POST", "/catalog/endpoints", NEW)
    only = {"only": ["openai-chat/mini"]}
    assert (await gateway.chat(provider=only)).status_code == 200
    (call,) = gateway.vendor.calls.on("/v1/chat/completions")
    assert call.body
    assert call.body["model"] == "gpt-demo-mini"


async def test_a_disabled_endpoint_gets_no_request(gateway: Gateway) -> None:
    listed = (await gateway.manage("GET", "/catalog/endpoints"))["data"]
    (endpoint,) = [endpoint for endpoint in listed if endpoint["model"] == "demo/chat"]
    path = f"/catalog/endpoints/{endpoint['id']}"
    await gateway.manage("PATCH", path, {"disabled": True})
    reply = await gateway.chat()
    assert reply.status_code in (404, 503)
    assert gateway.vendor.calls.on("/v1/chat/completions") == []
    await gateway.manage("PATCH", path, {"disabled": False})
    assert (await gateway.chat()).status_code == 200


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": "demo/none"}, "model"),
        ({"provider": "nobody"}, "provider"),
        ({"upstream_model": ""}, "upstream_model"),
        ({"flags": {"fast": True}}, "flags"),
        ({"weight": 0}, "weight"),
    ],
)
async def test_an_endpoint_that_cannot_be_names_the_field(
    gateway: Gateway, fields: dict[str, Any], param: str
) -> None:
    reply = await gateway.operator.post("/catalog/endpoints", json=NEW | fields)
    assert reply.status_code in (400, 404)
    assert reply.json()["error"]["param"].startswith(param)
