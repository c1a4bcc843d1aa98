"""The wire of the responses dialect: what a client sends, and the objects it gets back."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gwd.core.request import Effort
from gwd.dialects.extensions import (
    ModelName,
    ModelNames,
    Preferred,
    SessionId,
    Shown,
    Streamed,
    User,
)


class ReasoningWire(msgspec.Struct, frozen=True):
    """`summary`, `context`, `mode` … are kept as extras; `enabled`, `max_tokens` and `exclude` are ours."""

    effort: Annotated[Effort | None, Meta(description="How much the model reasons.")] = None
    enabled: Annotated[bool | None, Meta(description="Whether it reasons.")] = None
    max_tokens: Annotated[int | None, Meta(description="How many tokens it may spend on it.")] = (
        None
    )
    exclude: Annotated[
        bool | None, Meta(description="True leaves reasoning out of the answer.")
    ] = None


class FormatWire(msgspec.Struct, frozen=True):
    type: Annotated[
        Literal["text", "json_object", "json_schema"], Meta(description="The form of the answer.")
    ]
    name: Annotated[str | None, Meta(description="The schema's name.")] = None
    description: Annotated[str | None, Meta(description="What the answer is for.")] = None
    schema: Annotated[
        dict[str, Any] | None, Meta(description="The JSON Schema that the answer must meet.")
    ] = None
    strict: Annotated[
        bool | None, Meta(description="Whether the schema is kept to the letter.")
    ] = None


class TextWire(msgspec.Struct, frozen=True):
    format: Annotated[FormatWire | None, Meta(description="The form of the answer.")] = None
    verbosity: Annotated[
        str | None, Meta(description="How long the answer shall be: `low`, `medium` or `high`.")
    ] = None


class BodyWire(msgspec.Struct, frozen=True):
    """The body of POST /responses; items, tools and the tool choice are read one by one, by their `type`."""

    model: ModelName | None = None
    models: ModelNames | None = None
    input: Annotated[
        str | list[dict[str, Any]] | None,
        Meta(description="A text, or the items of the conversation by their `type`."),
    ] = None
    instructions: Annotated[str | None, Meta(description="What the model is told first.")] = None
    tools: Annotated[
        list[dict[str, Any]] | None, Meta(description="The tools that the model may call.")
    ] = None
    tool_choice: Annotated[
        str | dict[str, Any] | None,
        Meta(description="`auto`, `none`, `required`, or the tool to call."),
    ] = None
    parallel_tool_calls: Annotated[
        bool | None, Meta(description="False asks for one call at a time.")
    ] = None
    max_output_tokens: Annotated[int | None, Meta(description="The most tokens of the answer.")] = (
        None
    )
    temperature: Annotated[float | None, Meta(description="How freely words are chosen.")] = None
    top_p: Annotated[
        float | None, Meta(description="From which share of likely words they are chosen.")
    ] = None
    reasoning: Annotated[
        ReasoningWire | None, Meta(description="Whether and how much the model reasons.")
    ] = None
    text: Annotated[TextWire | None, Meta(description="The form and length of the answer.")] = None
    include: Annotated[
        list[str] | None,
        Meta(
            description="What the answer holds, too: `message.output_text.logprobs`, `reasoning.encrypted_content`."
        ),
    ] = None
    top_logprobs: Annotated[
        Annotated[int, Meta(ge=0, le=20)] | None,
        Meta(description="For how many other words log probabilities are given, too."),
    ] = None
    stream: Streamed | None = None
    store: Annotated[bool | None, Meta(description="Ignored: nothing is stored.")] = None
    background: Annotated[bool | None, Meta(description="Must not be true.")] = None
    previous_response_id: Annotated[
        Any, Meta(description="Not taken: send the items of earlier turns.")
    ] = None
    conversation: Annotated[
        Any, Meta(description="Not taken: send the items of earlier turns.")
    ] = None
    prompt: Annotated[Any, Meta(description="Not taken.")] = None
    metadata: Annotated[
        dict[str, str] | None,
        Meta(
            description="Up to 16 pairs of your own, which the answer repeats. Its `tags`, with commas between, are the"
            " request's tags, for reports and budgets."
        ),
    ] = None
    user: User | None = None
    session_id: SessionId | None = None
    provider: Preferred = None
    usage: Shown = None


class MessageItem(msgspec.Struct, frozen=True):
    """A message with or without `type` (an "easy" one); `phase` tells commentary from the final answer."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[dict[str, Any]]
    phase: str | None = None


class CallItem(msgspec.Struct, frozen=True):
    call_id: str
    name: str
    arguments: str = ""
    namespace: str | None = None


class CustomCallItem(msgspec.Struct, frozen=True):
    call_id: str
    name: str
    input: str = ""
    namespace: str | None = None


class OutputItem(msgspec.Struct, frozen=True):
    """function_call_output and custom_tool_call_output."""

    call_id: str
    output: str | list[dict[str, Any]]


class TextEntry(msgspec.Struct, frozen=True):
    text: str = ""


class ReasoningItem(msgspec.Struct, frozen=True):
    id: str | None = None
    summary: list[TextEntry] | None = None
    content: list[TextEntry] | None = None
    encrypted_content: str | None = None


class ReferenceItem(msgspec.Struct, frozen=True):
    id: str


class TextContent(msgspec.Struct, frozen=True):
    text: str


class RefusalContent(msgspec.Struct, frozen=True):
    refusal: str


class ImageContent(msgspec.Struct, frozen=True):
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


class FileContent(msgspec.Struct, frozen=True):
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None


class NamespaceTool(msgspec.Struct, frozen=True):
    name: str
    tools: list[dict[str, Any]]
    description: str | None = None


class AdditionalToolsItem(msgspec.Struct, frozen=True):
    """An input item that offers tools, as newer agents do in place of the body's own `tools`."""

    tools: list[dict[str, Any]] | None = None


class NamedChoice(msgspec.Struct, frozen=True):
    name: str
    namespace: str | None = None


class AllowedChoice(msgspec.Struct, frozen=True):
    mode: Literal["auto", "required"] = "auto"
    tools: list[dict[str, Any]] = []


class InputDetails(msgspec.Struct, frozen=True):
    cached_tokens: int
    cache_write_tokens: int


class OutputDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int


class UsageObject(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens in this dialect's convention: the details are inside their totals. Cost only on request."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int
    cost: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    cost_details: dict[str, msgspec.Raw | None] | msgspec.UnsetType = msgspec.UNSET
    is_byok: bool | msgspec.UnsetType = msgspec.UNSET


class ErrorObject(msgspec.Struct, frozen=True):
    code: str
    message: str


class IncompleteDetails(msgspec.Struct, frozen=True):
    reason: Literal["max_output_tokens", "content_filter"]


class ResponseObject(msgspec.Struct, frozen=True, kw_only=True):
    """The response object: every key is present in every one we emit, or strict clients drop the whole event."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    background: bool = False
    error: ErrorObject | None = None
    error_type: str | msgspec.UnsetType = msgspec.UNSET
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None
    max_output_tokens: int | None
    max_tool_calls: int | None = None
    metadata: dict[str, str] | None
    model: str
    provider: str
    output: list[msgspec.Raw]
    output_text: str
    parallel_tool_calls: bool
    previous_response_id: None = None
    prompt_cache_key: str | None
    reasoning: dict[str, Any]
    safety_identifier: str | None
    service_tier: str | None
    store: bool = False
    temperature: float | None
    top_p: float | None
    presence_penalty: None = None
    frequency_penalty: None = None
    text: dict[str, Any]
    tool_choice: msgspec.Raw
    tools: msgspec.Raw
    top_logprobs: int = 0
    truncation: Literal["disabled"] = "disabled"
    usage: UsageObject | None = None
    user: str | None
    gateway_metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
