"""What a chat completions client sends, as typed shapes; unknown fields are found by comparing with the raw body."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gwd.core.request import Effort
from gwd.dialects.extensions import (
    Metadata,
    ModelName,
    ModelNames,
    Preferred,
    SessionId,
    Shown,
    Streamed,
    User,
)

MAX_CAP: Final = 2**53  # clamped to what the model gives; beyond it is no number of tokens
Cap = Annotated[int, Meta(ge=1, le=MAX_CAP)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Share = Annotated[float, Meta(ge=0, le=1)]


class CacheControlWire(msgspec.Struct, frozen=True):
    type: Annotated[Literal["ephemeral"], Meta(description="Always `ephemeral`.")] = "ephemeral"
    ttl: Annotated[
        Literal["5m", "1h"] | None,
        Meta(description="How long the cache keeps it; five minutes, if absent."),
    ] = None


class ImageUrlWire(msgspec.Struct, frozen=True):
    url: Annotated[
        str, Meta(description="An https address, or a data URL with the image in base64.")
    ]
    detail: Annotated[
        str | None, Meta(description="How closely to look: `low`, `high` or `auto`.")
    ] = None


class FileWire(msgspec.Struct, frozen=True):
    filename: Annotated[str | None, Meta(description="The file's name.")] = None
    file_data: Annotated[str | None, Meta(description="A data URL with the file in base64.")] = None
    file_id: Annotated[
        str | None,
        Meta(description="A file at the vendor, by its id; only that vendor can serve it."),
    ] = None


class PartWire(msgspec.Struct, frozen=True):
    type: Annotated[
        str, Meta(description="The kind of part: `text`, `image_url`, `file`, `refusal`.")
    ]
    text: Annotated[str | None, Meta(description="The text of a text part.")] = None
    refusal: Annotated[str | None, Meta(description="The text of a refusal.")] = None
    image_url: Annotated[
        ImageUrlWire | str | None, Meta(description="The image of an image part.")
    ] = None
    file: Annotated[FileWire | None, Meta(description="The file of a file part.")] = None
    cache_control: Annotated[
        CacheControlWire | None, Meta(description="Marks the end of what a prompt cache may keep.")
    ] = None


class CalledFunctionWire(msgspec.Struct, frozen=True):
    name: Annotated[Name, Meta(description="The function.")]
    arguments: Annotated[
        str | dict[str, Any] | None, Meta(description="Its arguments, JSON in a text.")
    ] = None


class CalledCustomWire(msgspec.Struct, frozen=True):
    name: Annotated[Name, Meta(description="The tool.")]
    input: Annotated[str, Meta(description="Its input.")] = ""


class ToolCallWire(msgspec.Struct, frozen=True):
    id: Annotated[str, Meta(description="The call, as the model named it.")]
    type: Annotated[str | None, Meta(description="`function` or `custom`.")] = None
    function: Annotated[CalledFunctionWire | None, Meta(description="The call of a function.")] = (
        None
    )
    custom: Annotated[
        CalledCustomWire | None, Meta(description="The call of a tool that takes free text.")
    ] = None
    extra_content: Annotated[
        Any, Meta(description="What the vendor put on the call, sent back as it came.")
    ] = None


class ReasoningDetailWire(msgspec.Struct, frozen=True):
    type: Annotated[str, Meta(description="The kind of detail, as it came.")]
    text: Annotated[str | None, Meta(description="Reasoning in the open.")] = None
    summary: Annotated[str | None, Meta(description="A summary of reasoning.")] = None
    data: Annotated[str | None, Meta(description="Sealed reasoning.")] = None
    signature: Annotated[str | None, Meta(description="The vendor's signature of it.")] = None
    format: Annotated[str | None, Meta(description="Whose reasoning it is.")] = None
    id: Annotated[str | None, Meta(description="The item it belongs to.")] = None


class MessageWire(msgspec.Struct, frozen=True):
    role: Annotated[
        str, Meta(description="Who speaks: `system`, `developer`, `user`, `assistant` or `tool`.")
    ]
    content: Annotated[str | list[PartWire] | None, Meta(description="A text, or parts.")] = None
    name: Annotated[str | None, Meta(description="The speaker's name.")] = None
    refusal: Annotated[str | None, Meta(description="A refusal of an earlier turn.")] = None
    tool_calls: Annotated[
        list[ToolCallWire] | None, Meta(description="The calls of an earlier turn, as they came.")
    ] = None
    tool_call_id: Annotated[
        str | None, Meta(description="Of a tool's message: the call that it answers.")
    ] = None
    reasoning: Annotated[str | None, Meta(description="The reasoning of an earlier turn.")] = None
    reasoning_content: Annotated[str | None, Meta(description="The same under another name.")] = (
        None
    )
    reasoning_details: Annotated[
        list[ReasoningDetailWire] | None,
        Meta(description="The reasoning of an earlier turn with its signatures, as it came."),
    ] = None
    cache_control: Annotated[
        CacheControlWire | None, Meta(description="Marks the end of what a prompt cache may keep.")
    ] = None
    function_call: Annotated[Any, Meta(description="An older form of `tool_calls`.")] = None
    audio: Annotated[Any, Meta(description="Not taken.")] = None
    annotations: Annotated[Any, Meta(description="Sources of an earlier turn, as they came.")] = (
        None
    )


class ToolChoiceWire(msgspec.Struct, frozen=True):
    """A choice in the flat form."""

    type: str
    name: str | None = None
    mode: str | None = None
    tools: list[dict[str, Any]] | None = None


class JsonSchemaWire(msgspec.Struct, frozen=True):
    name: Annotated[str | None, Meta(description="The schema's name.")] = None
    description: Annotated[str | None, Meta(description="What the answer is for.")] = None
    schema: Annotated[
        dict[str, Any] | None, Meta(description="The JSON Schema that the answer must meet.")
    ] = None
    strict: Annotated[
        bool | None, Meta(description="Whether the schema is kept to the letter.")
    ] = None


class ResponseFormatWire(msgspec.Struct, frozen=True):
    type: Annotated[
        Literal["text", "json_object", "json_schema"], Meta(description="The form of the answer.")
    ]
    json_schema: Annotated[
        JsonSchemaWire | None, Meta(description="The schema of `json_schema`.")
    ] = None


class ReasoningWire(msgspec.Struct, frozen=True):
    enabled: Annotated[bool | None, Meta(description="Whether the model reasons.")] = None
    effort: Annotated[Effort | None, Meta(description="How much.")] = None
    max_tokens: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_CAP)] | None,
        Meta(description="How many tokens it may spend on it."),
    ] = None
    exclude: Annotated[
        bool | None, Meta(description="True leaves reasoning out of the answer.")
    ] = None


class CommonWire(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that chat completions and legacy completions share."""

    model: ModelName | None = None
    models: ModelNames | None = None
    stream: Streamed | None = None
    stream_options: Annotated[
        Any, Meta(description="Ignored: usage always comes with the last event.")
    ] = None
    max_tokens: Annotated[Cap | None, Meta(description="The most tokens of the answer.")] = None
    max_completion_tokens: Annotated[
        Cap | None, Meta(description="The same under the newer name.")
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None, Meta(description="How freely words are chosen.")
    ] = None
    top_p: Annotated[
        Share | None, Meta(description="From which share of likely words they are chosen.")
    ] = None
    top_k: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="From how many likely words they are chosen."),
    ] = None
    min_p: Annotated[
        Share | None, Meta(description="How likely a word must be, against the likeliest.")
    ] = None
    frequency_penalty: Annotated[
        Penalty | None, Meta(description="How much repeated words are avoided.")
    ] = None
    presence_penalty: Annotated[
        Penalty | None, Meta(description="How much words that occurred are avoided.")
    ] = None
    repetition_penalty: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(description="How much repetition is avoided; 1 is not at all."),
    ] = None
    seed: Annotated[
        int | None,
        Meta(description="The same seed gives the same answer, as far as the vendor can."),
    ] = None
    stop: Annotated[str | list[str] | None, Meta(description="Texts that end the answer.")] = None
    reasoning: Annotated[
        ReasoningWire | None, Meta(description="Whether and how much the model reasons.")
    ] = None
    reasoning_effort: Annotated[Effort | None, Meta(description="The same, as one word.")] = None
    include_reasoning: Annotated[
        bool | None, Meta(description="False leaves reasoning out of the answer.")
    ] = None
    provider: Preferred = None
    usage: Shown = None
    session_id: SessionId | None = None
    user: User | None = None
    metadata: Metadata = None
    n: Annotated[int | None, Meta(description="Must be 1.")] = None


class ChatWire(CommonWire, frozen=True, kw_only=True):
    messages: Annotated[
        Annotated[list[MessageWire], Meta(min_length=1, max_length=2_000)],
        Meta(description="The conversation."),
    ]
    tools: Annotated[
        Annotated[list[dict[str, Any]], Meta(max_length=512)] | None,
        Meta(description="The tools that the model may call."),
    ] = None
    tool_choice: Annotated[
        str | dict[str, Any] | None,
        Meta(description="`auto`, `none`, `required`, or the tool to call."),
    ] = None
    parallel_tool_calls: Annotated[
        bool | None, Meta(description="False asks for one call at a time.")
    ] = None
    response_format: Annotated[
        ResponseFormatWire | None, Meta(description="The form of the answer.")
    ] = None
    verbosity: Annotated[
        str | None, Meta(description="How long the answer shall be: `low`, `medium` or `high`.")
    ] = None
    logprobs: Annotated[bool | None, Meta(description="True asks for log probabilities.")] = None
    top_logprobs: Annotated[
        Annotated[int, Meta(ge=0, le=20)] | None, Meta(description="For how many other words, too.")
    ] = None
    functions: Annotated[Any, Meta(description="An older form of `tools`.")] = None
    function_call: Annotated[Any, Meta(description="An older form of `tool_choice`.")] = None
    modalities: Annotated[
        list[str] | None, Meta(description="What to answer with; only `text` is taken.")
    ] = None
    audio: Annotated[Any, Meta(description="Not taken.")] = None
    cache_control: Annotated[
        CacheControlWire | None, Meta(description="Marks the whole prompt for a prompt cache.")
    ] = None
