"""What the API shows of the catalog to those who manage it: providers, models, endpoints, and their dated prices."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gwd.catalog.fields import Modality
from gwd.catalog.price_body import PriceBody, Pricing, PricingTier
from gwd.catalog.prices import PriceVersion, in_force
from gwd.core.clock import iso
from gwd.core.fields import Id, Moment, Slug, Tokens
from gwd.core.vendor_format import Auth

ModelSlug = Annotated[Slug, Meta(description="The model's id, vendor/model.")]
Created = Annotated[Moment, Meta(description="When it was created.")]
Updated = Annotated[Moment, Meta(description="When it was last changed.")]
EndpointStatus = Literal["live", "disabled", "draining", "unpriced"]


class ProviderRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A named upstream service."""

    id: Annotated[Slug, Meta(description="The slug again.")]
    slug: Annotated[Slug, Meta(description="What endpoints, requests and credentials call it.")]
    object: Annotated[Literal["provider"], Meta(description="The kind of the record.")]
    name: Annotated[str, Meta(description="The name that is shown.")]
    adapter: Annotated[str, Meta(description="The vendor format that it speaks.")]
    base_url: Annotated[str, Meta(description="Its address, as the vendor's own SDK takes it.")]
    auth: Annotated[
        Auth,
        Meta(
            description="How it takes its key: as `authorization: Bearer`, in the header of that name, or not at all."
        ),
    ]
    headers: Annotated[
        dict[str, str],
        Meta(
            description="Headers that are sent with every call; `***` stands for their values where the caller may not"
            " change the catalog."
        ),
    ]
    flags: Annotated[
        dict[str, Any],
        Meta(description="What is peculiar about its endpoints: only what was set."),
    ]
    disabled: Annotated[bool, Meta(description="Whether nothing is sent to it.")]
    created_at: Created
    updated_at: Updated


class PriceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a price; versions are never changed or removed."""

    id: Annotated[
        Id, Meta(description="The id of the version, prc_…; records of requests name it.")
    ]
    effective_at: Annotated[Moment, Meta(description="From when on it holds.")]
    pricing: Annotated[
        Pricing | None,
        Meta(description="The prices; null for an endpoint that goes back to its model's."),
    ]
    pricing_tiers: Annotated[
        tuple[PricingTier, ...], Meta(description="Other prices for longer prompts.")
    ]


class EndpointOfModel(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint in short, in the record of its model."""

    id: Annotated[Id, Meta(description="The id of the endpoint, ep_….")]
    provider: Annotated[Slug, Meta(description="The provider that serves the model.")]
    tag: Annotated[Slug, Meta(description="What requests may call the endpoint.")]
    disabled: Annotated[bool, Meta(description="Whether nothing is sent to it.")]


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the catalog, whoever serves it."""

    id: ModelSlug
    object: Annotated[Literal["model"], Meta(description="The kind of the record.")]
    name: Annotated[str, Meta(description="The name that is shown.")]
    vendor: Annotated[str, Meta(description="Whose model it is.")]
    description: Annotated[
        str | None, Meta(description="What it is good for; null without a text.")
    ]
    family: Annotated[
        str | None,
        Meta(
            description="Its family: `~vendor/family-latest` leads to the newest model of one; null without."
        ),
    ]
    aliases: Annotated[list[str], Meta(description="Other names that lead to it.")]
    context_length: Annotated[
        Tokens, Meta(description="How many tokens prompt and answer may have together.")
    ]
    max_completion_tokens: Annotated[
        Tokens, Meta(description="How many tokens an answer may have; 0 for embeddings.")
    ]
    default_max_tokens: Annotated[
        Tokens | None,
        Meta(
            description="The cap that is sent where the vendor requires one and the request has none; null for"
            " max_completion_tokens."
        ),
    ]
    supported_parameters: Annotated[
        list[str], Meta(description="The request parameters that it takes.")
    ]
    input_modalities: Annotated[list[Modality], Meta(description="What it reads.")]
    output_modalities: Annotated[list[Modality], Meta(description="What it answers with.")]
    is_moderated: Annotated[
        bool, Meta(description="Whether its vendor moderates requests and answers.")
    ]
    pricing: Annotated[
        Pricing | None, Meta(description="The prices in force now; null while there are none.")
    ]
    pricing_tiers: Annotated[
        tuple[PricingTier, ...], Meta(description="The prices in force now for longer prompts.")
    ]
    prices: Annotated[
        list[PriceRecord],
        Meta(description="All versions of the price, oldest first, announced ones included."),
    ]
    released_at: Annotated[
        Moment | None, Meta(description="When its vendor released it; null if that was not said.")
    ]
    deprecated_at: Annotated[
        Moment | None, Meta(description="From when on it is deprecated; null for never.")
    ]
    retired_at: Annotated[
        Moment | None, Meta(description="From when on it is retired; null for never.")
    ]
    successor: Annotated[
        ModelSlug | None, Meta(description="The model that takes its requests once it is retired.")
    ]
    endpoints: Annotated[list[EndpointOfModel], Meta(description="The endpoints that serve it.")]
    created_at: Created
    updated_at: Updated


class EndpointRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A model as a provider serves it."""

    id: Annotated[Id, Meta(description="The id of the endpoint, ep_….")]
    object: Annotated[Literal["endpoint"], Meta(description="The kind of the record.")]
    model: ModelSlug
    provider: Annotated[Slug, Meta(description="The provider that serves the model.")]
    tag: Annotated[Slug, Meta(description="What requests may call it; one of a kind in its model.")]
    upstream_model: Annotated[str, Meta(description="What the provider calls the model.")]
    base_url: Annotated[
        str | None, Meta(description="An address of its own; null for the provider's.")
    ]
    pricing: Annotated[
        Pricing | None,
        Meta(description="Its own prices in force now; null where it has its model's."),
    ]
    pricing_tiers: Annotated[
        tuple[PricingTier, ...],
        Meta(description="Its own prices in force now for longer prompts."),
    ]
    prices: Annotated[
        list[PriceRecord],
        Meta(description="All versions of its own price, oldest first, announced ones included."),
    ]
    context_length: Annotated[
        Tokens | None, Meta(description="Its own context; null for the model's.")
    ]
    max_completion_tokens: Annotated[
        Tokens | None, Meta(description="Its own longest answer; null for the model's.")
    ]
    supported_parameters: Annotated[
        list[str] | None, Meta(description="The parameters that it takes; null for the model's.")
    ]
    flags: Annotated[
        dict[str, Any],
        Meta(
            description="What is peculiar about it, before what is about its provider: only what was set."
        ),
    ]
    weight: Annotated[
        float, Meta(gt=0, description="Its share of the requests beside endpoints that are alike.")
    ]
    disabled: Annotated[bool, Meta(description="Whether nothing is sent to it.")]
    status: Annotated[
        EndpointStatus,
        Meta(
            description="Whether requests go to it: `draining` takes no new ones, `unpriced` has no complete price."
        ),
    ]
    created_at: Created
    updated_at: Updated


class DatedPrices(msgspec.Struct, frozen=True, kw_only=True):
    """The price fields of a record: what is in force, and all versions with the announced ones."""

    pricing: Pricing | None
    pricing_tiers: tuple[PricingTier, ...]
    prices: list[PriceRecord]


def dated_prices(dated: Sequence[PriceVersion], now_us: int) -> DatedPrices:
    now = in_force(dated, now_us)
    pricing, tiers = _shown(now.body if now else None)
    return DatedPrices(
        pricing=pricing, pricing_tiers=tiers, prices=[_price_record(version) for version in dated]
    )


def _price_record(version: PriceVersion) -> PriceRecord:
    pricing, tiers = _shown(version.body)
    return PriceRecord(
        id=version.id,
        effective_at=iso(version.effective_at_us),
        pricing=pricing,
        pricing_tiers=tiers,
    )


def _shown(body: PriceBody | None) -> tuple[Pricing | None, tuple[PricingTier, ...]]:
    """An endpoint whose price is its model's has none of its own to show."""
    return (None, ()) if body is None or body.inherits else (body.pricing, body.tiers)
