"""Prices of what makes a call dearer: taken, kept and shown wherever a price is (catalog, models, receipt, record)."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from tests.api.test_catalog_models import NEXT_YEAR
from tests.support.node import PRICES, Gateway

PATH = "/catalog/models/demo/chat"
FACTORS = {"service_tier": {"priority": "2", "flex": "0.5", "default": "3"}, "tools": {"*": "1.25"}}
EXTRAS = {"web_search": "0.01", "price_modifiers": FACTORS}


async def priced(gateway: Gateway, **fields: Any) -> Any:
    body = {"pricing": {**PRICES, **EXTRAS}, **fields}
    return (await gateway.manage("PATCH", PATH, body))["data"]


async def test_prices_of_extras_are_kept_with_the_price_and_shown(gateway: Gateway) -> None:
    record = await priced(gateway)
    assert record["pricing"] == {**PRICES, **EXTRAS}
    tiers = [{"above_prompt_tokens": 50_000, "pricing": {"prompt": "0.000009"}}]
    record = (await gateway.manage("PATCH", PATH, {"pricing_tiers": tiers}))["data"]
    assert record["pricing"] == {**PRICES, **EXTRAS}
    model = (await gateway.client.get("/models/demo/chat")).json()["data"]
    endpoint = (await gateway.client.get("/models/demo/chat/endpoints")).json()["data"][
        "endpoints"
    ][0]
    for shown in (model["pricing"], endpoint["pricing"]):
        assert shown["web_search"] == "0.01"
        assert shown["price_modifiers"] == FACTORS
    record = (await gateway.manage("PATCH", PATH, {"pricing": PRICES}))["data"]
    assert record["pricing"] == PRICES
    model = (await gateway.client.get("/models/demo/chat")).json()["data"]
    assert not {"web_search", "price_modifiers"} & model["pricing"].keys()


async def test_announced_prices_of_extras_hold_from_their_time_on(gateway: Gateway) -> None:
    record = await priced(gateway, effective_at=NEXT_YEAR)
    assert record["pricing"] == PRICES
    assert record["prices"][-1]["pricing"] == {**PRICES, **EXTRAS}


async def test_an_endpoint_s_own_price_says_what_it_sells(gateway: Gateway) -> None:
    await priced(gateway)
    found = (await gateway.manage("GET", "/catalog/endpoints?model=demo/chat"))["data"][0]
    path = f"/catalog/endpoints/{found['id']}"
    await gateway.manage("PATCH", path, {"pricing": PRICES})
    reply = await gateway.chat(service_tier="priority")
    assert (await gateway.generation(reply))["dropped_parameters"] == ["service_tier"]
    await gateway.manage("PATCH", path, {"pricing": None})
    reply = await gateway.chat(service_tier="priority")
    assert (await gateway.generation(reply))["dropped_parameters"] == []


@pytest.mark.parametrize(
    ("pricing", "param"),
    [
        ({"price_modifiers": {"colour": {"red": "2"}}}, "pricing.price_modifiers.colour"),
        ({"price_modifiers": {"speed": {"fast": "0"}}}, "pricing.price_modifiers.speed.fast"),
        ({"price_modifiers": {"speed": {"fast": "-2"}}}, "pricing.price_modifiers.speed.fast"),
        ({"price_modifiers": {"speed": {"fast": "NaN"}}}, "pricing.price_modifiers.speed.fast"),
        ({"price_modifiers": {"speed": {"fast": "1.0000001"}}}, "pricing.price_modifiers.speed.fast"),
        ({"price_modifiers": {"speed": {"fast": "1001"}}}, "pricing.price_modifiers.speed.fast"),
        ({"price_modifiers": {"speed": {"fast": "twice"}}}, "pricing.price_modifiers.speed.fast"),
        ({"price_modifiers": {"speed": {"Fast": "2"}}}, "pricing.price_modifiers.speed"),
        ({"price_modifiers": {"speed": {f"v{n}": "2" for n in range(33)}}}, "pricing.price_modifiers.speed"),
        ({"price_modifiers": {"speed": "2"}}, "pricing"),
        ({"web_search": "0.0000000001"}, "pricing.web_search"),
        ({"web_search": "free"}, "pricing.web_search"),
    ],
)  # fmt: skip
async def test_a_price_that_says_nothing_is_refused_by_name(
    gateway: Gateway, pricing: dict[str, Any], param: str
) -> None:
    body = {"pricing": {**PRICES, **pricing}}
    refused = await gateway.manage("PATCH", PATH, body, status=400)
    assert refused["error"]["param"].startswith(param), refused
    tier = [{"above_prompt_tokens": 9, "pricing": pricing}]
    await gateway.manage("PATCH", PATH, {"pricing_tiers": tier}, status=400)


async def test_receipt_and_record_tell_what_was_applied(gateway: Gateway) -> None:
    """The simulated vendor answers with the tier `default`, which has a factor of its own here."""
    await priced(gateway)
    headers = {"x-gw-metadata": "enabled"}
    reply = await gateway.chat(service_tier="priority", headers=headers)
    receipt = json.loads(reply.content, parse_float=Decimal)["gateway_metadata"]
    cost, record = receipt["cost"], await gateway.generation(reply)
    assert receipt["pricing"]["modifiers"] == {"service_tier": {"value": "default", "factor": "3"}}
    assert receipt["pricing"]["web_search"] == Decimal("0.01")
    parts = ("prompt", "cache_read", "cache_write", "completion", "reasoning", "request_fee")
    assert sum(cost[name] for name in (*parts, "web_search", "platform_fee")) == cost["total"]
    assert record["price_modifiers"] == receipt["pricing"]["modifiers"]
    assert record["service_tier"] == "default"
    assert (record["web_searches"], record["web_search_cost"]) == (0, 0)
    prompt = Decimal(PRICES["prompt"]) * record["tokens_prompt"] * 3
    assert cost["prompt"] == prompt
    await gateway.verify()


async def test_without_prices_of_extras_nothing_is_said_of_them(gateway: Gateway) -> None:
    reply = await gateway.chat(headers={"x-gw-metadata": "enabled"})
    receipt = msgspec.json.decode(reply.content)["gateway_metadata"]
    assert "web_search" not in receipt["cost"]
    assert not {"modifiers", "web_search", "searches"} & receipt["pricing"].keys()
