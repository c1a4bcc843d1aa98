"""Answers that end badly or are counted badly: insured, free, partial, estimated."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from gwd.demo import Behaviour
from gwd.pricing.tokens import estimate_text
from tests.limits.till import Till, bill, frames, request
from tests.support.node import CLAUDE_PRICES, PRICES, Gateway

DIALECTS = ("chat", "messages", "responses", "gemini", "completions")
ADAPTERS = {"demo/chat": PRICES, "demo/claude": CLAUDE_PRICES, "demo/responses": PRICES}
FREE = Decimal(0)
EMPTY = Behaviour(empty=True, finish="none", prompt_tokens=4_000)


async def flag(gateway: Gateway, model: str, **flags: Any) -> None:
    """Set a flag on the one endpoint of a model."""
    found = await gateway.manage("GET", f"/catalog/endpoints?model={model}")
    endpoint = found["data"][0]
    await gateway.manage(
        "PATCH", f"/catalog/endpoints/{endpoint['id']}", {"flags": {**endpoint["flags"], **flags}}
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_answer_without_a_token_and_without_a_finish_is_insured(
    till: Till, dialect: str, *, stream: bool
) -> None:
    """Not charged; `cost.insured` is true, Activity shows cost 0 with the marker."""
    gateway = till.gateway
    gateway.vendor.script.always(EMPTY)
    sale = await till.buy(dialect, stream=stream)
    assert (sale.total, sale.row.insured) == (FREE, True)
    assert sale.receipt["cost"]["insured"] is True
    assert sale.usage["cost"] == 0
    [listed] = (await gateway.manage("GET", "/generations"))["data"]
    assert (listed["id"], listed["insured"], listed["total_cost"]) == (sale.row.id, True, 0)
    # What it would have cost stays to be seen, and the hold was given back whole.
    assert sale.receipt["cost"]["prompt"] == Decimal("0.008")
    assert [e["type"] for e in await till.entries(sale.row.id)] == ["reservation", "settlement"]


async def test_an_empty_answer_that_ended_well_is_charged_for_its_prompt(till: Till) -> None:
    """The insurance asks for a blank or error finish; a model that chose to say nothing has worked."""
    till.gateway.vendor.script.always(Behaviour(empty=True, finish="stop", prompt_tokens=4_000))
    sale = await till.buy()
    assert (sale.row.insured, sale.total) == (False, Decimal("0.008"))


async def test_the_insurance_does_not_use_up_limits_or_budgets(till: Till) -> None:
    gateway = till.gateway
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": 0.01})
    gateway.vendor.script.always(EMPTY)
    for _ in range(3):
        await till.buy()
    assert (await gateway.manage("GET", f"/keys/{gateway.key_id}"))["data"]["usage"] == 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        "server_error",
        "rate_limited",
        "overloaded",
        "quota",
        "reset_before_headers",
        "error_first",
        "html",
        "empty_body",
    ],
)
async def test_a_request_that_failed_before_any_output_is_free(
    till: Till, words: str, *, stream: bool
) -> None:
    """Failed requests are never charged; the hold is released."""
    gateway = till.gateway
    before = await gateway.balance()
    gateway.vendor.script.always(words)
    reply = await gateway.client.post(
        "/chat/completions", json=request("chat", "hello", stream=stream)
    )
    assert reply.status_code >= 400
    row = await till.row(reply.headers["x-gw-generation-id"])
    assert (row.status, row.cost_total_nano) == ("failed", 0)
    assert [e["type"] for e in await till.entries(row.id)] == ["reservation", "release"]
    assert await till.partial(row) == 0
    assert await gateway.balance() == before


@pytest.mark.parametrize("model", ADAPTERS)
@pytest.mark.parametrize("end", ["cut_after=20 cut=reset", "error=overloaded error_after=20"])
async def test_a_stream_that_broke_off_is_billed_for_what_was_received(
    till: Till, model: str, end: str
) -> None:
    """Partial output then failure is billed for received tokens."""
    gateway = till.gateway
    gateway.vendor.script.always(f"tokens=200 {end}")
    before = await gateway.balance()
    body = {**request("chat", "hello", stream=True), "model": model}
    text = await _read(gateway, body)
    await gateway.at_rest()
    row = await till.last_row()
    assert (row.status, row.finish_reason) == ("incomplete", "error")
    assert row.usage_estimated is True
    assert row.tokens_output == estimate_text(text) > 5
    assert row.tokens_input > 0
    charged = await till.partial(row)
    assert charged == bill(row, ADAPTERS[model]) > 0
    assert before - await gateway.balance() == charged


async def test_a_client_that_leaves_pays_for_what_was_produced(till: Till) -> None:
    """The vendor is stopped, tokens so far are billed, status cancelled."""
    gateway = till.gateway
    gateway.vendor.script.always(Behaviour(tokens=400, event_delay_s=0.01))
    before = await gateway.balance()
    async with gateway.client.stream(
        "POST", "/chat/completions", json=request("chat", "hello", stream=True)
    ) as reply:
        lines = reply.aiter_lines()
        for _ in range(20):
            await anext(lines)
    await gateway.at_rest()
    row = await till.row(reply.headers["x-gw-generation-id"])
    assert (row.status, row.usage_estimated) == ("cancelled", True)
    assert 0 < row.tokens_output < 200
    charged = await till.partial(row)
    assert before - await gateway.balance() == charged == bill(row, PRICES) > 0
    assert (await till.record(row.id))["cancelled"] is True


async def test_a_client_that_leaves_a_whole_request_before_its_end_pays_nothing(
    till: Till,
) -> None:
    """A whole answer is billed only if the vendor had finished."""
    gateway = till.gateway
    gateway.vendor.script.always(Behaviour(delay_s=5))
    asking = asyncio.create_task(
        gateway.client.post("/chat/completions", json=request("chat", "hello", stream=False))
    )
    await gateway.vendor.calls.wait_for(1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await gateway.at_rest()
    row = await till.last_row()
    assert (row.status, await till.partial(row)) == ("cancelled", FREE)


@pytest.mark.parametrize("model", ADAPTERS)
@pytest.mark.parametrize("stream", [False, True])
async def test_unreliable_accounting_bills_the_smaller_prompt(
    till: Till, model: str, *, stream: bool
) -> None:
    """Where a provider's accounting is unreliable, the smaller of reported and estimated."""
    gateway = till.gateway
    await flag(gateway, model, usage_unreliable=True)
    content = "a prompt of several plain words " * 20
    seen = []
    for reported in (9_000, 3):
        gateway.vendor.script.always(
            Behaviour(text="fine", prompt_tokens=reported, completion_tokens=50, reasoning_tokens=0)
        )
        sale = await till.buy(stream=stream, model=model, content=content)
        assert sale.total == bill(sale.row, ADAPTERS[model])
        assert sale.row.tokens_output == 50
        assert sale.usage["prompt_tokens"] == sale.row.tokens_input
        seen.append(sale.row.tokens_input)
    assert seen[1] == 3
    assert 100 < seen[0] < 200


async def test_unreliable_accounting_is_cut_in_a_stream_that_broke_off_too(till: Till) -> None:
    """This vendor states the prompt first, so a broken stream has its count as well."""
    gateway, model = till.gateway, "demo/claude"
    await flag(gateway, model, usage_unreliable=True)
    gateway.vendor.script.always(
        Behaviour(tokens=200, prompt_tokens=9_000, cut="reset", cut_after=20)
    )
    await _read(gateway, {**request("chat", "hello", stream=True), "model": model})
    await gateway.at_rest()
    row = await till.last_row()
    assert row.status == "incomplete"
    assert row.tokens_input < 50
    assert await till.partial(row) == bill(row, CLAUDE_PRICES)


@pytest.mark.parametrize("model", ADAPTERS)
@pytest.mark.parametrize(
    "kind", ["missing", "null", "negative", "string", "float", "boolean", "huge"]
)
async def test_counts_that_cannot_be_are_replaced_by_the_estimate(
    till: Till, model: str, kind: str
) -> None:
    """Nothing a vendor reports wrongly makes a bill wrong; the record says it was estimated."""
    gateway = till.gateway
    gateway.vendor.script.always(f"usage={kind} tokens=60")
    amounts = set()
    for stream in (False, True):
        sale = await till.buy(model=model, stream=stream)
        assert sale.row.usage_estimated is True
        assert sale.total == bill(sale.row, ADAPTERS[model]) > 0
        assert 40 < sale.row.tokens_output < 90
        assert (await till.record(sale.row.id))["usage_estimated"] is True
        amounts.add(sale.total)
    assert len(amounts) == 1


@pytest.mark.parametrize("model", ADAPTERS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_count_that_is_left_out_is_not_taken_for_nothing(
    till: Till, model: str, *, stream: bool
) -> None:
    """The side that a vendor does not report is estimated; the one that it reports is billed as it says."""
    is_chat = model == "demo/chat"
    content = "a prompt of several plain words " * 20
    for count in ("output", "input"):
        name = {"output": "completion_tokens", "input": "prompt_tokens"}[count]
        named: dict[str, object] = {name if is_chat else f"{count}_tokens": 60}
        till.gateway.vendor.script.always(Behaviour(tokens=60, usage_object=named))
        sale = await till.buy(model=model, content=content, stream=stream)
        assert sale.row.tokens_input > 100 if count == "output" else sale.row.tokens_input == 60
        assert sale.row.tokens_output + sale.row.tokens_reasoning > 40
        assert sale.row.usage_estimated is True
        assert sale.total == bill(sale.row, ADAPTERS[model])


@pytest.mark.parametrize("model", ADAPTERS)
async def test_more_tokens_than_the_model_can_have_are_not_believed(till: Till, model: str) -> None:
    """A count above context and longest answer would charge thousands for a greeting."""
    for stream in (False, True):
        till.gateway.vendor.script.always(
            Behaviour(text="fine", prompt_tokens=9_000_000, completion_tokens=9_000_000)
        )
        sale = await till.buy(model=model, stream=stream)
        assert sale.row.usage_estimated is True
        assert sale.total < Decimal("0.001")


async def test_details_beyond_their_whole_are_cut_to_it(till: Till) -> None:
    for kind, prices in (("cached_over_prompt", PRICES), ("reasoning_over_completion", PRICES)):
        till.gateway.vendor.script.always(f"usage={kind} prompt_tokens=1000 completion_tokens=500")
        sale = await till.buy()
        row = sale.row
        assert row.tokens_input + row.tokens_cache_read == 1_000
        assert row.tokens_output + row.tokens_reasoning == 500
        assert sale.total == bill(row, prices)


async def test_a_cost_beyond_the_hold_is_charged_exactly_and_becomes_debt(
    till: Till,
) -> None:
    """Never less than the cost: what exceeds all credit becomes debt, and the next request is refused (I4, I7)."""
    gateway = till.gateway
    balance = await gateway.balance()
    left = Decimal("0.001")
    await gateway.manage(
        "POST", "/credits/refunds", {"amount": float(balance - left), "note": "out"}
    )
    gateway.vendor.script.next(Behaviour(text="fine", prompt_tokens=2_000, completion_tokens=81))
    sale = await till.buy(max_tokens=16)
    assert sale.total == Decimal("0.004648")
    credit = (await gateway.manage("GET", "/credits"))["data"]
    assert (credit["balance"], credit["available"], credit["purchased"]) == (
        -0.003648,
        -0.003648,
        0,
    )
    refused = await gateway.chat(max_tokens=1)
    assert refused.json()["error"]["code"] == "insufficient_credits"
    assert refused.json()["error"]["metadata"]["available"] == 0
    await gateway.manage("POST", "/credits/purchases", {"amount": 0.5})
    credit = (await gateway.manage("GET", "/credits"))["data"]
    assert (credit["balance"], credit["purchased"]) == (0.496352, 0.496352)


async def _read(gateway: Gateway, body: dict[str, Any]) -> str:
    """The text that a stream delivered before it ended, well or not."""
    reply = await gateway.client.post("/chat/completions", json=body)
    assert reply.status_code == 200
    return "".join(
        choice["delta"].get("content") or ""
        for frame in frames(reply.text)
        for choice in frame.get("choices", ())
    )
