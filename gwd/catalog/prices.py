"""Dated prices: what a `pricing` object means, which version holds at a moment, what a complete price is."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import peewee
from msgspec import UNSET, Meta, UnsetType

from gwd.catalog import implausible_prices
from gwd.catalog.price_body import (
    PriceBody,
    Pricing,
    PricingTier,
    check,
    modifiers,
    rates,
    resolved,
    whole_nano,
)
from gwd.catalog.tables import PriceTable
from gwd.core.cost import Price, PriceTier
from gwd.core.errors import InvalidValue
from gwd.core.fields import Factor, UsdEach, UsdPerToken
from gwd.core.ids import mint
from gwd.core.money import factor_text, price_text, usd_text
from gwd.store import Connection


class PriceVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One dated price row."""

    id: str
    model: str
    endpoint_id: str | None
    effective_at_us: int
    body: PriceBody


def begin(
    connection: Connection,
    model: str,
    *,
    endpoint_id: str | None,
    pricing: Pricing | None,
    tiers: list[PricingTier],
    accept: bool,
    now_us: int,
) -> None:
    """The price of a new model or endpoint, if one was given. Raises InvalidValue for tiers without a price.

    Raises PriceNotAccepted for one that looks like a slip, unless the caller says that it is meant.
    """
    if pricing is not None:
        body = PriceBody(pricing=pricing, tiers=tuple(tiers))
        if not accept:
            implausible_prices.check(None, body)
        _append(connection, model, endpoint_id, body, effective_at_us=now_us, now_us=now_us)
    elif tiers:
        raise _needs_pricing()


def change(
    connection: Connection,
    model: str,
    *,
    endpoint_id: str | None,
    pricing: Pricing | UnsetType | None,
    tiers: list[PricingTier] | UnsetType | None,
    effective_at_us: int | None,
    accept: bool,
    now_us: int,
) -> None:
    """Write the version that a patch describes; what it leaves out stays as it is at the moment it takes effect.

    A moment that has passed means now. `pricing` of None sends an endpoint back to its model's price. Earlier
    versions stay. Raises InvalidValue naming the field, PriceNotAccepted as `begin` does.
    """
    if pricing is UNSET and tiers is UNSET:
        if effective_at_us is not None:
            raise InvalidValue("`effective_at` goes with `pricing`", param="effective_at")
        return
    at_us = max(effective_at_us or now_us, now_us)
    before = in_force(of(connection, model, endpoint_id), at_us)
    if pricing is None:
        if tiers:
            raise _needs_pricing()
        body = PriceBody(pricing=Pricing(), inherits=True)
    else:
        if pricing is UNSET:
            if before is None or before.body.inherits:
                raise _needs_pricing()
            pricing = before.body.pricing
        kept = (before.body.tiers if before else ()) if tiers is UNSET else tuple(tiers or ())
        body = PriceBody(pricing=pricing, tiers=kept)
    if not accept:
        of_model = in_force(of(connection, model, None), at_us)
        was = of_model if before is None or before.body.inherits else before
        then = body if not body.inherits or of_model is None else of_model.body
        implausible_prices.check(None if was is None else was.body, then)
    _append(connection, model, endpoint_id, body, effective_at_us=at_us, now_us=now_us)


def end(connection: Connection, model: str, *, now_us: int) -> None:
    """The model is deleted: one of the same name that comes later begins without a price, announced ones are off."""
    connection.run(
        PriceTable.delete().where((PriceTable.model == model) & (PriceTable.effective_at > now_us))
    )
    _append(
        connection, model, None, PriceBody(pricing=Pricing()), effective_at_us=now_us, now_us=now_us
    )


def _needs_pricing() -> InvalidValue:
    return InvalidValue(
        "`pricing_tiers` needs `pricing` beside it: there is no price yet that it could change",
        param="pricing",
    )


def _append(
    connection: Connection,
    model: str,
    endpoint_id: str | None,
    body: PriceBody,
    *,
    effective_at_us: int,
    now_us: int,
) -> None:
    body = msgspec.structs.replace(
        body, tiers=tuple(sorted(body.tiers, key=lambda t: t.above_prompt_tokens))
    )
    check(body)
    connection.run(
        PriceTable.insert(
            id=mint("prc_"),
            model=model,
            endpoint_id=endpoint_id,
            effective_at=effective_at_us,
            body=msgspec.to_builtins(body),
            created_at=now_us,
        )
    )


def versions(connection: Connection, model: str | None = None) -> list[PriceVersion]:
    """All versions (of one model and its endpoints), oldest first by the moment they take effect.

    Of two for the same moment the one written later comes later, and holds.
    """
    query = PriceTable.select().order_by(PriceTable.effective_at, peewee.SQL("rowid"))
    if model is not None:
        query = query.where(PriceTable.model == model)
    return [_version(row) for row in connection.run(query)]


def version(connection: Connection, version_id: str) -> PriceVersion | None:
    """One version by its id, also one of a model that is gone."""
    row = connection.first(PriceTable.select().where(PriceTable.id == version_id))
    return None if row is None else _version(row)


def _version(row: PriceTable) -> PriceVersion:
    return PriceVersion(
        id=row.id,
        model=row.model,
        endpoint_id=row.endpoint_id,
        effective_at_us=row.effective_at,
        body=msgspec.convert(row.body, PriceBody),
    )


def of(connection: Connection, model: str, endpoint_id: str | None) -> list[PriceVersion]:
    """The versions of a model's own price, or of an endpoint's, oldest first."""
    return [v for v in versions(connection, model) if v.endpoint_id == endpoint_id]


def in_force(dated: Sequence[PriceVersion], at_us: int) -> PriceVersion | None:
    """The last of these versions, oldest first, that has begun."""
    found = None
    for version in dated:
        if version.effective_at_us > at_us:
            break
        found = version
    return found


def for_endpoint(
    own: Sequence[PriceVersion], of_model: Sequence[PriceVersion]
) -> list[tuple[int, PriceVersion | None]]:
    """What an endpoint costs from which moment on: its own version in force, else its model's, else nothing."""
    dated = []
    for at_us in sorted({version.effective_at_us for version in (*own, *of_model)}):
        version = in_force(own, at_us)
        if version is None or version.body.inherits:
            version = in_force(of_model, at_us)
        dated.append((at_us, version))
    return dated


def price_of(version_id: str, body: PriceBody, *, is_embedding: bool) -> Price | None:
    """The resolved price, every fallback applied; None while it is incomplete.

    Complete is prompt and completion, for embeddings prompt. Missing cache prices fall back to prompt, the one-hour
    write to the five-minute one, reasoning to completion.
    """
    named = rates(body.pricing, "pricing")
    prompt, completion = named.get("prompt"), named.get("completion")
    if is_embedding and completion is None:
        completion = 0
    if prompt is None or completion is None:
        return None
    base = {"prompt": prompt, "completion": completion} | named
    reads = resolved(base)
    return Price(
        version=version_id,
        prompt_pico=reads["prompt"],
        completion_pico=reads["completion"],
        cache_read_pico=reads["input_cache_read"],
        cache_write_5m_pico=reads["input_cache_write"],
        cache_write_1h_pico=reads["input_cache_write_1h"],
        reasoning_pico=reads["internal_reasoning"],
        reasoning_is_separate="internal_reasoning" in named,
        request_nano=whole_nano(body.pricing.request, "request"),
        image_nano=whole_nano(body.pricing.image, "image"),
        tiers=tuple(_tier(tier, base) for tier in body.tiers),
        modifiers=modifiers(body.pricing),
        web_search_nano=None
        if body.pricing.web_search is UNSET
        else whole_nano(body.pricing.web_search, "web_search"),
    )


def is_complete(version: PriceVersion, *, is_embedding: bool) -> bool:
    """Whether an endpoint can be charged by this version."""
    return price_of(version.id, version.body, is_embedding=is_embedding) is not None


def _tier(tier: PricingTier, base: dict[str, int]) -> PriceTier:
    reads = resolved(base | rates(tier.pricing, "pricing_tiers"))
    return PriceTier(
        above_prompt_tokens=tier.above_prompt_tokens,
        prompt_pico=reads["prompt"],
        completion_pico=reads["completion"],
        cache_read_pico=reads["input_cache_read"],
        cache_write_5m_pico=reads["input_cache_write"],
        cache_write_1h_pico=reads["input_cache_write_1h"],
        reasoning_pico=reads["internal_reasoning"],
    )


class ListedPricing(msgspec.Struct, frozen=True, kw_only=True):
    """What a model costs, with the prices that were left out filled in; empty while it has none."""

    prompt: Annotated[UsdPerToken | UnsetType, Meta(description="A token of the prompt.")] = UNSET
    completion: Annotated[UsdPerToken | UnsetType, Meta(description="A token of the answer.")] = (
        UNSET
    )
    input_cache_read: Annotated[
        UsdPerToken | UnsetType, Meta(description="A token of the prompt read from a cache.")
    ] = UNSET
    input_cache_write: Annotated[
        UsdPerToken | UnsetType,
        Meta(description="A token of the prompt written to a cache for five minutes."),
    ] = UNSET
    input_cache_write_1h: Annotated[
        UsdPerToken | UnsetType,
        Meta(description="A token of the prompt written to a cache for an hour."),
    ] = UNSET
    request: Annotated[
        UsdEach | UnsetType, Meta(description="A request, beside its tokens, in USD.")
    ] = UNSET
    image: Annotated[UsdEach | UnsetType, Meta(description="An image of the prompt, in USD.")] = (
        UNSET
    )
    internal_reasoning: Annotated[
        UsdPerToken | UnsetType,
        Meta(description="A token of reasoning; left out where it costs what the answer's do."),
    ] = UNSET
    web_search: Annotated[
        UsdEach | UnsetType,
        Meta(description="A search that the vendor runs, in USD; left out where none is sold."),
    ] = UNSET
    price_modifiers: Annotated[
        dict[str, dict[str, Factor]] | UnsetType,
        Meta(
            description="By field and value of a request: what the price of every token is multiplied with. What is"
            " not listed is not sold."
        ),
    ] = UNSET


def pricing_record(price: Price | None) -> ListedPricing:
    """The prices as model records show them."""
    if price is None:
        return ListedPricing()
    return ListedPricing(
        prompt=price_text(price.prompt_pico),
        completion=price_text(price.completion_pico),
        input_cache_read=price_text(price.cache_read_pico),
        input_cache_write=price_text(price.cache_write_5m_pico),
        input_cache_write_1h=price_text(price.cache_write_1h_pico),
        request=usd_text(price.request_nano),
        image=usd_text(price.image_nano),
        internal_reasoning=price_text(price.reasoning_pico)
        if price.reasoning_is_separate
        else UNSET,
        web_search=UNSET if price.web_search_nano is None else usd_text(price.web_search_nano),
        price_modifiers={
            field: {value: factor_text(factor) for value, factor in factors.items()}
            for field, factors in price.modifiers.items()
        }
        or UNSET,
    )
