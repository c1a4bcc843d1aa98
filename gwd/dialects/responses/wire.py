"""The wire of the responses dialect: what a client sends, and the objects it gets back (api.md section 3)."""

from typing import Annotated, Any, Literal

import msgspec

from gwd.core.request import Effort
from gwd.dialects.extensions import ProviderWire, UsageWire


class ReasoningWire(msgspec.Struct, frozen=True):
    """`summary`, `context`, `mode` … are kept as extras; `enabled`, `max_tokens` and `exclude` are ours."""

    effort: Effort | None = None
    enabled: bool | None = None
    max_tokens: int | None = None
    exclude: bool | None = None


class FormatWire(msgspec.Struct, frozen=True):
    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class TextWire(msgspec.Struct, frozen=True):
    format: FormatWire | None = None
    verbosity: str | None = None


class BodyWire(msgspec.Struct, frozen=True):
    """The body of POST /responses; items, tools and the tool choice are read one by one, by their `type`."""

    model: str | None = None
    models: list[str] | None = None
    input: str | list[dict[str, Any]] | None = None
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    reasoning: ReasoningWire | None = None
    text: TextWire | None = None
    include: list[str] | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    stream: bool | None = None
    store: bool | None = None
    background: bool | None = None
    previous_response_id: Any = None
    conversation: Any = None
    prompt: Any = None
    metadata: dict[str, str] | None = None
    user: str | None = None
    session_id: str | None = None
    provider: ProviderWire | None = None
    usage: UsageWire | None = None


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
