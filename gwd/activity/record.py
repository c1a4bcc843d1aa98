"""A generation as the API shows it: what became of one request, what it used and what it cost."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gwd.activity.row import GenerationRow, Status
from gwd.core.clock import iso
from gwd.core.events import FinishReason
from gwd.core.fields import Count, Id, Milliseconds, Moment, Slug, Tokens, Usd
from gwd.core.money import usd_json, usd_or_none
from gwd.core.receipt import AppliedFactor, Receipt, ReceiptCost
from gwd.core.request import DialectName

NotKnown = Annotated[
    None,
    Meta(description="Always null: the gateway does not know it, and some clients require it."),
]


class GenerationError(msgspec.Struct, frozen=True, kw_only=True):
    """The error that the client got."""

    status: Annotated[int | None, Meta(description="The HTTP status.")]
    code: Annotated[str, Meta(description="The error's code.")]
    message: Annotated[str | None, Meta(description="What was said.")]


class GenerationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what became of it, refusals included. Nothing of its text is kept."""

    id: Annotated[Id, Meta(description="The id of the generation, gen-….")]
    model: Annotated[
        Slug | None,
        Meta(description="The model that served, or was to; null where none was found."),
    ]
    provider_name: Annotated[
        str | None,
        Meta(
            description="The provider that served, or was to; null where it did not come to that."
        ),
    ]
    endpoint_id: Annotated[
        Id | None,
        Meta(
            description="The endpoint that served, or was to; null where it did not come to that."
        ),
    ]
    status: Annotated[
        Status,
        Meta(
            description="How it ended: `incomplete` broke off and was charged, `failed` was not charged, `cancelled`"
            " was left by its client, `refused` was never sent to a vendor."
        ),
    ]
    streamed: Annotated[bool, Meta(description="Whether the answer was streamed.")]
    finish_reason: Annotated[
        FinishReason | None, Meta(description="Why the output ended; null without output.")
    ]
    tokens_prompt: Annotated[
        Tokens, Meta(description="Prompt tokens, those read from and written to a cache included.")
    ]
    tokens_completion: Annotated[Tokens, Meta(description="Output tokens, reasoning included.")]
    native_tokens_cached: Annotated[
        Tokens, Meta(description="Prompt tokens that were read from the vendor's cache.")
    ]
    native_tokens_reasoning: Annotated[
        Tokens, Meta(description="Output tokens that were reasoning.")
    ]
    total_cost: Annotated[Usd, Meta(description="What was charged.")]
    cost: Annotated[ReceiptCost, Meta(description="The same by class, as receipts have it.")]
    cache_discount: Annotated[
        Usd | None,
        Meta(
            description="What the prompt would have cost more, at the list price, if the vendor had no cache;"
            " below 0 where more was written to it than read; null where it had no part."
        ),
    ]
    latency: Annotated[
        Milliseconds, Meta(description="From the request's arrival to the end of its answer.")
    ]
    generation_time: Annotated[
        Milliseconds, Meta(description="From the first token to the last; 0 without output.")
    ]
    created_at: Annotated[Moment, Meta(description="When the request arrived.")]
    settled_at: Annotated[
        Moment, Meta(description="When it ended and was charged; lists are in this order.")
    ]
    ttft: Annotated[
        Milliseconds | None,
        Meta(description="From arrival to the first token; null without output."),
    ]
    usage: Annotated[Usd, Meta(description="What was charged, as in `total_cost`.")]
    upstream_inference_cost: Annotated[
        Usd | None,
        Meta(description="The list price of what an own vendor key served; null for the others."),
    ]
    native_tokens_prompt: Annotated[Tokens, Meta(description="As `tokens_prompt`.")]
    native_tokens_completion: Annotated[Tokens, Meta(description="As `tokens_completion`.")]
    native_tokens_cache_write: Annotated[
        Tokens, Meta(description="Prompt tokens that were written to the vendor's cache.")
    ]
    native_finish_reason: Annotated[
        str | None, Meta(description="The vendor's own word for why the output ended.")
    ]
    is_byok: Annotated[bool, Meta(description="Whether it was served on an own vendor key.")]
    insured: Annotated[
        bool, Meta(description="Whether nothing was charged because there was no output.")
    ]
    dialect: Annotated[DialectName, Meta(description="The API shape in which it was asked.")]
    requested_model: Annotated[
        str | None, Meta(description="The model as the request named it; null if it named none.")
    ]
    vendor: Annotated[str | None, Meta(description="Whose model it is; null where none was found.")]
    key_id: Annotated[Id, Meta(description="The key that the request was made with.")]
    key_name: Annotated[
        str | None, Meta(description="That key's name now; null once it is deleted.")
    ]
    workspace_id: Annotated[
        Id | None, Meta(description="The key's workspace; null for a key without one.")
    ]
    session_id: Annotated[
        str | None, Meta(description="The session as the client named it; null without.")
    ]
    external_user: Annotated[
        str | None, Meta(description="The user as the client named them; null without.")
    ]
    tags: Annotated[
        list[str],
        Meta(description="The request's tags, with those of its key and workspace among them."),
    ]
    http_referer: Annotated[
        str | None, Meta(description="The app's address as the client named it; null without.")
    ]
    origin: Annotated[str, Meta(description="As `http_referer`; empty without.")]
    title: Annotated[
        str | None, Meta(description="The app's name as the client named it; null without.")
    ]
    user_agent: Annotated[
        str | None, Meta(description="The program that asked; null if it did not say.")
    ]
    request_id: Annotated[
        Id | None, Meta(description="The `x-request-id` of the answer, for support.")
    ]
    upstream_id: Annotated[
        str | None, Meta(description="The vendor's own id of its answer; null without one.")
    ]
    error: Annotated[
        GenerationError | None,
        Meta(description="The error that the client got; null where all went well."),
    ]
    attempts: Annotated[Count, Meta(description="How many calls were made to vendors.")]
    usage_estimated: Annotated[
        bool,
        Meta(description="Whether the vendor gave no usage, so that the gateway estimated it."),
    ]
    prompt_above_bound: Annotated[
        bool,
        Meta(
            description="Whether the vendor counted more prompt tokens than the request can have."
        ),
    ]
    price_version: Annotated[
        Id | None,
        Meta(description="The version of the price that was applied; null for what was refused."),
    ]
    price_modifiers: Annotated[
        dict[str, AppliedFactor] | None,
        Meta(
            description="The factors of tiers, speeds and regions that were applied; null without."
        ),
    ]
    service_tier: Annotated[
        str | None, Meta(description="The vendor's word for the tier that served; null without.")
    ]
    web_searches: Annotated[Count, Meta(description="How many searches the vendor ran.")]
    web_search_cost: Annotated[Usd, Meta(description="What the searches cost, in `total_cost`.")]
    dropped_parameters: Annotated[
        list[str],
        Meta(
            description="Parameters that were not sent on, because the endpoint does not take them."
        ),
    ]
    dropped_tools: Annotated[
        list[str],
        Meta(
            description="Tools of the vendor's that were not sent on, because they have no price."
        ),
    ]
    forwarded_from: Annotated[
        str | None,
        Meta(description="The retired model that was asked for; null for most requests."),
    ]
    occurrences: Annotated[
        Count, Meta(description="How many refusals of one kind the record stands for; else 1.")
    ]
    cancelled: Annotated[bool, Meta(description="Whether the client left before the end.")]
    num_media_prompt: Annotated[
        int | None, Meta(description="How many images the request had; null without any.")
    ]
    data_region: Annotated[Literal["global"], Meta(description="Where it was served.")]
    gateway_metadata: Annotated[
        Receipt | None,
        Meta(
            description="The receipt, as clients get it; kept where it was asked for or an attempt failed, else null."
        ),
    ]
    api_type: NotKnown
    app_id: NotKnown
    moderation_latency: NotKnown
    native_tokens_completion_images: NotKnown
    num_fetches: NotKnown
    num_input_audio_prompt: NotKnown
    num_media_completion: NotKnown
    num_search_results: NotKnown
    preset_id: NotKnown
    provider_responses: NotKnown
    router: NotKnown
    web_search_engine: NotKnown


_NOT_KNOWN: Final = {
    field.name: None for field in msgspec.structs.fields(GenerationRecord) if field.type is NotKnown
}
_factors: Final = msgspec.json.Decoder(dict[str, AppliedFactor]).decode
_names: Final = msgspec.json.Decoder(list[str]).decode


def record(row: GenerationRow, key_name: str | None = None) -> GenerationRecord:
    prompt = (
        row.tokens_input
        + row.tokens_cache_read
        + row.tokens_cache_write_5m
        + row.tokens_cache_write_1h
    )
    completion = row.tokens_output + row.tokens_reasoning
    return GenerationRecord(
        id=row.id,
        model=row.model,
        provider_name=row.provider,
        endpoint_id=row.endpoint_id,
        status=row.status,
        streamed=row.streamed,
        finish_reason=row.finish_reason,
        tokens_prompt=prompt,
        tokens_completion=completion,
        native_tokens_cached=row.tokens_cache_read,
        native_tokens_reasoning=row.tokens_reasoning,
        total_cost=usd_json(row.cost_total_nano),
        cost=_cost(row),
        cache_discount=usd_or_none(row.cache_discount_nano),
        latency=row.latency_ms or 0,
        generation_time=row.generation_ms or 0,
        created_at=iso(row.created_at),
        settled_at=iso(row.settled_at),
        ttft=row.ttft_ms,
        usage=usd_json(row.cost_total_nano),
        upstream_inference_cost=usd_json(_list_price_nano(row)) if row.byok else None,
        native_tokens_prompt=prompt,
        native_tokens_completion=completion,
        native_tokens_cache_write=row.tokens_cache_write_5m + row.tokens_cache_write_1h,
        native_finish_reason=row.native_finish_reason,
        is_byok=row.byok,
        insured=row.insured,
        dialect=row.dialect,
        requested_model=row.requested_model,
        vendor=row.vendor,
        key_id=row.key_id,
        key_name=key_name,
        workspace_id=row.workspace_id,
        session_id=row.session_id,
        external_user=row.user_tag,
        tags=_names(row.tags) if row.tags else [],
        http_referer=row.referer,
        origin=row.referer or "",
        title=row.title,
        user_agent=row.user_agent,
        request_id=row.request_id,
        upstream_id=row.upstream_id,
        error=None
        if row.error_code is None
        else GenerationError(
            status=row.error_status, code=row.error_code, message=row.error_message
        ),
        attempts=row.attempts,
        usage_estimated=row.usage_estimated,
        prompt_above_bound=row.prompt_above_bound,
        price_version=row.price,
        price_modifiers=_factors(row.price_modifiers) if row.price_modifiers else None,
        service_tier=row.service_tier,
        web_searches=row.web_searches,
        web_search_cost=usd_json(row.cost_web_search_nano),
        dropped_parameters=_names(row.dropped_parameters) if row.dropped_parameters else [],
        dropped_tools=_names(row.dropped_tools) if row.dropped_tools else [],
        forwarded_from=row.forwarded_from,
        occurrences=row.occurrences,
        cancelled=row.status == "cancelled",
        num_media_prompt=row.images or None,
        data_region="global",
        gateway_metadata=_as_written(row.receipt),
        **_NOT_KNOWN,
    )


def _cost(row: GenerationRow) -> ReceiptCost:
    return ReceiptCost(
        currency="USD",
        prompt=usd_json(row.cost_prompt_nano),
        cache_read=usd_json(row.cost_cache_read_nano),
        cache_write=usd_json(row.cost_cache_write_nano),
        completion=usd_json(row.cost_completion_nano),
        reasoning=usd_json(row.cost_reasoning_nano),
        request_fee=usd_json(row.cost_request_fee_nano),
        web_search=usd_json(row.cost_web_search_nano),
        platform_fee=usd_json(row.cost_platform_fee_nano),
        total=usd_json(row.cost_total_nano),
        insured=row.insured,
        byok=row.byok,
    )


def _list_price_nano(row: GenerationRow) -> int:
    return (
        row.cost_prompt_nano
        + row.cost_cache_read_nano
        + row.cost_cache_write_nano
        + row.cost_completion_nano
        + row.cost_reasoning_nano
        + row.cost_request_fee_nano
        + row.cost_web_search_nano
    )


def _as_written(receipt: str | None) -> Any:
    """The text of a Receipt as it was kept, whatever version wrote it."""
    return msgspec.Raw(receipt.encode()) if receipt else None
