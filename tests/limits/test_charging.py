"""What an answer costs, to the nano, and that every side says the same."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from gwd.demo import Behaviour
from tests.limits.conftest import Opened
from tests.limits.till import Till, bill
from tests.limits.watch import Watch
from tests.support.listener import Listener, listener
from tests.support.node import CLAUDE_PRICES, PRICES, Gateway

__all__ = ["listener"]

DIALECTS = ("chat", "messages", "responses", "gemini", "completions")
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
# Prices finer than a nano per token, all different, so that no class can pay for another.
ODD = {
    "prompt": "0.0000000375",
    "completion": "0.000000151",
    "input_cache_read": "0.00000000313",
    "input_cache_write": "0.000000047",
    "input_cache_write_1h": "0.000000075001",
    "internal_reasoning": "0.0000004000007",
}


async def price(gateway: Gateway, model: str, pricing: dict[str, Any], **fields: Any) -> None:
    await gateway.manage(
        "PATCH", f"/catalog/models/{model}", {"pricing": pricing, "accept": True, **fields}
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", [*DIALECTS, "embeddings"])
async def test_record_receipt_usage_ledger_and_balance_name_one_amount(
    till: Till, dialect: str, *, stream: bool
) -> None:
    sale = await till.buy(dialect, stream=stream and dialect != "embeddings")
    prices = {"prompt": "0.0000001"} if dialect == "embeddings" else PRICES
    assert sale.total == bill(sale.row, prices) > 0
    assert sale.row.usage_estimated is False


async def test_every_class_of_tokens_is_charged_at_its_own_price(till: Till) -> None:
    """Each class is rounded once, half up, to a nano; the total is the sum of the rounded classes."""
    gateway = till.gateway
    odd = {**ODD, "internal_reasoning": "0.000000400001"}
    await price(gateway, "demo/claude", odd)
    gateway.vendor.script.always(
        Behaviour(
            text="fine",
            prompt_tokens=10_007,
            cached_tokens=3_001,
            cache_write_tokens=1_003,
            cache_write_1h_tokens=503,
            completion_tokens=701,
            reasoning_tokens=301,
        )
    )
    for stream in (False, True):
        sale = await till.buy(model="demo/claude", stream=stream)
        cost = sale.receipt["cost"]
        assert cost["prompt"] == Decimal("0.00020625")  # 5,500 × 37.5 nano
        assert cost["cache_read"] == Decimal("0.000009393")  # 3,001 × 3.13 nano = 9,393.13
        assert cost["cache_write"] == Decimal("0.000084867")  # 47,141 + 37,725.503
        assert cost["completion"] == Decimal("0.0000604")  # 400 × 151 nano
        assert cost["reasoning"] == Decimal("0.0001204")  # 301 × 400.001 nano = 120,400.301
        assert sale.total == bill(sale.row, odd) == Decimal("0.00048131")
        row = sale.row
        assert (row.tokens_cache_write_5m, row.tokens_cache_write_1h) == (1_003, 503)
        assert sale.receipt["pricing"] == {
            "prompt_per_million": Decimal("0.0375"),
            "completion_per_million": Decimal("0.151"),
            "cache_read_per_million": Decimal("0.00313"),
            "cache_write_per_million": Decimal("0.047"),
            "reasoning_per_million": Decimal("0.400001"),
            "request_fee": 0,
        }


async def test_without_a_rate_of_its_own_reasoning_costs_what_the_completion_does(
    till: Till,
) -> None:
    till.gateway.vendor.script.always(
        Behaviour(text="fine", prompt_tokens=10, completion_tokens=300, reasoning_tokens=200)
    )
    sale = await till.buy()
    assert sale.receipt["pricing"]["reasoning_per_million"] is None
    cost = sale.receipt["cost"]
    assert (cost["completion"], cost["reasoning"]) == (Decimal("0.0008"), Decimal("0.0016"))
    assert sale.usage["completion_tokens_details"]["reasoning_tokens"] == 200


async def test_half_a_nano_is_rounded_up_class_by_class(till: Till) -> None:
    await price(till.gateway, "demo/chat", {"prompt": "0.0000000005", "completion": "0.0000000005"})
    for tokens, nano in ((1, 2), (2, 2), (3, 4), (4, 4), (5, 6)):
        till.gateway.vendor.script.always(
            Behaviour(text="fine", prompt_tokens=tokens, completion_tokens=tokens)
        )
        assert (await till.buy()).total == nano * Decimal("0.000000001")


async def test_a_model_may_be_free(till: Till) -> None:
    await price(till.gateway, "demo/chat", {"prompt": "0", "completion": "0"})
    sale = await till.buy()
    assert (sale.row.insured, sale.row.status) == (False, "succeeded")
    assert sale.total == 0


async def test_a_new_price_holds_from_its_date_and_never_for_what_was_charged_before(
    opened: Opened, watch: Watch
) -> None:
    """Prices are dated; the record names the version, and recomputing an old charge gives the old amount (I10)."""
    async with opened() as gateway:
        till = Till(gateway)
        gateway.vendor.script.always(
            Behaviour(text="fine", prompt_tokens=1_000, completion_tokens=1_000)
        )
        first = await till.buy()
        dearer = {"prompt": "0.000004", "completion": "0.000016"}
        await price(gateway, "demo/chat", dearer)
        second = await till.buy()
        dearest = {"prompt": "0.000008", "completion": "0.000032"}
        await price(gateway, "demo/chat", dearest, effective_at="2026-12-01T00:00:00Z")
        third = await till.buy()
        watch.set("2026-12-01T00:00:00Z")
        fourth = await till.buy()
        sales = (first, second, third, fourth)
        assert [sale.total * 100 for sale in sales] == [1, 2, 2, 4]
        versions = [sale.row.price for sale in sales]
        assert versions[1] == versions[2]
        assert len(set(versions)) == 3
        assert None not in versions
        shown = [(await till.record(sale.row.id))["price_version"] for sale in sales]
        assert shown == versions
        for sale, prices in zip(sales, (PRICES, dearer, dearer, dearest), strict=True):
            assert bill(await till.row(sale.row.id), prices) == sale.total


async def test_a_request_keeps_the_price_it_was_admitted_with(till: Till) -> None:
    """A price that changes while an answer streams changes nothing for it."""
    gateway = till.gateway
    gateway.vendor.script.next(Behaviour(tokens=10, event_delay_s=0.05, prompt_tokens=500))
    async with gateway.client.stream(
        "POST",
        "/chat/completions",
        json={
            "model": "demo/chat",
            "messages": [{"role": "user", "content": "hello"}],
            "stream": True,
        },
    ) as reply:
        parts = reply.aiter_lines()
        assert await anext(parts)
        await price(gateway, "demo/chat", {"prompt": "0.001", "completion": "0.001"})
        assert [line async for line in parts][-2] == "data: [DONE]"
    await gateway.at_rest()
    row = await till.row(reply.headers["x-gw-generation-id"])
    assert await till.partial(row) == bill(row, PRICES)


async def test_an_endpoint_s_own_price_is_charged_in_place_of_its_model_s(till: Till) -> None:
    gateway = till.gateway
    own = {"prompt": "0.000001", "completion": "0.000003"}
    await gateway.manage(
        "PATCH",
        f"/catalog/endpoints/{(await gateway.manage('GET', '/catalog/endpoints?model=demo/chat'))['data'][0]['id']}",
        {"pricing": own},
    )
    sale = await till.buy()
    assert sale.total == bill(sale.row, own)


async def test_request_fee_and_images_are_charged_once_each(till: Till) -> None:
    """request_fee is a part of its own; the image price is shown inside `prompt`."""
    gateway = till.gateway
    prices = {**PRICES, "request": "0.000123456", "image": "0.0007"}
    await price(gateway, "demo/chat", prices)
    plain = await till.buy()
    assert plain.receipt["cost"]["request_fee"] == Decimal("0.000123456")
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    content = [{"type": "text", "text": "what are these?"}, image, image]
    for stream in (False, True):
        sale = await till.buy(stream=stream, messages=[{"role": "user", "content": content}])
        assert sale.row.images == 2
        tokens = Decimal(PRICES["prompt"]) * sale.row.tokens_input
        assert sale.receipt["cost"]["prompt"] == tokens + Decimal("0.0014")
        assert sale.total == bill(sale.row, prices)
        assert (await till.record(sale.row.id))["num_media_prompt"] == 2


async def test_a_picture_that_the_model_never_saw_is_not_charged(till: Till) -> None:
    """In an earlier turn a sentence stands in its place: neither its price nor its tokens are billed."""
    gateway = till.gateway
    prices = {**PRICES, "image": "0.0007"}
    await price(gateway, "demo/chat", prices)
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    conversation = [
        {"role": "user", "content": [{"type": "text", "text": "what is this?"}, image]},
        {"role": "assistant", "content": "A dot."},
        {"role": "user", "content": "sure?"},
    ]
    gateway.vendor.script.always(Behaviour(text="fine", usage="missing"))
    seen = await till.buy(messages=conversation)
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"input_modalities": ["text"]})
    unseen = await till.buy(messages=conversation)
    assert (seen.row.images, unseen.row.images) == (1, 0)
    assert seen.row.tokens_input - unseen.row.tokens_input > 500
    assert unseen.total == bill(unseen.row, prices)


async def test_a_longer_prompt_is_charged_wholly_at_the_tier_it_exceeds(till: Till) -> None:
    """A tier begins above its length; cached tokens are part of the length; all tokens get its rates."""
    gateway = till.gateway
    tier = {"prompt": "0.000006", "completion": "0.0000225", "input_cache_read": "0.0000006"}
    tiers = [{"above_prompt_tokens": 1_000, "pricing": tier}]
    await price(gateway, "demo/chat", PRICES, pricing_tiers=tiers)
    for prompt, cached, prices in (
        (1_000, 0, PRICES),
        (1_001, 0, tier),
        (1_000, 900, PRICES),
        (1_001, 900, tier),
        (50_000, 0, tier),
    ):
        gateway.vendor.script.always(
            Behaviour(text="fine", prompt_tokens=prompt, cached_tokens=cached, completion_tokens=10)
        )
        content = "word " * prompt
        sale = await till.buy(content=content)
        assert sale.total == bill(sale.row, prices), (prompt, cached)


async def test_embeddings_are_billed_on_input_tokens_only(till: Till) -> None:
    """Billed on input alone; a completion that a server reports all the same costs nothing."""
    gateway = till.gateway
    prices = {"prompt": "0.0000001", "completion": "0.001"}
    await price(gateway, "demo/embed", prices)
    gateway.vendor.script.next(
        Behaviour(usage_object={"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100})
    )
    sale = await till.buy("embeddings", input=["one", "two", "three"])
    assert sale.total == Decimal("0.000007")
    assert (sale.row.tokens_input, sale.row.tokens_output) == (70, 0)
    gateway.vendor.script.next(Behaviour(usage="missing"))
    estimated = await till.buy("embeddings", input=["one", "two", "three"])
    assert estimated.row.usage_estimated is True
    assert estimated.total == bill(estimated.row, prices) > 0


@pytest.mark.parametrize("stream", [False, True])
async def test_the_same_usage_gives_the_same_bill_on_every_adapter_and_dialect(
    till: Till, *, stream: bool
) -> None:
    """Vendors count cached tokens inside or beside the prompt; the bill must not depend on it."""
    gateway = till.gateway
    models = ("demo/chat", "demo/claude", "demo/responses")
    for model in models:
        await price(gateway, model, {**CLAUDE_PRICES, "internal_reasoning": "0.00002"})
    gateway.vendor.script.always(
        Behaviour(
            text="fine",
            prompt_tokens=5_000,
            cached_tokens=3_000,
            cache_write_tokens=700,
            completion_tokens=900,
            reasoning_tokens=400,
        )
    )
    seen = {}
    for model in models:
        for dialect in DIALECTS:
            sale = await till.buy(dialect, stream=stream, model=model)
            usage = sale.usage
            counted = _counted(usage)
            # Messages counts cached tokens apart, the others inside.
            assert counted == ((1_300, 900) if dialect == "messages" else (5_000, 900))
            seen[model, dialect] = (sale.total, tuple(sorted(sale.receipt["cost"].items())))
    assert len({str(one) for one in seen.values()}) == 1, seen
    # 1,300 × 3 + 3,000 × 0.3 + 700 × 3.75 + 500 × 15 + 400 × 20 micro-dollars
    assert {total for total, _ in seen.values()} == {Decimal("0.022925")}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_vendor_that_counts_thoughts_apart_gives_the_same_bill(
    till: Till, listener: Listener, *, stream: bool
) -> None:
    """candidatesTokenCount excludes thoughts, cachedContentTokenCount lies inside the prompt."""
    gateway = till.gateway
    prices = {**PRICES, "internal_reasoning": "0.00002"}
    await price(gateway, "demo/chat", prices)
    gateway.vendor.script.next(
        Behaviour(
            text="fine",
            prompt_tokens=5_000,
            cached_tokens=3_000,
            completion_tokens=900,
            reasoning_tokens=400,
        )
    )
    usual = await till.buy(stream=stream)
    await gateway.add_provider("gemini", "gemini", f"http://127.0.0.1:{listener.port}/v1beta")
    await gateway.add_model("demo/gemini", pricing=prices)
    await gateway.add_endpoint("demo/gemini", "gemini", "gemini-demo")
    listener.answer = _gemini_answer(stream=stream)
    sale = await till.buy(model="demo/gemini", stream=stream)
    assert sale.total == usual.total == Decimal("0.0175")
    assert sale.receipt["cost"] == usual.receipt["cost"]


def _gemini_answer(*, stream: bool) -> bytes:
    answer = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "fine"}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {
            "promptTokenCount": 5_000,
            "cachedContentTokenCount": 3_000,
            "candidatesTokenCount": 500,
            "thoughtsTokenCount": 400,
            "totalTokenCount": 5_900,
        },
        "modelVersion": "gemini-demo",
    }
    text = json.dumps(answer)
    body = f"data: {text}\r\n\r\n" if stream else text
    kind = "text/event-stream" if stream else "application/json"
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body.encode()


async def test_the_endpoint_that_served_is_the_one_that_is_paid(till: Till) -> None:
    """A failed attempt before it costs nothing, whatever its price."""
    gateway = till.gateway
    dear = {"prompt": "0.00002", "completion": "0.00008"}
    await gateway.add_provider("second", "openai_chat", gateway.vendor.openai_url)
    await gateway.add_endpoint("demo/chat", "second", "gpt-demo-mini", pricing=dear)
    order = {"order": ["openai-chat", "second"]}
    first = await till.buy(provider=order)
    assert first.total == bill(first.row, PRICES)
    gateway.vendor.script.next("server_error")
    second = await till.buy(provider=order)
    assert second.receipt["routing"]["attempts"] == 2
    assert second.total == bill(second.row, dear)
    assert second.row.price != first.row.price


async def test_a_fallback_model_is_paid_at_its_own_price(till: Till) -> None:
    till.gateway.vendor.script.next("server_error")
    sale = await till.buy(models=["demo/claude"], model="demo/chat")
    assert (sale.receipt["routing"]["fallback_model"], sale.row.model) == (True, "demo/claude")
    assert sale.total == bill(sale.row, CLAUDE_PRICES)


def _counted(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens in and out, by whichever names."""
    if "promptTokenCount" in usage:
        thoughts = usage.get("thoughtsTokenCount", 0)
        return usage["promptTokenCount"], usage["candidatesTokenCount"] + thoughts
    if "prompt_tokens" in usage:
        return usage["prompt_tokens"], usage["completion_tokens"]
    return usage["input_tokens"], usage["output_tokens"]
