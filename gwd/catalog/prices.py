"""Dated prices: what a `pricing` object means, which version holds at a moment, what a complete price is."""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from gwd.catalog.tables import PriceTable
from gwd.core.cost import Price, PriceTier
from gwd.core.errors import InvalidValue
from gwd.core.ids import mint
from gwd.core.money import PICO_PER_NANO, MoneyError, pico_from_price, price_text
from gwd.store import Connection

MAX_WHOLE_PRICE_USD: Final = 1


class Pricing(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Decimal strings in USD per token (`request` and `image`: USD each), as catalogs and model records write them."""

    prompt: str | UnsetType = UNSET
    completion: str | UnsetType = UNSET
    input_cache_read: str | UnsetType = UNSET
    input_cache_write: str | UnsetType = UNSET
    input_cache_write_1h: str | UnsetType = UNSET
    internal_reasoning: str | UnsetType = UNSET
    request: str | UnsetType = UNSET
    image: str | UnsetType = UNSET


class PricingTier(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of the whole request once its prompt is longer than `above_prompt_tokens`."""

    above_prompt_tokens: int
    pricing: Pricing


class PriceBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is stored for one version."""

    pricing: Pricing
    tiers: tuple[PricingTier, ...] = ()


class PriceVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One dated price row."""

    id: str
    model: str
    endpoint_id: str | None
    effective_at_us: int
    body: PriceBody


def append(
    connection: Connection,
    model: str,
    *,
    endpoint_id: str | None,
    pricing: Pricing,
    tiers: tuple[PricingTier, ...],
    effective_at_us: int,
    now_us: int,
) -> PriceVersion:
    """Write a new version; earlier ones stay. Raises InvalidValue naming the field for a price that cannot be."""
    body = PriceBody(
        pricing=pricing, tiers=tuple(sorted(tiers, key=lambda t: t.above_prompt_tokens))
    )
    price_of("check", body, is_embedding=False)
    for tier in tiers:
        if tier.above_prompt_tokens <= 0:
            raise InvalidValue("`above_prompt_tokens` must be positive", param="pricing_tiers")
    version = PriceVersion(
        id=mint("prc_"),
        model=model,
        endpoint_id=endpoint_id,
        effective_at_us=effective_at_us,
        body=body,
    )
    connection.run(
        PriceTable.insert(
            id=version.id,
            model=model,
            endpoint_id=endpoint_id,
            effective_at=effective_at_us,
            body=msgspec.to_builtins(body),
            created_at=now_us,
        )
    )
    return version


def versions(connection: Connection, model: str | None = None) -> list[PriceVersion]:
    """All versions (of one model), oldest first by the moment they take effect."""
    query = PriceTable.select().order_by(PriceTable.effective_at, PriceTable.created_at)
    if model is not None:
        query = query.where(PriceTable.model == model)
    return [
        PriceVersion(
            id=row.id,
            model=row.model,
            endpoint_id=row.endpoint_id,
            effective_at_us=row.effective_at,
            body=msgspec.convert(row.body, PriceBody),
        )
        for row in connection.run(query)
    ]


def price_of(version_id: str, body: PriceBody, *, is_embedding: bool) -> Price | None:
    """The resolved price, every fallback applied (design section 8); None while it is incomplete.

    Complete is prompt and completion, for embeddings prompt. Missing cache prices fall back to prompt, the one-hour
    write to the five-minute one, reasoning to completion.
    """
    rates = _rates(body.pricing, "pricing")
    prompt, completion = rates.get("prompt"), rates.get("completion")
    if is_embedding and completion is None:
        completion = 0
    if prompt is None or completion is None:
        return None
    base = {"prompt": prompt, "completion": completion} | rates
    reads = _resolved(base)
    return Price(
        version=version_id,
        prompt_pico=reads["prompt"],
        completion_pico=reads["completion"],
        cache_read_pico=reads["input_cache_read"],
        cache_write_5m_pico=reads["input_cache_write"],
        cache_write_1h_pico=reads["input_cache_write_1h"],
        reasoning_pico=reads["internal_reasoning"],
        reasoning_is_separate="internal_reasoning" in rates,
        request_nano=_whole_nano(body.pricing.request, "request"),
        image_nano=_whole_nano(body.pricing.image, "image"),
        tiers=tuple(_tier(tier, base) for tier in body.tiers),
    )


def _tier(tier: PricingTier, base: dict[str, int]) -> PriceTier:
    reads = _resolved(base | _rates(tier.pricing, "pricing_tiers"))
    return PriceTier(
        above_prompt_tokens=tier.above_prompt_tokens,
        prompt_pico=reads["prompt"],
        completion_pico=reads["completion"],
        cache_read_pico=reads["input_cache_read"],
        cache_write_5m_pico=reads["input_cache_write"],
        cache_write_1h_pico=reads["input_cache_write_1h"],
        reasoning_pico=reads["internal_reasoning"],
    )


def _resolved(rates: dict[str, int]) -> dict[str, int]:
    write = rates.get("input_cache_write", rates["prompt"])
    return {
        "prompt": rates["prompt"],
        "completion": rates["completion"],
        "input_cache_read": rates.get("input_cache_read", rates["prompt"]),
        "input_cache_write": write,
        "input_cache_write_1h": rates.get("input_cache_write_1h", write),
        "internal_reasoning": rates.get("internal_reasoning", rates["completion"]),
    }


def _rates(pricing: Pricing, where: str) -> dict[str, int]:
    rates = {}
    for name in (
        "prompt",
        "completion",
        "input_cache_read",
        "input_cache_write",
        "input_cache_write_1h",
        "internal_reasoning",
    ):
        text = getattr(pricing, name)
        if text is not UNSET:
            rates[name] = _pico(text, f"{where}.{name}")
    return rates


def _whole_nano(text: str | UnsetType, name: str) -> int:
    if text is UNSET:
        return 0
    # A price per request or image is written in USD like a price per token, but charged as a whole amount.
    pico = _pico(str(text), f"pricing.{name}")
    if pico % PICO_PER_NANO:
        raise InvalidValue(
            f"`pricing.{name}` must have at most 9 decimals", param=f"pricing.{name}"
        )
    return pico // PICO_PER_NANO


def _pico(text: str, field: str) -> int:
    try:
        return pico_from_price(text)
    except MoneyError as error:
        raise InvalidValue(f"`{field}` {error}", param=field) from None


def pricing_record(price: Price | None) -> dict[str, str]:
    """The `pricing` object of a model record: decimal strings, USD per token."""
    if price is None:
        return {}
    record = {
        "prompt": price_text(price.prompt_pico),
        "completion": price_text(price.completion_pico),
        "input_cache_read": price_text(price.cache_read_pico),
        "input_cache_write": price_text(price.cache_write_5m_pico),
        "input_cache_write_1h": price_text(price.cache_write_1h_pico),
        "request": price_text(price.request_nano * PICO_PER_NANO),
        "image": price_text(price.image_nano * PICO_PER_NANO),
    }
    if price.reasoning_is_separate:
        record["internal_reasoning"] = price_text(price.reasoning_pico)
    return record
