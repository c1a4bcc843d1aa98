"""The price book against the catalog: what differs, what that does to last month's traffic, and taking it over.

The same is told of a price that somebody thinks of. Taking over is whole or nothing, through the same changes of models
and endpoints as by hand.
"""

from collections.abc import Collection, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.activity import day_sums
from gwd.activity.day_sums import EndpointSums
from gwd.catalog import endpoints, models, price_book, price_differences
from gwd.catalog.fields import Tiers
from gwd.catalog.inputs import EndpointPatch, ModelPatch, effective_at
from gwd.catalog.price_body import PriceBody, Pricing
from gwd.catalog.price_differences import ClassDifference, PriceDifference
from gwd.catalog.record import ModelSlug
from gwd.core.clock import US_PER_DAY, iso
from gwd.core.errors import InvalidValue, PriceNeedsAcceptance
from gwd.core.fields import Count, Id, Moment, Percent, Tokens, Usd, UsdPerToken
from gwd.core.inputs import MomentInput
from gwd.core.money import nano_from_pico, price_text, usd_json
from gwd.store import Connection

EFFECT_DAYS: Final = 30


class ApplyPrices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which prices of the price book to take over: all, or those of the models named."""

    models: Annotated[
        list[str], Meta(max_length=1000, description="Only these models, by id; empty for all.")
    ] = []
    accept: Annotated[
        list[str],
        Meta(max_length=1000, description="Models whose prices may change as much as they do."),
    ] = []
    effective_at: Annotated[
        MomentInput | UnsetType,
        Meta(description="From when on they hold; absent is now. Announced prices keep their day."),
    ] = UNSET
    extras: Annotated[
        bool, Meta(description="Takes over extras as well that are not sold so far.")
    ] = False


class ThoughtPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price that a model might get, as a change of the model would say it."""

    model: Annotated[str, Meta(description="The model, by id.")]
    pricing: Annotated[Pricing, Meta(description="The whole new price.")]
    pricing_tiers: Annotated[
        Tiers | UnsetType, Meta(description="Its tiers; absent keeps those there are.")
    ] = UNSET
    effective_at: Annotated[
        MomentInput | UnsetType, Meta(description="From when on it would hold; absent is now.")
    ] = UNSET


class ClassRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One price that differs."""

    name: Annotated[str, Meta(description="The class of tokens, or `web_search`, as in `pricing`.")]
    above_prompt_tokens: Annotated[
        Tokens, Meta(description="In prompts longer than this; 0 for all that no tier covers.")
    ]
    old: Annotated[
        UsdPerToken | None,
        Meta(description="What it costs so far, with fallbacks; null where it has no price."),
    ]
    new: Annotated[
        UsdPerToken, Meta(description="What it would cost; of `web_search` USD a search.")
    ]
    change_percent: Annotated[
        Percent | None, Meta(description="By how much it changes; null from nothing.")
    ]


class EffectRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a change does to the traffic of 30 days: tokens at either price, for prompts below every tier.

    Requests of all organizations through the platform's keys; extras and pictures are left out, and what was written
    to a cache counts as written for five minutes.
    """

    requests: Annotated[Count, Meta(description="How many requests there were.")]
    charged: Annotated[Usd, Meta(description="What was charged for them.")]
    at_old: Annotated[Usd, Meta(description="Their tokens at the old price.")]
    at_new: Annotated[Usd, Meta(description="Their tokens at the new price.")]


class DifferenceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One price of the catalog in place of another: the book's, or one that is thought of."""

    model: ModelSlug
    endpoint_id: Annotated[
        Id | None, Meta(description="The endpoint whose own price it is; null for the model's.")
    ]
    effective_at: Annotated[Moment, Meta(description="From when on it differs.")]
    announced: Annotated[bool, Meta(description="Whether the new price holds only from a day on.")]
    classes: Annotated[list[ClassRecord], Meta(description="The prices that differ.")]
    needs_acceptance: Annotated[
        bool, Meta(description="Whether it is taken only where `accept` says that it is meant.")
    ]
    reasons: Annotated[list[str], Meta(description="Why it has to be accepted.")]
    last_30d: Annotated[EffectRecord, Meta(description="The effect on the last 30 days.")]


class LifeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A retirement that the book knows and the catalog does not; it is told, not taken over."""

    model: ModelSlug
    retired_at: Annotated[Moment, Meta(description="From when on its vendor serves it no longer.")]
    here: Annotated[Moment | None, Meta(description="What the catalog says; null for never.")]
    successor: Annotated[str | None, Meta(description="What its vendor names in its place.")]


class DiffRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The price book against the catalog."""

    read_at: Annotated[Moment, Meta(description="The day on which the book was read.")]
    sources: Annotated[list[str], Meta(description="What it was read from.")]
    differences: Annotated[list[DifferenceRecord], Meta(description="Prices that differ.")]
    retirements: Annotated[list[LifeRecord], Meta(description="Retirements that differ.")]
    unknown: Annotated[
        list[str], Meta(description="Models of the catalog that the book does not know.")
    ]
    new: Annotated[
        list[str] | UnsetType,
        Meta(description="Models of the book that the catalog lacks; only where asked for."),
    ] = UNSET


def diff(
    connection: Connection, *, at_us: int, now_us: int, extras: bool, with_new: bool
) -> DiffRecord:
    """What differs from a moment on."""
    book = price_book.shipped()
    known = book.by_id()
    life = models.retirements(connection)
    found = list(price_differences.find(connection, book, at_us=at_us, extras=extras))
    return DiffRecord(
        read_at=book.read_at,
        sources=list(book.sources),
        differences=_records(connection, found, at_us=at_us, now_us=now_us),
        retirements=[
            LifeRecord(model=name, retired_at=said, here=here, successor=known[name].successor)
            for name, here in life.items()
            if name in known and (said := known[name].retired_at) is not None and said != here
        ],
        unknown=[name for name in life if name not in known],
        new=[name for name in known if name not in life] if with_new else UNSET,
    )


def apply(
    connection: Connection, body: ApplyPrices, *, allow_http: bool, now_us: int
) -> list[DifferenceRecord]:
    """Take prices over; what was changed. Raises InvalidValue for a name that is not in the catalog and the book.

    Raises PriceNeedsAcceptance, and changes nothing, where a model has to be accepted and is not.
    """
    at_us = max(effective_at(body.effective_at) or now_us, now_us)
    book = price_book.shipped()
    both = book.by_id().keys() & models.retirements(connection).keys()
    for field in ("models", "accept"):
        for name in getattr(body, field):
            if name not in both:
                raise InvalidValue(
                    f"`{field}`: {name!r} is no model that catalog and price book both know",
                    param=field,
                )
    wanted = [
        each
        for each in price_differences.find(connection, book, at_us=at_us, extras=body.extras)
        if not body.models or each.model in body.models
    ]
    _check_accepted(wanted, body.accept)
    records = _records(connection, wanted, at_us=at_us, now_us=now_us)
    for each in wanted:
        when = iso(each.effective_at_us) if each.effective_at_us > now_us else UNSET
        pricing, tiers, accept = each.body.pricing, list(each.body.tiers), bool(each.reasons)
        if each.endpoint_id is None:
            change = ModelPatch(
                pricing=pricing, pricing_tiers=tiers, effective_at=when, accept=accept
            )
            models.patch(connection, each.model, change, now_us=now_us)
        else:
            own = EndpointPatch(
                pricing=pricing, pricing_tiers=tiers, effective_at=when, accept=accept
            )
            endpoints.patch(connection, each.endpoint_id, own, allow_http=allow_http, now_us=now_us)
    return records


def effect(connection: Connection, thought: ThoughtPrice, *, now_us: int) -> list[DifferenceRecord]:
    """What a price would do, in one record; none where it changes nothing. Raises what the change itself would."""
    at_us = max(effective_at(thought.effective_at) or now_us, now_us)
    found = price_differences.of_thought(
        connection, thought.model, thought.pricing, thought.pricing_tiers, at_us=at_us
    )
    return _records(connection, [] if found is None else [found], at_us=now_us, now_us=now_us)


def _check_accepted(wanted: Sequence[PriceDifference], accepted: Collection[str]) -> None:
    missing = {
        each.model: each.reasons[0]
        for each in wanted
        if each.reasons and each.model not in accepted
    }
    if missing:
        said = "; ".join(f"{name} ({reason})" for name, reason in missing.items())
        raise PriceNeedsAcceptance(
            f"nothing was changed: `accept` has to name what is meant of {said}", param="accept"
        )


def _records(
    connection: Connection, found: Sequence[PriceDifference], *, at_us: int, now_us: int
) -> list[DifferenceRecord]:
    today = now_us // US_PER_DAY
    sums = day_sums.of_endpoints(connection, today - EFFECT_DAYS + 1, today) if found else []
    return [
        DifferenceRecord(
            model=each.model,
            endpoint_id=each.endpoint_id,
            effective_at=iso(each.effective_at_us),
            announced=each.effective_at_us > at_us,
            classes=[_class(one) for one in each.classes],
            needs_acceptance=bool(each.reasons),
            reasons=list(each.reasons),
            last_30d=_effect(
                each,
                [s for s in sums if s.model == each.model and s.endpoint_id in each.endpoints],
            ),
        )
        for each in found
    ]


def _class(one: ClassDifference) -> ClassRecord:
    percent = None
    if one.old_pico:
        percent = round((one.new_pico - one.old_pico) * 100 / one.old_pico, 2)
    return ClassRecord(
        name=one.name,
        above_prompt_tokens=one.above_prompt_tokens,
        old=None if one.old_pico is None else price_text(one.old_pico),
        new=price_text(one.new_pico),
        change_percent=percent,
    )


def _effect(difference: PriceDifference, sums: Sequence[EndpointSums]) -> EffectRecord:
    def nano(body: PriceBody | None) -> int:
        if body is None:
            return 0
        rates = price_differences.rates_of(body, 0, is_embedding=difference.is_embedding)
        return sum(
            nano_from_pico(getattr(each, tokens) * rates.get(name, 0))
            for each in sums
            for tokens, name in _TOKENS.items()
        )

    return EffectRecord(
        requests=sum(each.requests for each in sums),
        charged=usd_json(sum(each.charged_nano for each in sums)),
        at_old=usd_json(nano(difference.before)),
        at_new=usd_json(nano(difference.body)),
    )


_TOKENS: Final = {
    "tokens_input": "prompt",
    "tokens_cache_read": "input_cache_read",
    "tokens_cache_write": "input_cache_write",
    "tokens_output": "completion",
    "tokens_reasoning": "internal_reasoning",
}
