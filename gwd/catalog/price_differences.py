"""Where the catalog's prices are not those of the price book, from which moment on, and which of them need a look.

A price that somebody thinks of is compared in the same way, before it is announced. An extra that the catalog does not
sell is no difference unless it is asked for, and what the book says nothing of stays as it is. An endpoint's own price
is compared with the book only at its vendor's own host: elsewhere the book knows no price.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from gwd.catalog import implausible_prices, prices
from gwd.catalog.price_body import (
    PriceBody,
    Pricing,
    PricingTier,
    rates,
    resolved,
    whole_nano,
)
from gwd.catalog.price_book import BookModel, BookPrice, PriceBook
from gwd.catalog.prices import PriceVersion
from gwd.catalog.tables import EndpointTable, ModelTable, ProviderTable
from gwd.core.errors import NotFound, PriceNotAccepted
from gwd.core.money import PICO_PER_NANO
from gwd.core.web_address import read_web_address
from gwd.store import Connection

MOST_PERCENT: Final = 25
"""A price that changes more than this has to be accepted."""


class ClassDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One class of tokens in prompts above `above_prompt_tokens`, or `web_search`; pico-USD, None for no price."""

    name: str
    above_prompt_tokens: int
    old_pico: int | None
    new_pico: int


class PriceDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One price in place of another. `endpoint_id` is None for a model's; `endpoints` are those that charge it.

    `effective_at_us` is the moment that was asked about, or that of an announced price. `body` is the whole new price,
    and `reasons` say why it has to be accepted.
    """

    model: str
    endpoint_id: str | None
    endpoints: frozenset[str]
    effective_at_us: int
    classes: tuple[ClassDifference, ...]
    reasons: tuple[str, ...]
    before: PriceBody | None
    body: PriceBody
    is_embedding: bool


def find(
    connection: Connection, book: PriceBook, *, at_us: int, extras: bool = False
) -> Iterator[PriceDifference]:
    """All differences from a moment on, by model; those of one model oldest first."""
    known = book.by_id()
    dated: dict[tuple[str, str | None], list[PriceVersion]] = {}
    for version in prices.versions(connection):
        dated.setdefault((version.model, version.endpoint_id), []).append(version)
    providers = {row.slug: row.base_url for row in connection.run(ProviderTable.select())}
    served: dict[str, list[Any]] = {}
    for row in connection.run(EndpointTable.select().order_by(EndpointTable.created_at)):
        served.setdefault(row.model, []).append(row)
    for model in connection.run(ModelTable.select().order_by(ModelTable.id)):
        if model.id not in known:
            continue
        hosts = book.hosts.get(model.id.partition("/")[0], ())
        own = {
            row.id: dated.get((model.id, row.id), [])
            for row in served.get(model.id, [])
            if _has_own(dated.get((model.id, row.id), []), at_us)
        }
        near = {
            row.id
            for row in served.get(model.id, [])
            if read_web_address(row.base_url or providers[row.provider]).host in hosts
        }
        inherits = frozenset(row.id for row in served.get(model.id, []) if row.id not in own)
        places: list[tuple[str | None, list[PriceVersion], frozenset[str]]] = [
            (None, dated.get((model.id, None), []), inherits),
            *((name, own[name], frozenset((name,))) for name in own if name in near),
        ]
        for endpoint_id, versions, endpoints in places:
            for at, before, body in _steps(known[model.id], versions, at_us, extras=extras):
                is_embedding = model.output_modalities == ["embeddings"]
                classes = _classes(before, body, is_embedding=is_embedding)
                if classes:
                    yield PriceDifference(
                        model=model.id,
                        endpoint_id=endpoint_id,
                        endpoints=endpoints,
                        effective_at_us=at,
                        classes=classes,
                        reasons=tuple(_reasons(before, body, classes)),
                        before=before,
                        body=body,
                        is_embedding=is_embedding,
                    )


def of_thought(
    connection: Connection,
    model: str,
    pricing: Pricing,
    tiers: Sequence[PricingTier] | UnsetType,
    *,
    at_us: int,
) -> PriceDifference | None:
    """What a model's price would change from a moment on; tiers that are left out stay. None for nothing.

    It has to be accepted where a change of the model would have to be. Raises NotFound, and InvalidValue for what is no
    price.
    """
    row = connection.first(ModelTable.select().where(ModelTable.id == model))
    if row is None:
        raise NotFound(f"no model `{model}`", param="model")
    dated = prices.versions(connection, model)
    version = prices.in_force([each for each in dated if each.endpoint_id is None], at_us)
    before = None if version is None else version.body
    kept = (before.tiers if before else ()) if isinstance(tiers, UnsetType) else tuple(tiers)
    body = PriceBody(pricing=pricing, tiers=kept)
    reasons = tuple(_slip(before, body))
    is_embedding = row.output_modalities == ["embeddings"]
    classes = _classes(before, body, is_embedding=is_embedding)
    if not classes:
        return None
    served = connection.run(EndpointTable.select().where(EndpointTable.model == model))
    return PriceDifference(
        model=model,
        endpoint_id=None,
        endpoints=frozenset(
            each.id
            for each in served
            if not _has_own([one for one in dated if one.endpoint_id == each.id], at_us)
        ),
        effective_at_us=at_us,
        classes=classes,
        reasons=reasons,
        before=before,
        body=body,
        is_embedding=is_embedding,
    )


def rates_of(body: PriceBody, above: int, *, is_embedding: bool) -> dict[str, int]:
    """What each class of tokens costs in a prompt longer than `above`, with every fallback; empty without a price."""
    named = ({"completion": 0} if is_embedding else {}) | rates(body.pricing, "pricing")
    tiers = [tier for tier in body.tiers if tier.above_prompt_tokens <= above]
    if tiers:
        last = max(tiers, key=lambda tier: tier.above_prompt_tokens)
        named |= rates(last.pricing, "pricing_tiers")
    return resolved(named) if named.keys() >= {"prompt", "completion"} else {}


def _has_own(versions: Sequence[PriceVersion], at_us: int) -> bool:
    version = prices.in_force(versions, at_us)
    return version is not None and not version.body.inherits


def _steps(
    model: BookModel, versions: Sequence[PriceVersion], at_us: int, *, extras: bool
) -> Iterator[tuple[int, PriceBody | None, PriceBody]]:
    """What holds at a moment and at each announced one after it, and what would; as if each step had been taken."""
    begun = [price for price in model.prices if price.effective_at_us <= at_us]
    announced = [price for price in model.prices if price.effective_at_us > at_us]
    steps: list[tuple[int, BookPrice]] = [(at_us, begun[-1])] if begun else []
    steps += [(price.effective_at_us, price) for price in announced]
    taken: tuple[int, PriceBody] | None = None
    for at, price in steps:
        version = prices.in_force(versions, at)
        before = None if version is None or version.body.inherits else version.body
        if taken is not None and (version is None or version.effective_at_us <= taken[0]):
            before = taken[1]
        body = _merged(before, price, extras=extras)
        taken = (at, body)
        yield at, before, body


def _merged(before: PriceBody | None, price: BookPrice, *, extras: bool) -> PriceBody:
    """The book's price of tokens; extras and amounts by the piece as they are, where the book has none to compare."""
    old = before.pricing if before else price.pricing
    searches = old.web_search
    if price.pricing.web_search is not UNSET and (extras or searches is not UNSET):
        searches = price.pricing.web_search
    pricing = msgspec.structs.replace(
        price.pricing,
        request=old.request,
        image=old.image,
        web_search=searches,
        price_modifiers=old.price_modifiers,
    )
    return PriceBody(pricing=pricing, tiers=price.pricing_tiers)


def _classes(
    before: PriceBody | None, body: PriceBody, *, is_embedding: bool
) -> tuple[ClassDifference, ...]:
    found = []
    steps = {tier.above_prompt_tokens for each in (before, body) if each for tier in each.tiers}
    for above in sorted({0, *steps}):
        was = rates_of(before, above, is_embedding=is_embedding) if before else {}
        for name, pico in rates_of(body, above, is_embedding=is_embedding).items():
            if was.get(name) != pico:
                found.append(
                    ClassDifference(
                        name=name,
                        above_prompt_tokens=above,
                        old_pico=was.get(name),
                        new_pico=pico,
                    )
                )
    if body.pricing.web_search is not UNSET:
        new = whole_nano(body.pricing.web_search, "web_search") * PICO_PER_NANO
        sold = before is not None and before.pricing.web_search is not UNSET
        old = (
            whole_nano(before.pricing.web_search, "web_search") * PICO_PER_NANO
            if before is not None and sold
            else None
        )
        if old != new:
            found.append(
                ClassDifference(
                    name="web_search", above_prompt_tokens=0, old_pico=old, new_pico=new
                )
            )
    return tuple(found)


def _reasons(
    before: PriceBody | None, body: PriceBody, classes: Sequence[ClassDifference]
) -> Iterator[str]:
    """Why a price is not taken without a look, a few words each."""
    if before is None:
        yield "there is no price yet"
    changed = {each.name for each in classes}
    for each in classes:
        where = f" above {each.above_prompt_tokens} tokens" if each.above_prompt_tokens else ""
        if not each.new_pico:
            yield f"{each.name}{where} costs nothing"
        elif each.old_pico is not None and (
            abs(each.new_pico - each.old_pico) * 100 > each.old_pico * MOST_PERCENT
        ):
            yield f"{each.name}{where} changes by more than {MOST_PERCENT} %"
    if before is not None:
        for name in sorted(changed):
            was, is_there = (getattr(each.pricing, name) is not UNSET for each in (before, body))
            if was != is_there:
                yield f"{name} {'appears' if is_there else 'vanishes'}"
    yield from _slip(before, body)


def _slip(before: PriceBody | None, body: PriceBody) -> Iterator[str]:
    """What looks like a typing error."""
    try:
        implausible_prices.check(before, body)
    except PriceNotAccepted as refusal:
        yield refusal.message.partition("; send")[0]
