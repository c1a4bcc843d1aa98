"""Prices, targets and requests with sensible defaults: a test names only what matters to it."""

from typing import Any

from gwd.core.cost import Price, PriceTier
from gwd.core.request import Generate, Message, Part, Request, TextPart
from gwd.core.target import Credential, Flags, Target
from gwd.vendors.formats import FORMATS

OPUS = Price(
    version="v1",
    prompt_pico=4_000_000,
    completion_pico=20_000_000,
    cache_read_pico=200_000,
    cache_write_5m_pico=5_000_000,
    cache_write_1h_pico=8_000_000,
    reasoning_pico=20_000_000,
)

TIERED = Price(
    version="v1",
    prompt_pico=100_000,
    completion_pico=500_000,
    cache_read_pico=10_000,
    cache_write_5m_pico=125_000,
    cache_write_1h_pico=200_000,
    reasoning_pico=500_000,
    tiers=(
        PriceTier(
            above_prompt_tokens=100_000,
            prompt_pico=500_000,
            completion_pico=2_500_000,
            cache_read_pico=50_000,
            cache_write_5m_pico=625_000,
            cache_write_1h_pico=1_000_000,
            reasoning_pico=2_500_000,
        ),
    ),
)


def target(
    price: Price = OPUS,
    *,
    context_length: int = 200_000,
    max_completion_tokens: int = 64_000,
    byok_fee_bps: int | None = None,
) -> Target:
    return Target(
        endpoint_id="ep_1",
        model="test/model",
        vendor="Test",
        provider="test",
        provider_name="Test",
        tag="test",
        format=FORMATS["anthropic_messages"],
        base_url="https://vendor.example",
        auth="x-api-key",
        headers={},
        upstream_model="model",
        context_length=context_length,
        max_completion_tokens=max_completion_tokens,
        default_max_tokens=None,
        supported_parameters=frozenset(),
        flags=Flags(),
        price=price,
        credential=Credential(
            id="cred_1",
            secret="secret",
            byok=byok_fee_bps is not None,
            fee_bps=byok_fee_bps or 0,
        ),
    )


def chat(*parts: Part | str, **body: Any) -> Request:
    """A request with one user message; strings become text parts, keywords go to the body."""
    said = tuple(TextPart(text=each) if isinstance(each, str) else each for each in parts)
    return Request(
        dialect="chat_completions",
        family="openai_chat",
        models=("test/model",),
        body=Generate(messages=(Message(role="user", parts=said),), **body),
    )
