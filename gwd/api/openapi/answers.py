"""What the inference answers hold, dialect by dialect, for whoever reads or generates from the document.

The dialects write these bodies by hand, byte by byte where it counts; tests read real answers by these types. A vendor
may add fields of its own kind, which pass through.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.core.fields import Tokens, Usd
from gwd.core.receipt import Receipt


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request's cost comes from."""

    upstream_inference_cost: Annotated[
        Usd | None,
        Meta(description="The list price where the owner's own vendor key paid; else null."),
    ]
    upstream_inference_prompt_cost: Annotated[
        Usd, Meta(description="What the prompt costs, in USD.")
    ]
    upstream_inference_completions_cost: Annotated[
        Usd, Meta(description="What the output costs, in USD.")
    ]


class _Cost(msgspec.Struct, frozen=True, kw_only=True):
    cost: Annotated[
        Usd | UnsetType,
        Meta(description="What was charged, in USD. With `usage: {include: true}` only."),
    ] = UNSET
    cost_details: Annotated[
        Costs | UnsetType, Meta(description="Where the cost comes from. As `cost`.")
    ] = UNSET
    is_byok: Annotated[
        bool | UnsetType,
        Meta(description="Whether the owner's own vendor key was used. As `cost`."),
    ] = UNSET


class PromptTokens(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the prompt's tokens."""

    cached_tokens: Annotated[Tokens, Meta(description="Read from a cache.")]
    cache_write_tokens: Annotated[Tokens, Meta(description="Written into a cache.")]


class OutputTokens(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the output's tokens."""

    reasoning_tokens: Annotated[Tokens, Meta(description="Spent on reasoning.")]


class ChatUsage(_Cost, frozen=True, kw_only=True):
    """What was used; totals hold their details."""

    prompt_tokens: Annotated[Tokens, Meta(description="Tokens of the prompt.")]
    completion_tokens: Annotated[Tokens, Meta(description="Tokens of the output.")]
    total_tokens: Annotated[Tokens, Meta(description="Both.")]
    prompt_tokens_details: Annotated[PromptTokens, Meta(description="Parts of the prompt.")]
    completion_tokens_details: Annotated[OutputTokens, Meta(description="Parts of the output.")]


ShownReceipt = Annotated[
    Receipt | UnsetType,
    Meta(description="How the request was routed and priced. With `x-gw-metadata: enabled` only."),
]


class _Chat(msgspec.Struct, frozen=True, kw_only=True):
    id: Annotated[str, Meta(description="The generation: gen-…")]
    created: Annotated[int, Meta(description="When, in seconds since 1970.")]
    model: Annotated[str, Meta(description="The model that served.")]
    provider: Annotated[str, Meta(description="The vendor that served.")]
    system_fingerprint: Annotated[
        Any, Meta(description="The vendor's word for its setup; null where it says none.")
    ] = None
    service_tier: Annotated[
        Any, Meta(description="The tier that served, where the vendor says it.")
    ] = UNSET
    gateway_metadata: ShownReceipt = UNSET


class CalledFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a function."""

    name: Annotated[str, Meta(description="The function.")]
    arguments: Annotated[str, Meta(description="Its arguments, JSON in a text.")]


class CalledTool(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool that takes free text."""

    name: Annotated[str, Meta(description="The tool.")]
    input: Annotated[str, Meta(description="Its input.")]


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that the model asks for."""

    id: Annotated[str, Meta(description="The call; its result names it.")]
    type: Annotated[Literal["function", "custom"], Meta(description="The kind of tool.")]
    function: Annotated[CalledFunction | UnsetType, Meta(description="The call of a function.")] = (
        UNSET
    )
    custom: Annotated[
        CalledTool | UnsetType, Meta(description="The call of a tool with free text.")
    ] = UNSET
    extra_content: Annotated[
        Any, Meta(description="What the vendor wants to see again with the call's result.")
    ] = UNSET


class AssistantMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What the model said."""

    role: Annotated[Literal["assistant"], Meta(description="Always `assistant`.")]
    content: Annotated[str | None, Meta(description="The text; null beside calls without text.")]
    refusal: Annotated[
        str | None, Meta(description="Why the model refused; null where it did not.")
    ]
    reasoning: Annotated[str | UnsetType, Meta(description="The reasoning that is shown.")] = UNSET
    reasoning_content: Annotated[
        str | UnsetType, Meta(description="The same under the name that some clients read.")
    ] = UNSET
    reasoning_details: Annotated[
        list[dict[str, Any]] | UnsetType,
        Meta(description="The reasoning with its signatures; send it back in the next turn."),
    ] = UNSET
    tool_calls: Annotated[list[ToolCall] | UnsetType, Meta(description="Calls, in order.")] = UNSET
    annotations: Annotated[
        list[Any] | UnsetType, Meta(description="Sources that the vendor names.")
    ] = UNSET


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The answer; there is always one."""

    index: Annotated[int, Meta(description="Always 0.")]
    message: Annotated[AssistantMessage, Meta(description="What the model said.")]
    finish_reason: Annotated[
        Literal["stop", "length", "tool_calls", "content_filter", "error"] | None,
        Meta(description="Why it ended."),
    ]
    native_finish_reason: Annotated[str | None, Meta(description="The vendor's own word for it.")]
    logprobs: Annotated[dict[str, Any] | None, Meta(description="Log probabilities, if asked for.")]
    error: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="code, type and message, where the vendor ended with an error."),
    ] = UNSET


class ChatCompletion(_Chat, frozen=True, kw_only=True):
    """A whole answer of chat completions."""

    object: Annotated[Literal["chat.completion"], Meta(description="Always this.")]
    choices: Annotated[list[Choice], Meta(description="One answer.")]
    usage: Annotated[ChatUsage, Meta(description="What was used.")]


class ChatChunk(_Chat, frozen=True, kw_only=True):
    """One event of a streamed answer of chat completions. The last has no choices but `usage`; then comes [DONE]."""

    object: Annotated[Literal["chat.completion.chunk"], Meta(description="Always this.")]
    choices: Annotated[
        list[dict[str, Any]],
        Meta(description="One choice with `delta`, or none in the last chunk."),
    ]
    usage: Annotated[ChatUsage | UnsetType, Meta(description="In the last chunk.")] = UNSET
    error: Annotated[
        dict[str, Any] | UnsetType, Meta(description="In a stream that breaks off.")
    ] = UNSET


class TextChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The answer; there is always one."""

    index: Annotated[int, Meta(description="Always 0.")]
    text: Annotated[str, Meta(description="The text.")]
    finish_reason: Annotated[
        Literal["stop", "length", "content_filter", "error"] | None,
        Meta(description="Why it ended; null while it goes on."),
    ]
    native_finish_reason: Annotated[
        str | UnsetType | None, Meta(description="The vendor's own word for it.")
    ] = UNSET
    logprobs: Annotated[None, Meta(description="Always null.")] = None
    reasoning: Annotated[str | UnsetType, Meta(description="The reasoning that is shown.")] = UNSET
    error: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="code, type and message, where the vendor ended with an error."),
    ] = UNSET


class TextCompletion(_Chat, frozen=True, kw_only=True):
    """A whole answer of completions, or one event of a streamed one, whose last has `usage` and no choices."""

    object: Annotated[Literal["text_completion"], Meta(description="Always this.")]
    choices: Annotated[list[TextChoice], Meta(description="One answer, or a piece of it.")]
    usage: Annotated[
        ChatUsage | UnsetType, Meta(description="What was used; streamed: in the last event.")
    ] = UNSET
    error: Annotated[
        dict[str, Any] | UnsetType, Meta(description="In a stream that breaks off.")
    ] = UNSET


class CacheCreation(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens written into a cache, by how long it keeps them."""

    ephemeral_5m_input_tokens: Annotated[Tokens, Meta(description="For five minutes.")]
    ephemeral_1h_input_tokens: Annotated[Tokens, Meta(description="For an hour.")]


class ThinkingTokens(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the output's tokens."""

    thinking_tokens: Annotated[Tokens, Meta(description="Spent on thinking.")]


class MessagesUsage(_Cost, frozen=True, kw_only=True):
    """What was used; the three counts of input add up to all of it."""

    input_tokens: Annotated[Tokens, Meta(description="Input that no cache had to do with.")]
    cache_creation_input_tokens: Annotated[Tokens, Meta(description="Written into a cache.")]
    cache_read_input_tokens: Annotated[Tokens, Meta(description="Read from a cache.")]
    cache_creation: Annotated[
        CacheCreation, Meta(description="What was written, by how long it is kept.")
    ]
    output_tokens: Annotated[Tokens, Meta(description="Tokens of the output.")]
    output_tokens_details: Annotated[ThinkingTokens, Meta(description="Parts of the output.")]
    server_tool_use: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET
    service_tier: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET
    inference_geo: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET
    speed: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET


class MessageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer of messages."""

    id: Annotated[str, Meta(description="The message: msg_…, with the suffix of its gen- id.")]
    type: Annotated[Literal["message"], Meta(description="Always `message`.")]
    role: Annotated[Literal["assistant"], Meta(description="Always `assistant`.")]
    model: Annotated[str, Meta(description="The model that served.")]
    provider: Annotated[str, Meta(description="The vendor that served.")]
    content: Annotated[
        list[dict[str, Any]],
        Meta(description="Blocks by `type`: text, thinking, tool_use, and the vendor's own."),
    ]
    stop_reason: Annotated[
        Literal[
            "end_turn",
            "max_tokens",
            "stop_sequence",
            "tool_use",
            "refusal",
            "pause_turn",
            "model_context_window_exceeded",
        ],
        Meta(description="Why it ended."),
    ]
    stop_sequence: Annotated[
        str | None, Meta(description="The sequence that ended it, if one did.")
    ]
    stop_details: Annotated[
        dict[str, Any] | UnsetType, Meta(description="More about a refusal.")
    ] = UNSET
    usage: Annotated[MessagesUsage, Meta(description="What was used.")]
    container: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET
    context_management: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET
    gateway_metadata: ShownReceipt = UNSET


class MessagesEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The data of one event of a streamed answer of messages; its fields follow from its type."""

    type: Annotated[
        Literal[
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
            "ping",
            "error",
        ],
        Meta(description="The event, as its `event:` line says it, too."),
    ]
    index: Annotated[int | UnsetType, Meta(description="Of an event of a block: which.")] = UNSET
    message: Annotated[
        dict[str, Any] | UnsetType, Meta(description="Of message_start: the message as yet.")
    ] = UNSET
    content_block: Annotated[
        dict[str, Any] | UnsetType, Meta(description="Of content_block_start: the block as yet.")
    ] = UNSET
    delta: Annotated[dict[str, Any] | UnsetType, Meta(description="What is added.")] = UNSET
    usage: Annotated[
        MessagesUsage | UnsetType, Meta(description="Of message_delta: what was used.")
    ] = UNSET
    context_management: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET
    gateway_metadata: ShownReceipt = UNSET
    error: Annotated[dict[str, Any] | UnsetType, Meta(description="Of error: what happened.")] = (
        UNSET
    )
    request_id: Annotated[str | UnsetType, Meta(description="Of error: the request.")] = UNSET


class CountedTokens(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of counting tokens."""

    input_tokens: Annotated[Tokens, Meta(description="An estimate of the prompt's tokens.")]


class ResponseEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The data of one event of a streamed answer of responses; its other fields follow from its type."""

    type: Annotated[
        str,
        Meta(
            description="response.created, response.in_progress, response.output_item.added, …, and one of"
            " response.completed, response.incomplete and response.failed at the end."
        ),
    ]
    sequence_number: Annotated[int, Meta(ge=0, description="Counts from 0 without a gap.")]
    response: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="Of the first events and the last: the response as it stands."),
    ] = UNSET


class EmbeddingUsage(_Cost, frozen=True, kw_only=True):
    """What was used."""

    prompt_tokens: Annotated[Tokens, Meta(description="Tokens of the input.")]
    total_tokens: Annotated[Tokens, Meta(description="The same.")]


class Embedding(msgspec.Struct, frozen=True, kw_only=True):
    """The vector of one input."""

    object: Annotated[Literal["embedding"], Meta(description="Always `embedding`.")]
    index: Annotated[int, Meta(ge=0, description="Which input it is of.")]
    embedding: Annotated[
        list[float] | str,
        Meta(description="Numbers, or with `base64` little-endian float32 in base64."),
    ]


class Embeddings(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of embeddings."""

    object: Annotated[Literal["list"], Meta(description="Always `list`.")]
    id: Annotated[str, Meta(description="The generation: gen-…")]
    model: Annotated[str, Meta(description="The model that served.")]
    provider: Annotated[str, Meta(description="The vendor that served.")]
    data: Annotated[list[Embedding], Meta(description="A vector for each input, in order.")]
    usage: Annotated[EmbeddingUsage, Meta(description="What was used.")]
    gateway_metadata: ShownReceipt = UNSET


class GeminiUsage(
    _Cost,
    frozen=True,
    kw_only=True,
    rename={
        "prompt": "promptTokenCount",
        "candidates": "candidatesTokenCount",
        "total": "totalTokenCount",
        "cached": "cachedContentTokenCount",
        "thoughts": "thoughtsTokenCount",
    },
):
    """What was used; the prompt holds what was cached, thoughts stand beside the answer."""

    prompt: Annotated[Tokens, Meta(description="Tokens of the prompt.")]
    candidates: Annotated[Tokens, Meta(description="Tokens of the answer without its thoughts.")]
    total: Annotated[Tokens, Meta(description="All of them.")]
    cached: Annotated[
        Tokens | UnsetType, Meta(description="Read from a cache, where any were.")
    ] = UNSET
    thoughts: Annotated[
        Tokens | UnsetType, Meta(description="Spent on thoughts, where any were.")
    ] = UNSET


class GeminiContent(msgspec.Struct, frozen=True, kw_only=True):
    """What the model said."""

    parts: Annotated[
        list[dict[str, Any]],
        Meta(description="Parts: `text`, `functionCall`; with `thought: true` a thought."),
    ]
    role: Annotated[Literal["model"], Meta(description="Always `model`.")]


class GeminiCandidate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer; there is never more than one."""

    content: Annotated[GeminiContent, Meta(description="What the model said.")]
    index: Annotated[Literal[0], Meta(description="Always 0.")]
    finish_reason: Annotated[
        str | UnsetType,
        Meta(description="Why it ended, in the last chunk of a stream: STOP, MAX_TOKENS, SAFETY …"),
    ] = UNSET
    finish_message: Annotated[
        str | UnsetType, Meta(description="The vendor's words on an answer that it filtered.")
    ] = UNSET
    logprobs_result: Annotated[
        dict[str, Any] | UnsetType, Meta(description="Token probabilities, if asked for.")
    ] = UNSET
    grounding_metadata: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET
    citation_metadata: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET
    url_context_metadata: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET
    safety_ratings: Annotated[Any, Meta(description="As the vendor says it.")] = UNSET


class _Gemini(msgspec.Struct, frozen=True, kw_only=True, rename={"model": "modelVersion"}):
    model: Annotated[str, Meta(description="The model that served.")]
    provider: Annotated[str, Meta(description="The vendor that served.")]
    gateway_metadata: ShownReceipt = UNSET


class GeminiAnswer(
    _Gemini,
    frozen=True,
    kw_only=True,
    rename={
        "model": "modelVersion",
        "response_id": "responseId",
        "usage": "usageMetadata",
        "prompt_feedback": "promptFeedback",
    },
):
    """A whole answer of generateContent, or one chunk of a streamed one, whose last has `usageMetadata`."""

    candidates: Annotated[
        list[GeminiCandidate] | UnsetType,
        Meta(description="One answer, or a piece of it; none where the prompt was blocked."),
    ] = UNSET
    response_id: Annotated[str | UnsetType, Meta(description="The generation: gen-…")] = UNSET
    usage: Annotated[
        GeminiUsage | UnsetType, Meta(description="What was used; streamed: in the last chunk.")
    ] = UNSET
    prompt_feedback: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="Why a prompt was blocked, as the vendor says it."),
    ] = UNSET


class GeminiCounted(msgspec.Struct, frozen=True, kw_only=True, rename={"total": "totalTokens"}):
    """The answer of countTokens."""

    total: Annotated[Tokens, Meta(description="An estimate of the prompt's tokens.")]


class GeminiVector(msgspec.Struct, frozen=True, kw_only=True):
    """The vector of one text."""

    values: Annotated[list[float], Meta(description="Its numbers.")]


class GeminiEmbeddingUsage(
    _Cost,
    frozen=True,
    kw_only=True,
    rename={"prompt": "promptTokenCount", "total": "totalTokenCount"},
):
    """What was used."""

    prompt: Annotated[Tokens, Meta(description="Tokens of the texts.")]
    total: Annotated[Tokens, Meta(description="The same.")]


class GeminiEmbedding(
    _Gemini, frozen=True, kw_only=True, rename={"model": "modelVersion", "usage": "usageMetadata"}
):
    """The answer of embedContent."""

    embedding: Annotated[GeminiVector, Meta(description="The vector.")]
    usage: Annotated[GeminiEmbeddingUsage, Meta(description="What was used.")]


class GeminiEmbeddings(
    _Gemini, frozen=True, kw_only=True, rename={"model": "modelVersion", "usage": "usageMetadata"}
):
    """The answer of batchEmbedContents."""

    embeddings: Annotated[list[GeminiVector], Meta(description="A vector for each text, in order.")]
    usage: Annotated[GeminiEmbeddingUsage, Meta(description="What was used.")]
