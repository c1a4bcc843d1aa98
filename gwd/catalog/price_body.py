"""What a `pricing` object means: prices in USD as texts, read and checked; every fallback applied."""

import re
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.core.errors import InvalidValue
from gwd.core.extras import FIELDS
from gwd.core.inputs import EachPriceInput, PriceInput
from gwd.core.money import PICO_PER_NANO, MoneyError, millionths_from_factor, pico_from_price

MAX_MODIFIERS: Final = 32
_EACH: Final = ("request", "image", "web_search")
_VALUE: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}|\*")


class Pricing(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Decimal strings in USD per token (`request`, `image`, `web_search`: USD each), as catalogs and model records
    write them.

    `price_modifiers` holds, per field and value of what makes a call dearer, a factor as a decimal string: it
    multiplies the price of every class of tokens. A value without one, and a search without `web_search`, is not sold.
    """

    prompt: Annotated[
        PriceInput | UnsetType,
        Meta(description="A token of the prompt."),
    ] = UNSET
    completion: Annotated[
        PriceInput | UnsetType,
        Meta(description="A token of the answer."),
    ] = UNSET
    input_cache_read: Annotated[
        PriceInput | UnsetType,
        Meta(description="A token read from a cache. Absent is `prompt`."),
    ] = UNSET
    input_cache_write: Annotated[
        PriceInput | UnsetType,
        Meta(description="A token written into a cache. Absent is `prompt`."),
    ] = UNSET
    input_cache_write_1h: Annotated[
        PriceInput | UnsetType,
        Meta(description="A token written for an hour. Absent is `input_cache_write`."),
    ] = UNSET
    internal_reasoning: Annotated[
        PriceInput | UnsetType,
        Meta(description="A token of reasoning. Absent is `completion`."),
    ] = UNSET
    request: Annotated[
        EachPriceInput | UnsetType,
        Meta(description="Each request, beside its tokens. Absent is 0."),
    ] = UNSET
    image: Annotated[
        EachPriceInput | UnsetType,
        Meta(description="Each image in the prompt, beside its tokens. Absent is 0."),
    ] = UNSET
    web_search: Annotated[
        EachPriceInput | UnsetType,
        Meta(description="Each search that the vendor makes. Absent is not sold."),
    ] = UNSET
    price_modifiers: Annotated[
        dict[str, dict[str, str]] | UnsetType,
        Meta(
            description="Factors on the price of every token, by field and value of a request: {service_tier: {flex:"
            " 0.5}}. A value without one is not sold."
        ),
    ] = UNSET


class PricingTier(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of the whole request once its prompt is longer."""

    above_prompt_tokens: Annotated[
        int,
        Meta(
            description="Above how many tokens of the prompt these prices are taken.",
            extra_json_schema={"minimum": 1},
        ),
    ]
    pricing: Annotated[Pricing, Meta(description="Prices of tokens; only those.")]


class PriceBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is stored for one version. An endpoint that `inherits` goes back to its model's price."""

    pricing: Pricing
    tiers: tuple[PricingTier, ...] = ()
    inherits: bool = False


def check(body: PriceBody) -> None:
    """Raises InvalidValue naming the field that cannot be a price."""
    rates(body.pricing, "pricing")
    for name in _EACH:
        whole_nano(getattr(body.pricing, name), name)
    modifiers(body.pricing)
    seen = set()
    for tier in body.tiers:
        rates(tier.pricing, "pricing_tiers")
        if tier.above_prompt_tokens <= 0 or tier.above_prompt_tokens in seen:
            raise InvalidValue(
                "`above_prompt_tokens` must be positive, and each only once", param="pricing_tiers"
            )
        seen.add(tier.above_prompt_tokens)
        whole = (*_EACH, "price_modifiers")
        if any(getattr(tier.pricing, name) is not UNSET for name in whole):
            raise InvalidValue(
                "`pricing_tiers`: `request`, `image`, `web_search` and `price_modifiers` do not depend on"
                " the length of the prompt; give them in `pricing`",
                param="pricing_tiers",
            )


def resolved(named: dict[str, int]) -> dict[str, int]:
    """Every class of token with its price, from those that are named."""
    write = named.get("input_cache_write", named["prompt"])
    return {
        "prompt": named["prompt"],
        "completion": named["completion"],
        "input_cache_read": named.get("input_cache_read", named["prompt"]),
        "input_cache_write": write,
        "input_cache_write_1h": named.get("input_cache_write_1h", write),
        "internal_reasoning": named.get("internal_reasoning", named["completion"]),
    }


def rates(pricing: Pricing, where: str) -> dict[str, int]:
    """The prices per token that are named, in pico-USD. Raises InvalidValue naming the field."""
    named = {}
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
            named[name] = _pico(text, f"{where}.{name}")
    return named


def modifiers(pricing: Pricing) -> dict[str, dict[str, int]]:
    """The factors by field and value, in millionths. Raises InvalidValue naming the field."""
    given = {} if pricing.price_modifiers is UNSET else pricing.price_modifiers
    read: dict[str, dict[str, int]] = {}
    for field, factors in given.items():
        where = f"pricing.price_modifiers.{field}"
        if field not in FIELDS:
            raise InvalidValue(
                f"`{where}`: what can make a call dearer is one of {', '.join(FIELDS)}", param=where
            )
        if len(factors) > MAX_MODIFIERS:
            raise InvalidValue(f"`{where}`: at most {MAX_MODIFIERS} values", param=where)
        for value, factor in factors.items():
            if not _VALUE.fullmatch(value):
                raise InvalidValue(
                    f"`{where}`: {value[:64]!r} must be a value as the vendor writes it in lower case, or *",
                    param=where,
                )
            read.setdefault(field, {})[value] = _factor(factor, f"{where}.{value}")
    return read


def _factor(text: str, field: str) -> int:
    try:
        return millionths_from_factor(text)
    except MoneyError as error:
        raise InvalidValue(f"`{field}` {error}", param=field) from None


def whole_nano(text: str | UnsetType, name: str) -> int:
    """The price of a request or an image in nano-USD, 0 where there is none."""
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
