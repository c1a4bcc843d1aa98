"""Bills that other gateways got wrong, to the nano, through the running gateway (reports of the kind money)."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from gwd.demo import Behaviour
from tests.flows.frames import error_of, frames_of
from tests.support.node import Gateway

NANO = 1_000_000_000
Usage = dict[str, object]

ANTHROPIC_WRITES: Usage = {
    "input_tokens": 4,
    "cache_creation_input_tokens": 10_000,
    "cache_read_input_tokens": 0,
    "output_tokens": 500,
}
ANTHROPIC_HOUR: Usage = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 1_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 600},
    "output_tokens": 10,
}


def openai(prompt: int, completion: int, *, cached: int = 0, reasoning: int = 0) -> Usage:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def of_responses(prompt: int, completion: int, *, cached: int = 0, reasoning: int = 0) -> Usage:
    return {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens_details": {"reasoning_tokens": reasoning},
    }


# Report, model, what its vendor counted, the right bill in nano-USD, prompt and completion tokens on record.
BILLS: list[tuple[str, str, Usage, int, tuple[int, int]]] = [
    ("070 written once", "demo/claude", ANTHROPIC_WRITES, 45_012_000, (10_004, 500)),
    ("072 cached inside", "demo/chat", openai(2_000, 100, cached=1_500), 2_550_000, (2_000, 100)),
    (
        "072 cached inside, responses",
        "demo/responses",
        of_responses(2_000, 100, cached=1_500),
        2_550_000,
        (2_000, 100),
    ),
    ("074 reasoning", "demo/chat", openai(10, 200, reasoning=150), 1_620_000, (10, 200)),
    (
        "074 reasoning, responses",
        "demo/responses",
        of_responses(10, 200, reasoning=150),
        1_620_000,
        (10, 200),
    ),
    ("076 one hour", "demo/claude", ANTHROPIC_HOUR, 5_280_000, (1_010, 10)),
    ("078 too much cached", "demo/chat", openai(100, 10, cached=150), 130_000, (100, 10)),
]
DIALECTS = ["/chat/completions", "/messages", "/responses"]


async def ask(gateway: Gateway, path: str, model: str, *, stream: bool) -> httpx.Response:
    body: dict[str, Any] = {"model": model, "stream": stream, "usage": {"include": True}}
    if path == "/responses":
        body["input"] = "hello"
    elif path == "/completions":
        body["prompt"] = "hello"
    elif path == "/embeddings":
        body = {"model": model, "input": "hello"}
    else:
        body["messages"] = [{"role": "user", "content": "hello"}]
    if path == "/messages":
        body["max_tokens"] = 1_000
    return await gateway.client.post(path, json=body, headers={"x-gw-metadata": "enabled"})


def usage_of(reply: httpx.Response) -> Any:
    """The usage object a client of the dialect sees last."""
    if not reply.headers["content-type"].startswith("text/event-stream"):
        return reply.json()["usage"]
    for frame in reversed(frames_of(reply.text)):
        found = frame.get("usage") or frame.get("response", {}).get("usage")
        if found:
            return found
    raise AssertionError("no usage in the stream")


def shown_receipt(reply: httpx.Response) -> Any:
    if not reply.headers["content-type"].startswith("text/event-stream"):
        return reply.json()["gateway_metadata"]
    for frame in reversed(frames_of(reply.text)):
        holder = frame.get("response", frame)
        if "gateway_metadata" in holder:
            return holder["gateway_metadata"]
    raise AssertionError("no receipt in the stream")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", DIALECTS)
@pytest.mark.parametrize("bill", BILLS, ids=[bill[0] for bill in BILLS])
async def test_bill_is_right_to_the_nano_in_every_dialect(
    gateway: Gateway, bill: Any, path: str, stream: bool
) -> None:
    _, model, usage, charge_nano, (prompt, completion) = bill
    gateway.vendor.script.always(Behaviour(usage_object=usage))
    reply = await ask(gateway, path, model, stream=stream)
    assert reply.status_code == 200
    assert (Decimal(10) - await gateway.balance()) * NANO == charge_nano
    shown = usage_of(reply)
    assert Decimal(str(shown["cost"])) * NANO == charge_nano
    cost = shown_receipt(reply)["cost"]
    assert Decimal(str(cost["total"])) * NANO == charge_nano
    parts = (
        *("prompt", "cache_read", "cache_write", "completion", "reasoning"),
        *("request_fee", "platform_fee"),
    )
    assert sum(Decimal(str(cost[part])) for part in parts) * NANO == charge_nano
    record = await gateway.generation(reply)
    assert (record["tokens_prompt"], record["tokens_completion"]) == (prompt, completion)
    if path == "/chat/completions":
        assert shown["prompt_tokens"] == prompt
        assert shown["completion_tokens"] == completion
        assert shown["total_tokens"] == prompt + completion
    elif path == "/messages":
        beside = shown["cache_read_input_tokens"] + shown["cache_creation_input_tokens"]
        assert shown["input_tokens"] + beside == prompt
        assert shown["output_tokens"] == completion
    else:
        assert (shown["input_tokens"], shown["output_tokens"]) == (prompt, completion)


@pytest.mark.parametrize("path", DIALECTS)
async def test_cached_tokens_are_shown_in_the_clients_own_convention(
    gateway: Gateway, path: str
) -> None:
    gateway.vendor.script.always(Behaviour(usage_object=openai(2_000, 100, cached=1_500)))
    shown = usage_of(await ask(gateway, path, "demo/chat", stream=False))
    match path:
        case "/chat/completions":
            assert shown["prompt_tokens_details"]["cached_tokens"] == 1_500
        case "/messages":
            assert (shown["input_tokens"], shown["cache_read_input_tokens"]) == (500, 1_500)
        case _:
            assert shown["input_tokens_details"]["cached_tokens"] == 1_500


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", DIALECTS)
async def test_hold_comes_back_however_the_attempt_dies(
    gateway: Gateway, path: str, stream: bool
) -> None:
    gateway.vendor.script.always("cut_before_headers")
    reply = await ask(gateway, path, "demo/chat", stream=stream)
    assert reply.status_code == 503
    await gateway.verify()
    assert await gateway.balance() == 10


@pytest.mark.parametrize("path", [*DIALECTS, "/completions", "/embeddings"])
async def test_spent_budget_closes_every_inference_path(gateway: Gateway, path: str) -> None:
    await gateway.manage(
        "POST",
        "/budgets",
        {"scope": "organization", "interval": "monthly", "kind": "hard", "limit": 0.000001},
    )
    assert (await gateway.chat()).status_code == 200
    calls = len(gateway.vendor.calls)
    model = "demo/embed" if path == "/embeddings" else "demo/chat"
    refused = await ask(gateway, path, model, stream=False)
    assert refused.status_code == 402
    if path == "/messages":
        assert refused.json()["error"]["type"] == "billing_error"
    else:
        assert error_of(refused)["code"] == "budget_exceeded"
    record = await gateway.generation(refused)
    assert (record["status"], record["error"]["code"]) == ("refused", "budget_exceeded")
    assert len(gateway.vendor.calls) == calls


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_unreliable_accounting_is_billed_by_the_smaller_prompt(
    gateway: Gateway, stream: bool
) -> None:
    await gateway.add_provider("inflated", "openai_chat", gateway.vendor.openai_url)
    await gateway.add_model(
        "demo/inflated", pricing={"prompt": "0.000002", "completion": "0.000008"}
    )
    await gateway.add_endpoint(
        "demo/inflated", "inflated", "gpt-demo", flags={"usage_unreliable": True}
    )
    gateway.vendor.script.always(Behaviour(usage_object=openai(5_000, 100)))
    reply = await ask(gateway, "/chat/completions", "demo/inflated", stream=stream)
    record = await gateway.generation(reply)
    assert record["tokens_prompt"] < 50
    assert record["tokens_completion"] == 100
    charged_nano = (Decimal(10) - await gateway.balance()) * NANO
    assert charged_nano == record["tokens_prompt"] * 2_000 + 100 * 8_000


async def test_prompt_above_a_tiers_threshold_is_billed_whole_at_the_tiers_price(
    gateway: Gateway,
) -> None:
    """An oversized call is held for and billed at the dearer price, and the one below it at the cheaper."""
    await gateway.add_provider("tiered", "openai_chat", gateway.vendor.openai_url)
    await gateway.manage(
        "POST",
        "/catalog/models",
        {
            "id": "demo/tiered",
            "name": "tiered",
            "vendor": "Demo",
            "context_length": 200_000,
            "max_completion_tokens": 1_000,
            "supported_parameters": ["max_tokens"],
            "input_modalities": ["text"],
            "output_modalities": ["text"],
            "pricing": {"prompt": "0.000001", "completion": "0.000002"},
            "pricing_tiers": [
                {
                    "above_prompt_tokens": 100,
                    "pricing": {"prompt": "0.000003", "completion": "0.000005"},
                }
            ],
        },
    )
    await gateway.add_endpoint("demo/tiered", "tiered", "gpt-demo")
    costs = []
    for prompt in (100, 101):
        gateway.vendor.script.next(Behaviour(usage_object=openai(prompt, 10)))
        shown = usage_of(await ask(gateway, "/chat/completions", "demo/tiered", stream=False))
        costs.append(Decimal(str(shown["cost"])) * NANO)
    assert costs == [100 * 1_000 + 10 * 2_000, 101 * 3_000 + 10 * 5_000]
