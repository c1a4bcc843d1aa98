"""What the public reading of models answers: one record that satisfies the clients of every dialect."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.catalog.fields import Modality
from gwd.catalog.lifecycle import State
from gwd.catalog.prices import ListedPricing
from gwd.core.fields import Count, Moment, Slug, Tokens, UnixSeconds
from gwd.core.request import Effort

NoAnswer = Annotated[
    None, Meta(description="Always null: the gateway does not say, and some clients require it.")
]
Inputs = Annotated[tuple[Modality, ...], Meta(description="What the model reads.")]
Parameters = Annotated[list[str], Meta(description="The request parameters that are taken.")]


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """What goes in and what comes out."""

    modality: Annotated[str, Meta(description="Both in one text, such as `text+image->text`.")]
    input_modalities: Inputs
    output_modalities: Annotated[
        tuple[Modality, ...], Meta(description="What the model answers with.")
    ]
    tokenizer: Annotated[Literal["Other"], Meta(description="Not told apart here.")]
    instruct_type: NoAnswer


class TopProvider(msgspec.Struct, frozen=True, kw_only=True):
    """The cheapest endpoint of the model."""

    context_length: Annotated[
        Tokens, Meta(description="How many tokens prompt and answer may have together.")
    ]
    max_completion_tokens: Annotated[
        Tokens, Meta(description="How many tokens an answer may have; 0 for embeddings.")
    ]
    is_moderated: Annotated[
        bool, Meta(description="Whether its vendor moderates requests and answers.")
    ]


class ModelLinks(msgspec.Struct, frozen=True, kw_only=True):
    """Where more of the model is."""

    details: Annotated[str, Meta(description="The address of the list of its endpoints.")]


class ModelReasoning(msgspec.Struct, frozen=True, kw_only=True):
    """How the model reasons."""

    mandatory: Annotated[bool, Meta(description="Whether it always does.")]
    supported_efforts: Annotated[
        list[Effort], Meta(description="The efforts that may be asked for, least first.")
    ]
    default_effort: NoAnswer
    supports_max_tokens: Annotated[
        bool, Meta(description="Whether a number of reasoning tokens may be asked for.")
    ]


class AliasTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The model that an alias leads to now."""

    slug: Annotated[Slug, Meta(description="The model's id, vendor/model.")]
    name: Annotated[str, Meta(description="The model's name.")]


class PublicModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be asked for, or an alias of one."""

    id: Annotated[
        Slug, Meta(description="What a request names: the id, vendor/model, or an alias.")
    ]
    object: Annotated[Literal["model"], Meta(description="The kind of the record.")]
    type: Annotated[Literal["model"], Meta(description="The same, for clients of messages.")]
    name: Annotated[str, Meta(description="The name that is shown.")]
    display_name: Annotated[str, Meta(description="The same, for clients of messages.")]
    canonical_slug: Annotated[
        Slug, Meta(description="The model's id, also in the row of an alias.")
    ]
    description: Annotated[str, Meta(description="What it is good for; empty without a text.")]
    created: Annotated[
        UnixSeconds,
        Meta(description="When its vendor released it, else when it came into the catalog."),
    ]
    created_at: Annotated[Moment, Meta(description="The same as a time.")]
    owned_by: Annotated[str, Meta(description="Whose model it is.")]
    context_length: Annotated[
        Tokens, Meta(description="How many tokens prompt and answer may have together.")
    ]
    max_input_tokens: Annotated[Tokens, Meta(description="The same, for clients of messages.")]
    max_tokens: Annotated[
        Tokens, Meta(description="How many tokens an answer may have; 0 for embeddings.")
    ]
    architecture: Annotated[Architecture, Meta(description="What goes in and what comes out.")]
    pricing: Annotated[
        ListedPricing,
        Meta(description="The prices of its cheapest endpoint; empty while it has none."),
    ]
    top_provider: Annotated[TopProvider, Meta(description="Its cheapest endpoint.")]
    supported_parameters: Parameters
    endpoints_available: Annotated[
        Count, Meta(description="How many endpoints a request could be sent to now.")
    ]
    per_request_limits: NoAnswer
    default_parameters: NoAnswer
    supported_voices: NoAnswer
    links: Annotated[ModelLinks, Meta(description="Where more of it is.")]
    expiration_date: Annotated[
        str | None,
        Meta(
            description="The day on which it is retired; null for never.",
            extra_json_schema={"format": "date"},
        ),
    ]
    lifecycle: Annotated[State, Meta(description="Where it stands in its life.")]
    deprecated_at: Annotated[
        Moment | None, Meta(description="From when on it is deprecated; null for never.")
    ]
    retired_at: Annotated[
        Moment | None, Meta(description="From when on it is retired; null for never.")
    ]
    successor: Annotated[
        Slug | None, Meta(description="The model that takes its requests once it is retired.")
    ]
    latest_alias: Annotated[
        Slug | None,
        Meta(
            description="`~vendor/family-latest`, where it is the newest of its family; else null."
        ),
    ]
    reasoning: Annotated[
        ModelReasoning | UnsetType, Meta(description="How it reasons; only for models that do.")
    ] = UNSET
    alias_target: Annotated[
        AliasTarget | UnsetType, Meta(description="Where an alias leads; only in an alias's row.")
    ] = UNSET


class ReasoningLevel(msgspec.Struct, frozen=True, kw_only=True):
    """An effort that may be asked for, as Codex reads it."""

    effort: Annotated[Effort, Meta(description="What the request says.")]
    description: Annotated[str, Meta(description="What people are shown.")]


class TruncationPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How Codex shortens what its tools put out."""

    mode: Annotated[Literal["tokens"], Meta(description="What is counted.")]
    limit: Annotated[Tokens, Meta(description="How many may stay.")]


class CodexModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model as Codex reads it."""

    slug: Annotated[Slug, Meta(description="What a request names.")]
    display_name: Annotated[str, Meta(description="The name that is shown.")]
    supported_reasoning_levels: Annotated[
        list[ReasoningLevel], Meta(description="The efforts that may be asked for, least first.")
    ]
    shell_type: Annotated[
        Literal["shell_command"], Meta(description="The tool by which Codex runs commands.")
    ]
    visibility: Annotated[Literal["list"], Meta(description="That it is shown for choosing.")]
    supported_in_api: Annotated[Literal[True], Meta(description="That it can be asked for.")]
    priority: Annotated[Count, Meta(description="Its place in the list, from 0.")]
    truncation_policy: Annotated[
        TruncationPolicy, Meta(description="How what tools put out is shortened.")
    ]
    experimental_supported_tools: Annotated[
        tuple[str, ...], Meta(description="Always empty.", max_length=0)
    ]
    support_verbosity: Annotated[bool, Meta(description="Whether it takes a verbosity.")]
    base_instructions: Annotated[
        Literal[""], Meta(description="Always empty: Codex brings its own.")
    ]
    context_window: Annotated[
        Tokens, Meta(description="How many tokens prompt and answer may have together.")
    ]
    input_modalities: Annotated[
        tuple[Modality, ...], Meta(description="What it reads; files are left out.")
    ]


class PageLinks(msgspec.Struct, frozen=True, kw_only=True):
    """Where the list goes on."""

    next: NoAnswer


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """The models that can be asked for. Retired ones are left out; aliases are rows of their own."""

    object: Annotated[Literal["list"], Meta(description="The kind of the answer.")]
    data: list[PublicModel]
    has_more: Annotated[bool, Meta(description="Whether the list goes on behind this page.")]
    first_id: Annotated[
        Slug | None, Meta(description="The first id of this page; null when it is empty.")
    ]
    last_id: Annotated[
        Slug | None, Meta(description="The last id of this page; null when it is empty.")
    ]
    total_count: Annotated[Count, Meta(description="How many there are in all, on every page.")]
    links: Annotated[PageLinks, Meta(description="Where the list goes on; go on by `offset`.")]
    models: Annotated[
        list[CodexModel] | UnsetType,
        Meta(
            description="The same page as Codex reads it; only where it asks with client_version."
        ),
    ] = UNSET


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One model: the record under `data`, and beside it the fields that SDKs read at the top."""

    data: PublicModel
    id: Annotated[Slug, Meta(description="As in the record.")]
    object: Annotated[Literal["model"], Meta(description="As in the record.")]
    created: Annotated[UnixSeconds, Meta(description="As in the record.")]
    owned_by: Annotated[str, Meta(description="As in the record.")]
    type: Annotated[Literal["model"], Meta(description="As in the record.")]
    display_name: Annotated[str, Meta(description="As in the record.")]
    created_at: Annotated[Moment, Meta(description="As in the record.")]


class PublicEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that serves the model."""

    name: Annotated[str, Meta(description="The provider and the model in one text.")]
    provider_name: Annotated[str, Meta(description="The provider's name.")]
    tag: Annotated[Slug, Meta(description="What requests may call the endpoint.")]
    context_length: Annotated[
        Tokens, Meta(description="How many tokens prompt and answer may have together.")
    ]
    max_completion_tokens: Annotated[
        Tokens, Meta(description="How many tokens an answer may have; 0 for embeddings.")
    ]
    pricing: Annotated[ListedPricing, Meta(description="Its prices; empty while it has none.")]
    quantization: NoAnswer
    status: Annotated[
        Literal[0, -1], Meta(description="0 where requests go to it, -1 where none do.")
    ]
    uptime_last_30m: NoAnswer
    supported_parameters: Parameters
    is_healthy: Annotated[
        bool, Meta(description="Whether its last calls went well; else it is tried last.")
    ]
    trains_on_inputs: Annotated[
        bool,
        Meta(
            description="Whether it may train on what it is sent; a data policy can leave it out."
        ),
    ]


class ModelEndpoints(msgspec.Struct, frozen=True, kw_only=True):
    """A model with everything that serves it."""

    id: Annotated[Slug, Meta(description="The model's id, vendor/model.")]
    name: Annotated[str, Meta(description="The name that is shown.")]
    created: Annotated[
        UnixSeconds,
        Meta(description="When its vendor released it, else when it came into the catalog."),
    ]
    description: Annotated[str, Meta(description="What it is good for; empty without a text.")]
    architecture: Annotated[Architecture, Meta(description="What goes in and what comes out.")]
    endpoints: Annotated[list[PublicEndpoint], Meta(description="Who serves it, at which price.")]
