"""The route receipt (`gateway_metadata`) as clients read it: where a request went, how long it took, what it cost.

It describes what the inference line writes as text in one pass; nothing is built from it.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.core.errors import FaultReason
from gwd.core.fields import Count, Factor, Id, Milliseconds, Usd, UsdPerMillion


class AppliedFactor(msgspec.Struct, frozen=True, kw_only=True):
    """A factor of a bill: it multiplied the list price of every class of tokens."""

    value: Annotated[
        str, Meta(description="What was given, in the vendor's word, such as `priority`.")
    ]
    factor: Annotated[Factor, Meta(description="What the prices were multiplied by.")]


class Fallback(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that failed, or a name of the request's models that leads to none now."""

    vendor: Annotated[str, Meta(description="Whose model it is.")]
    provider: Annotated[
        str | None, Meta(description="The tag of the endpoint; null where nothing was called.")
    ]
    model: Annotated[
        str | UnsetType,
        Meta(description="The name that was passed over; only where nothing was called."),
    ] = UNSET
    byok: Annotated[
        bool | UnsetType,
        Meta(description="True where an own vendor key was used; only there."),
    ] = UNSET
    outcome: Annotated[
        Literal["retryable_error", "fatal_error"],
        Meta(description="Whether such a failure lets another endpoint be tried."),
    ]
    reason: Annotated[FaultReason, Meta(description="Why it failed.")]
    duration_ms: Annotated[Milliseconds, Meta(description="How long the attempt took.")]


class ReceiptRouting(msgspec.Struct, frozen=True, kw_only=True):
    """How the endpoint was chosen."""

    strategy: Annotated[
        str,
        Meta(
            description="`ordered` where the request named an order of providers, else the organization's strategy."
        ),
    ]
    sort: Annotated[
        str | None,
        Meta(description="What endpoints were sorted by, as asked for; null for nothing."),
    ]
    eligible_endpoints: Annotated[
        Count, Meta(description="How many endpoints of the model could have served the request.")
    ]
    attempt: Annotated[
        int | None, Meta(description="Which attempt served, from 1; null where none did.")
    ]
    attempts: Annotated[Count, Meta(description="How many calls were made to vendors.")]
    fallback_model: Annotated[
        bool, Meta(description="Whether another of the request's models served than the first.")
    ]
    fallbacks: Annotated[list[Fallback], Meta(description="What failed before, in order.")]


class ReceiptTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in milliseconds; 0 where it did not come to that."""

    routing: Annotated[Milliseconds, Meta(description="From arrival to the first call.")]
    fallback: Annotated[Milliseconds, Meta(description="What failed attempts took together.")]
    ttft: Annotated[Milliseconds, Meta(description="From arrival to the first token.")]
    generation: Annotated[Milliseconds, Meta(description="From the first token to the last.")]
    total: Annotated[Milliseconds, Meta(description="From arrival to the end.")]


class ReceiptCost(msgspec.Struct, frozen=True, kw_only=True):
    """What the request cost by class; the classes add up to the total.

    Where it was served on an own vendor key, or nothing was charged, they show the list price and the total what
    was charged.
    """

    currency: Annotated[Literal["USD"], Meta(description="The currency of all amounts.")]
    prompt: Annotated[Usd, Meta(description="Prompt tokens that came from no cache, and images.")]
    cache_read: Annotated[Usd, Meta(description="Prompt tokens read from the vendor's cache.")]
    cache_write: Annotated[Usd, Meta(description="Prompt tokens written to the vendor's cache.")]
    completion: Annotated[Usd, Meta(description="Output tokens.")]
    reasoning: Annotated[Usd, Meta(description="Reasoning tokens.")]
    request_fee: Annotated[Usd, Meta(description="What is charged for each request.")]
    web_search: Annotated[
        Usd | UnsetType,
        Meta(description="Searches that the vendor ran; only where the price has one for them."),
    ] = UNSET
    platform_fee: Annotated[
        Usd, Meta(description="The fee for a request that was served on an own vendor key.")
    ]
    total: Annotated[Usd, Meta(description="What was charged to the balance.")]
    insured: Annotated[
        bool, Meta(description="Whether nothing was charged because there was no output.")
    ]
    byok: Annotated[
        bool, Meta(description="Whether it was served on an own vendor key, which pays the vendor.")
    ]


class ReceiptPricing(msgspec.Struct, frozen=True, kw_only=True):
    """The rates of the list that the cost was computed from, of the tier that the prompt's length fell into."""

    prompt_per_million: Annotated[UsdPerMillion, Meta(description="Prompt tokens.")]
    completion_per_million: Annotated[UsdPerMillion, Meta(description="Output tokens.")]
    cache_read_per_million: Annotated[UsdPerMillion, Meta(description="Tokens read from a cache.")]
    cache_write_per_million: Annotated[
        UsdPerMillion, Meta(description="Tokens written to a cache for five minutes.")
    ]
    reasoning_per_million: Annotated[
        UsdPerMillion | None,
        Meta(description="Reasoning tokens; null where they cost what output costs."),
    ]
    request_fee: Annotated[Usd, Meta(description="Each request.")]
    web_search: Annotated[
        Usd | UnsetType, Meta(description="Each search; only where the price has one for them.")
    ] = UNSET
    searches: Annotated[
        Count | UnsetType,
        Meta(description="How many searches were billed; only where the price has one for them."),
    ] = UNSET
    modifiers: Annotated[
        dict[str, AppliedFactor] | UnsetType,
        Meta(description="The factors of tiers, speeds and regions; only where some were applied."),
    ] = UNSET


class ReceiptPipeline(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to the request on its way."""

    forwarded_from: Annotated[
        str | UnsetType,
        Meta(description="The retired model that was asked for; its successor served."),
    ] = UNSET
    sticky: Annotated[
        Literal[True] | UnsetType,
        Meta(
            description="The endpoint came first because it served the conversation last: the prompt is in its cache."
        ),
    ] = UNSET


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request went, how long it took, and what it cost by which prices."""

    generation_id: Annotated[Id, Meta(description="The id of the request's record, gen-….")]
    requested_model: Annotated[str, Meta(description="The model as the request named it.")]
    model: Annotated[str, Meta(description="The model that served.")]
    vendor: Annotated[str, Meta(description="Whose model it is.")]
    routing: Annotated[ReceiptRouting, Meta(description="How the endpoint was chosen.")]
    timing_ms: Annotated[ReceiptTiming, Meta(description="How long it took.")]
    cost: Annotated[ReceiptCost, Meta(description="What was charged, by class.")]
    pricing: Annotated[ReceiptPricing, Meta(description="The prices that were applied.")]
    pipeline: Annotated[
        ReceiptPipeline | UnsetType,
        Meta(description="What was done to the request; only where something was."),
    ] = UNSET
