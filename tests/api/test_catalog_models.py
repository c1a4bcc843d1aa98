"""/catalog/models: what can be asked for, its price and its life."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.support.node import PRICES, Gateway

NEW: dict[str, Any] = {
    "id": "demo/fresh",
    "name": "Fresh",
    "vendor": "Demo",
    "context_length": 1000,
    "max_completion_tokens": 100,
    "supported_parameters": ["max_tokens"],
    "input_modalities": ["text"],
    "output_modalities": ["text"],
    "pricing": PRICES,
}
PATH = "/catalog/models/demo/fresh"


async def test_a_model_is_created_read_changed_and_deleted(gateway: Gateway) -> None:
    made = (await gateway.manage("POST", "/catalog/models", NEW))["data"]
    assert made["id"] == "demo/fresh"
    assert Decimal(made["pricing"]["prompt"]) == Decimal(PRICES["prompt"])
    for path in (PATH, PATH.replace("demo/fresh", "demo%2Ffresh")):
        assert (await gateway.manage("GET", path))["data"]["name"] == "Fresh"
    changed = (await gateway.manage("PATCH", PATH, {"name": "Fresher"}))["data"]
    assert (changed["name"], changed["context_length"]) == ("Fresher", 1000)
    await gateway.manage("DELETE", PATH)
    await gateway.manage("GET", PATH, status=404)


async def test_the_next_request_pays_the_new_price(gateway: Gateway) -> None:
    before = (await gateway.chat(usage={"include": True})).json()["usage"]["cost"]
    dearer = {name: str(2 * Decimal(price)) for name, price in PRICES.items()}
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"pricing": dearer})
    after = (await gateway.chat(usage={"include": True})).json()["usage"]["cost"]
    assert after == pytest.approx(2 * before)


NEXT_YEAR = (datetime.now(UTC) + timedelta(days=365)).isoformat()


async def cost(gateway: Gateway, **fields: Any) -> float:
    reply = await gateway.chat(usage={"include": True}, **fields)
    charged: float = reply.json()["usage"]["cost"]
    return charged


async def test_an_announced_price_is_not_charged_before_its_time(gateway: Gateway) -> None:
    """Whatever is changed meanwhile, and whoever reads the record: it shows what is charged now."""
    path, before = "/catalog/models/demo/chat", await cost(gateway)
    dear = {"prompt": "0.5", "completion": "0.5"}
    announced = {"pricing": dear, "effective_at": NEXT_YEAR, "accept": True}
    record = (await gateway.manage("PATCH", path, announced))["data"]
    assert record["pricing"] == PRICES
    assert record["prices"][-1]["pricing"] == dear
    tiers = [{"above_prompt_tokens": 50_000, "pricing": {"prompt": "0.000009"}}]
    record = (await gateway.manage("PATCH", path, {"pricing_tiers": tiers}))["data"]
    assert (record["pricing"], record["pricing_tiers"]) == (PRICES, tiers)
    assert [v["pricing"] for v in record["prices"]] == [PRICES, PRICES, dear]
    assert await cost(gateway) == before
    later = {"pricing_tiers": tiers, "effective_at": NEXT_YEAR, "accept": True}
    record = (await gateway.manage("PATCH", path, later))["data"]
    assert record["prices"][-1]["pricing"] == dear  # what holds at that moment, not what holds now


async def test_a_price_that_looks_like_a_slip_needs_accept(gateway: Gateway) -> None:
    """More than tenfold in either direction, or above 0.001 USD a token, whatever part of a price it is."""
    chat = "/catalog/models/demo/chat"
    endpoint = (await gateway.manage("GET", "/catalog/endpoints?model=demo/chat"))["data"][0]
    own = f"/catalog/endpoints/{endpoint['id']}"
    start = {"prompt": "0.000002", "completion": "0.000008", "request": "0.001"}
    await gateway.manage("PATCH", chat, {"pricing": start})

    def tier(prompt: str) -> dict[str, Any]:
        return {"pricing_tiers": [{"above_prompt_tokens": 9, "pricing": {"prompt": prompt}}]}

    free = {"prompt": "0", "completion": "0"}
    slips: list[tuple[str, str, dict[str, Any], str]] = [
        ("PATCH", chat, {"pricing": start | {"prompt": "0.000021"}}, "pricing.prompt"),
        ("PATCH", chat, {"pricing": start | {"completion": "0.0000007"}}, "pricing.completion"),
        ("PATCH", chat, {"pricing": start | {"completion": "0"}}, "pricing.completion"),
        ("PATCH", chat, {"pricing": start | {"request": "0.0101"}}, "pricing.request"),
        ("PATCH", chat, {"pricing": start | {"input_cache_read": "0.0000001"}}, "pricing.input"),
        ("PATCH", chat, tier("0.00003"), "pricing_tiers"),
        ("PATCH", chat, {"pricing": start | {"prompt": "0.1"}, "effective_at": NEXT_YEAR}, "pricing."),
        ("PATCH", own, {"pricing": {"prompt": "0.00003", "completion": "0.000008"}}, "pricing.prompt"),
        ("POST", "/catalog/models", NEW | {"pricing": start | {"prompt": "0.0011"}}, "pricing.prompt"),
        ("POST", "/catalog/endpoints",
         {"model": "demo/chat", "provider": endpoint["provider"], "upstream_model": "x", "tag": "dear",
          "pricing": start | {"completion": "1"}}, "pricing.completion"),
    ]  # fmt: skip
    for method, path, body, param in slips:
        error = (await gateway.manage(method, path, body, status=409))["error"]
        assert error["code"] == "price_not_accepted", body
        assert error["param"].startswith(param), error
        assert "accept: true" in error["message"]
    assert (await gateway.manage("GET", chat))["data"]["pricing"] == start
    for pricing in (
        {**start, "prompt": "0.00002"},
        {**start, "prompt": "0.000002"},
        {**start, "input_cache_read": "0.0000002"},
    ):
        await gateway.manage("PATCH", chat, {"pricing": pricing})
    for method, path, body, _ in slips:
        await gateway.manage(method, path, {**body, "accept": True})
        await gateway.manage("PATCH", chat, {"pricing": start, "pricing_tiers": [], "accept": True})
    await gateway.manage("PATCH", chat, {"pricing": free, "accept": True})
    refused = await gateway.manage("PATCH", chat, {"pricing": start}, status=409)
    assert "goes from 0 to 2 USD per million tokens" in refused["error"]["message"]


async def test_numbers_in_texts_have_one_grammar(gateway: Gateway) -> None:
    """Prices are texts, and amounts may be; what could be meant otherwise is refused with what we would have read."""
    for text, reading in (
        ("12,50", "12.50"),
        ("1_000", "1000"),
        ("\u0661\u0662", "12"),
        ("1'250", "1250"),
    ):
        amount = {"amount": text, "kind": "granted"}
        error = (await gateway.manage("POST", "/credits/grants", amount, status=400))["error"]
        assert (error["param"], f"did you mean {reading}?" in error["message"]) == ("amount", True)
        price = {"pricing": {"prompt": text, "completion": "0"}}
        refused = await gateway.manage("PATCH", "/catalog/models/demo/chat", price, status=400)
        assert f"did you mean {reading}?" in refused["error"]["message"]
    for text in ("NaN", "Infinity", "", "5 USD", "0x1"):
        amount = {"amount": text, "kind": "granted"}
        await gateway.manage("POST", "/credits/grants", amount, status=400)
    made = await gateway.manage(
        "POST", "/credits/grants", {"amount": "1,250.50", "kind": "granted"}
    )
    assert made["data"]["amount"] == 1250.5


async def test_a_model_of_the_same_name_begins_without_the_prices_of_the_one_before(
    gateway: Gateway,
) -> None:
    await gateway.manage("POST", "/catalog/models", NEW)
    await gateway.manage("PATCH", PATH, {"pricing": PRICES, "effective_at": NEXT_YEAR})
    await gateway.manage("DELETE", PATH)
    unpriced = {name: value for name, value in NEW.items() if name != "pricing"}
    record = (await gateway.manage("POST", "/catalog/models", unpriced))["data"]
    assert record["pricing"] == {}
    assert datetime.fromisoformat(record["prices"][-1]["effective_at"]) <= datetime.now(UTC)
    await gateway.add_endpoint("demo/fresh", "openai-chat", "gpt-demo")
    assert (await gateway.chat(model="demo/fresh")).status_code == 404


async def test_the_receipt_shows_the_rates_that_were_charged(gateway: Gateway) -> None:
    tiers = [{"above_prompt_tokens": 1, "pricing": {"prompt": "0.00001", "completion": "0.00002"}}]
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"pricing_tiers": tiers})
    reply = (await gateway.chat(headers={"x-gw-metadata": "enabled"})).json()
    receipt, usage = reply["gateway_metadata"], reply["usage"]
    assert receipt["pricing"]["prompt_per_million"] == 10
    assert receipt["cost"]["prompt"] == pytest.approx(usage["prompt_tokens"] * 0.00001)
    assert receipt["pricing"]["completion_per_million"] == 20


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"effective_at": NEXT_YEAR}, "effective_at"),
        ({"pricing": PRICES, "effective_at": "soon"}, "effective_at"),
        ({"pricing_tiers": [{"above_prompt_tokens": 0, "pricing": PRICES}]}, "pricing_tiers"),
        ({"pricing_tiers": 2 * [{"above_prompt_tokens": 9, "pricing": PRICES}]}, "pricing_tiers"),
        (
            {"pricing_tiers": [{"above_prompt_tokens": 9, "pricing": {"request": "0.5"}}]},
            "pricing_tiers",
        ),
        (
            {"pricing_tiers": [{"above_prompt_tokens": 9, "pricing": {"prompt": "cheap"}}]},
            "pricing_tiers",
        ),
        ({"pricing": {"image": "cheap"}}, "pricing.image"),
    ],
)
async def test_a_price_that_would_be_lost_is_refused(
    gateway: Gateway, fields: dict[str, Any], param: str
) -> None:
    path = "/catalog/models/demo/chat"
    refused = await gateway.manage("PATCH", path, fields, status=400)
    assert refused["error"]["param"].startswith(param)
    assert len((await gateway.manage("GET", path))["data"]["prices"]) == 1


async def test_tiers_without_a_price_are_refused(gateway: Gateway) -> None:
    tiers = [{"above_prompt_tokens": 9, "pricing": {"prompt": "0.1"}}]
    unpriced = {name: value for name, value in NEW.items() if name != "pricing"}
    body = unpriced | {"pricing_tiers": tiers}
    assert (await gateway.manage("POST", "/catalog/models", body, status=400))["error"]["param"]
    await gateway.manage("POST", "/catalog/models", unpriced)
    refused = await gateway.manage("PATCH", PATH, {"pricing_tiers": tiers}, status=400)
    assert refused["error"]["param"] == "pricing"


async def test_a_model_without_a_complete_price_serves_nobody_and_says_so(
    gateway: Gateway,
) -> None:
    await gateway.manage("POST", "/catalog/models", NEW | {"pricing": {"prompt": "0.000002"}})
    endpoint = await gateway.add_endpoint("demo/fresh", "openai-chat", "gpt-demo")
    reply = await gateway.chat(model="demo/fresh")
    record = (await gateway.manage("GET", f"/catalog/endpoints/{endpoint}"))["data"]
    assert record["status"] == "unpriced"
    assert reply.status_code in (404, 503)
    assert "price" in reply.text
    assert gateway.vendor.calls.on("/v1/chat/completions") == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"id": "no-slash"}, "id"),
        ({"pricing": {"prompt": "cheap"}}, "pricing"),
        ({"pricing": {"prompt": "-1", "completion": "1"}}, "pricing"),
        ({"context_length": 0}, "context_length"),
        ({"input_modalities": ["smell"]}, "input_modalities"),
    ],
)
async def test_a_model_that_cannot_be_names_the_field(
    gateway: Gateway, fields: dict[str, Any], param: str
) -> None:
    refused = await gateway.manage("POST", "/catalog/models", NEW | fields, status=400)
    assert refused["error"]["param"].startswith(param)


async def test_an_end_needs_a_successor_that_lives(gateway: Gateway) -> None:
    soon = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    later = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    path = "/catalog/models/demo/chat"
    for fields in (
        {"deprecated_at": soon, "retired_at": later},
        {"deprecated_at": later, "retired_at": soon, "successor": "demo/chat-b"},
        {"deprecated_at": soon, "retired_at": later, "successor": "demo/chat"},
        {"deprecated_at": soon, "retired_at": later, "successor": "demo/none"},
        {"deprecated_at": soon, "retired_at": later, "successor": "demo/embed"},
    ):
        await gateway.manage("PATCH", path, fields, status=400)
    whole = {"deprecated_at": soon, "retired_at": later, "successor": "demo/chat-b"}
    assert (await gateway.manage("PATCH", path, whole))["data"]["successor"] == "demo/chat-b"
    past = {"deprecated_at": "2026-01-01T00:00:00Z", "successor": "demo/claude"}
    await gateway.manage("PATCH", "/catalog/models/demo/chat-b", past)
    refused = await gateway.manage("PATCH", path, whole, status=400)
    assert refused["error"]["param"] == "successor"
    assert "deprecated" in refused["error"]["message"]
    await gateway.manage("PATCH", path, {"name": "Chat"})  # what stands already may stay


async def test_a_deprecated_model_serves_and_says_when_it_ends(gateway: Gateway) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    fields = {
        "deprecated_at": (now - timedelta(days=1)).isoformat(),
        "retired_at": (now + timedelta(days=30)).isoformat(),
        "successor": "demo/chat-b",
    }
    await gateway.manage("PATCH", "/catalog/models/demo/chat", fields)
    reply = await gateway.chat()
    assert reply.status_code == 200
    assert reply.headers["deprecation"] == f"@{int((now - timedelta(days=1)).timestamp())}"
    assert reply.headers["sunset"].endswith("GMT")
    assert reply.headers["link"].endswith('/models/demo/chat-b>; rel="successor-version"')
    gateway.vendor.script.next("server_error")
    failed = await gateway.chat()
    assert (failed.status_code, failed.headers["sunset"]) == (502, reply.headers["sunset"])
