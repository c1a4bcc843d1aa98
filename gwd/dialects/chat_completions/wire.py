"""What a chat completions client sends, as typed shapes; unknown fields are found by comparing with the raw body."""

from typing import Annotated, Any, Final, Literal

import msgspec

from gwd.core.request import Effort
from gwd.dialects.extensions import ProviderWire, UsageWire

MAX_CAP: Final = (
    2**53
)  # clamped to what the model gives (api.md 10); beyond it is no number of tokens
Cap = Annotated[int, msgspec.Meta(ge=1, le=MAX_CAP)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class CacheControlWire(msgspec.Struct, frozen=True):
    type: Literal["ephemeral"] = "ephemeral"
    ttl: Literal["5m", "1h"] | None = None


class ImageUrlWire(msgspec.Struct, frozen=True):
    url: str
    detail: str | None = None


class FileWire(msgspec.Struct, frozen=True):
    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None


class PartWire(msgspec.Struct, frozen=True):
    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrlWire | str | None = None
    file: FileWire | None = None
    cache_control: CacheControlWire | None = None


class CalledFunctionWire(msgspec.Struct, frozen=True):
    name: Name
    arguments: str | dict[str, Any] | None = None


class CalledCustomWire(msgspec.Struct, frozen=True):
    name: Name
    input: str = ""


class ToolCallWire(msgspec.Struct, frozen=True):
    id: str
    type: str | None = None
    function: CalledFunctionWire | None = None
    custom: CalledCustomWire | None = None
    extra_content: Any = None


class ReasoningDetailWire(msgspec.Struct, frozen=True):
    type: str
    text: str | None = None
    summary: str | None = None
    data: str | None = None
    signature: str | None = None
    format: str | None = None
    id: str | None = None


class MessageWire(msgspec.Struct, frozen=True):
    role: str
    content: str | list[PartWire] | None = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallWire] | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[ReasoningDetailWire] | None = None
    cache_control: CacheControlWire | None = None
    function_call: Any = None
    audio: Any = None
    annotations: Any = None


class ToolChoiceWire(msgspec.Struct, frozen=True):
    """A choice in the flat form."""

    type: str
    name: str | None = None
    mode: str | None = None
    tools: list[dict[str, Any]] | None = None


class JsonSchemaWire(msgspec.Struct, frozen=True):
    name: str | None = None
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class ResponseFormatWire(msgspec.Struct, frozen=True):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaWire | None = None


class ReasoningWire(msgspec.Struct, frozen=True):
    enabled: bool | None = None
    effort: Effort | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=0, le=MAX_CAP)] | None = None
    exclude: bool | None = None


class CommonWire(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that chat completions and legacy completions share."""

    model: str | None = None
    models: list[str] | None = None
    stream: bool | None = None
    stream_options: Any = None
    max_tokens: Cap | None = None
    max_completion_tokens: Cap | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Share | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0)] | None = None
    min_p: Share | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    reasoning: ReasoningWire | None = None
    reasoning_effort: Effort | None = None
    include_reasoning: bool | None = None
    provider: ProviderWire | None = None
    usage: UsageWire | None = None
    session_id: str | None = None
    user: str | None = None
    n: int | None = None


class ChatWire(CommonWire, frozen=True, kw_only=True):
    messages: Annotated[list[MessageWire], msgspec.Meta(min_length=1, max_length=2_000)]
    tools: Annotated[list[dict[str, Any]], msgspec.Meta(max_length=512)] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormatWire | None = None
    verbosity: str | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    functions: Any = None
    function_call: Any = None
    modalities: list[str] | None = None
    audio: Any = None
    cache_control: CacheControlWire | None = None
