"""/catalog/endpoints: which provider serves which model, at what price, under which name."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.support.node import PRICES, Gateway

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


async def test_flags_are_kept_as_they_are_meant(gateway: Gateway) -> None:
    """Also a number with decimals: the catalog is read from what was stored, and serves on."""
    flags = {"first_event_s": 30.5, "rejects_sampling": False, "supported_efforts": ["low"]}
    flags |= {"refused_fields": ["user", "messages.name"], "short_call_ids": True}
    made = await gateway.manage("POST", "/catalog/endpoints", {**NEW, "flags": flags})
    assert made["data"]["flags"] == flags
    assert (await gateway.chat(provider={"only": ["openai-chat/mini"]})).status_code == 200


@pytest.mark.parametrize("weight", [0, -1, "NaN", "1e400", "1e-400", 1e-30])
async def test_a_weight_that_nothing_can_be_weighed_with_is_refused(
    gateway: Gateway, weight: Any
) -> None:
    body = {**NEW, "weight": weight}
    refused = await gateway.manage("POST", "/catalog/endpoints", body, status=400)
    assert refused["error"]["param"] == "weight"


async def test_an_endpoint_has_the_models_price_until_its_own_begins_and_after_it_ends(
    gateway: Gateway,
) -> None:
    (endpoint,) = [
        endpoint
        for endpoint in (await gateway.manage("GET", "/catalog/endpoints"))["data"]
        if endpoint["model"] == "demo/chat"
    ]
    path = f"/catalog/endpoints/{endpoint['id']}"

    async def cost() -> float:
        charged: float = (await gateway.chat(usage={"include": True})).json()["usage"]["cost"]
        return charged

    usual = await cost()
    dear = {name: str(2 * Decimal(price)) for name, price in PRICES.items()}
    dearest = {name: str(4 * Decimal(price)) for name, price in PRICES.items()}
    tiers = [{"above_prompt_tokens": 1_000_000, "pricing": {"prompt": "0.1"}}]
    next_year = (datetime.now(UTC) + timedelta(days=365)).isoformat()
    announced = {"pricing": dearest, "effective_at": next_year}
    record = (await gateway.manage("PATCH", path, announced))["data"]
    assert (record["pricing"], len(record["prices"])) == (None, 1)
    assert await cost() == usual
    refused = await gateway.manage("PATCH", path, {"pricing_tiers": tiers}, status=400)
    assert refused["error"]["param"] == "pricing"
    record = (
        await gateway.manage(
            "PATCH", path, {"pricing": dear, "pricing_tiers": tiers, "accept": True}
        )
    )["data"]
    assert (record["pricing"], record["pricing_tiers"]) == (dear, tiers)
    assert await cost() == pytest.approx(2 * usual)
    record = (await gateway.manage("PATCH", path, {"pricing": dearest}))["data"]
    assert record["pricing_tiers"] == tiers
    assert await cost() == pytest.approx(4 * usual)
    record = (await gateway.manage("PATCH", path, {"pricing": None, "accept": True}))["data"]
    assert (record["pricing"], record["pricing_tiers"]) == (None, [])
    assert await cost() == usual
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"pricing": dear})
    assert await cost() == pytest.approx(2 * usual)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": "demo/none"}, "model"),
        ({"provider": "nobody"}, "provider"),
        ({"upstream_model": ""}, "upstream_model"),
        ({"flags": {"fast": True}}, "flags"),
        ({"flags": {"refused_fields": "user"}}, "flags"),
        ({"flags": {"refused_fields": ["model"]}}, "flags"),
        ({"flags": {"refused_fields": ["max_tokens"]}}, "flags"),
        ({"flags": {"refused_fields": ["messages.role"]}}, "flags"),
        ({"weight": 0}, "weight"),
    ],
)
async def test_an_endpoint_that_cannot_be_names_the_field(
    gateway: Gateway, fields: dict[str, Any], param: str
) -> None:
    reply = await gateway.operator.post("/catalog/endpoints", json=NEW | fields)
    assert reply.status_code in (400, 404)
    assert reply.json()["error"]["param"].startswith(param)
