"""GET /credits: what was added, used, is held and left, for any key."""

import json
from decimal import Decimal
from typing import Any

from tests.support.node import Gateway


async def credits_of(gateway: Gateway) -> dict[str, Any]:
    reply = await gateway.client.get("/credits")
    data: dict[str, Any] = json.loads(reply.text, parse_float=Decimal, parse_int=Decimal)["data"]
    return data


async def test_totals_and_kinds_add_up(gateway: Gateway) -> None:
    for kind, amount in (("promotional", 1), ("granted", 2)):
        await gateway.manage("POST", "/credits/grants", {"kind": kind, "amount": amount})
    data = await credits_of(gateway)
    assert data["total_credits"] == 13
    assert [data[kind] for kind in ("promotional", "granted", "purchased")] == [1, 2, 10]
    assert (data["balance"], data["reserved"], data["available"]) == (13, 0, 13)
    assert data["currency"] == "USD"


async def test_promotional_credit_is_used_first(gateway: Gateway) -> None:
    await gateway.manage("POST", "/credits/grants", {"kind": "promotional", "amount": 1})
    reply = await gateway.chat(usage={"include": True})
    cost = json.loads(reply.text, parse_float=Decimal)["usage"]["cost"]
    data = await credits_of(gateway)
    assert (data["promotional"], data["purchased"]) == (1 - cost, 10)
    assert (data["total_usage"], data["balance"]) == (cost, 11 - cost)


async def test_inference_and_management_keys_read_the_same(gateway: Gateway) -> None:
    theirs = (await gateway.client.get("/credits")).json()
    assert (await gateway.manage("GET", "/credits")) == theirs


async def test_without_a_key_there_is_nothing_to_read(gateway: Gateway) -> None:
    del gateway.client.headers["authorization"]
    assert (await gateway.client.get("/credits")).status_code == 401
