"""What a messages client sends, as typed shapes. Read from the vendor's Python SDK 2.14.0 models, 2026-11-28.

Content blocks, tools and their nested objects stay plain objects in the outer shapes: they are typed one by one, by
their `type`, so that a block of a kind we do not know is kept and not refused.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gwd.dialects.extensions import (
    ModelName,
    ModelNames,
    Preferred,
    SessionId,
    Shown,
    Streamed,
    User,
)


class CacheControl(msgspec.Struct, frozen=True):
    type: Literal["ephemeral"] = "ephemeral"
    ttl: Literal["5m", "1h"] | None = None


class MessageWire(msgspec.Struct, frozen=True):
    role: Annotated[Literal["user", "assistant", "system"], Meta(description="Who speaks.")]
    content: Annotated[
        str | list[dict[str, Any]] | None, Meta(description="A text, or blocks by their `type`.")
    ]


class ToolChoiceWire(msgspec.Struct, frozen=True):
    type: Annotated[
        Literal["auto", "any", "tool", "none"],
        Meta(description="Whether the model may, must or must not call a tool, or which."),
    ]
    name: Annotated[str | None, Meta(description="The tool of `tool`.")] = None
    disable_parallel_tool_use: Annotated[
        bool | None, Meta(description="True asks for one call at a time.")
    ] = None


class ThinkingWire(msgspec.Struct, frozen=True):
    type: Annotated[str, Meta(description="`enabled`, `adaptive` or `disabled`.")]
    budget_tokens: Annotated[
        int | None, Meta(description="How many tokens `enabled` may spend on it.")
    ] = None
    display: Annotated[
        str | None, Meta(description="`omitted` leaves thinking out of the answer.")
    ] = None


class FormatWire(msgspec.Struct, frozen=True):
    type: Annotated[str, Meta(description="The form of the answer: `json_schema`.")]
    schema: Annotated[
        dict[str, Any] | None, Meta(description="The JSON Schema that the answer must meet.")
    ] = None


class OutputConfigWire(msgspec.Struct, frozen=True):
    effort: Annotated[str | None, Meta(description="How much the model thinks.")] = None
    format: Annotated[FormatWire | None, Meta(description="The form of the answer.")] = None


class MetadataWire(msgspec.Struct, frozen=True):
    user_id: Annotated[
        str | None, Meta(description="Your name of whoever asks, for the records.")
    ] = None


class CountBody(msgspec.Struct, frozen=True):
    """What counting tokens reads of a body; the rest of a messages body may be there too."""

    messages: Annotated[
        list[MessageWire], Meta(description="The conversation; at least one message.")
    ]
    model: ModelName | None = None
    models: ModelNames | None = None
    fallbacks: Annotated[
        list[dict[str, Any]] | None,
        Meta(description="Other models to try, {model} each; or use `models`."),
    ] = None
    system: Annotated[
        str | list[dict[str, Any]] | None,
        Meta(description="What the model is told first: a text, or text blocks."),
    ] = None
    tools: Annotated[
        list[dict[str, Any]] | None, Meta(description="The tools that the model may call.")
    ] = None
    tool_choice: Annotated[
        ToolChoiceWire | None, Meta(description="Whether and which tool is called.")
    ] = None
    thinking: Annotated[
        ThinkingWire | None, Meta(description="Whether and how much the model thinks.")
    ] = None
    output_config: Annotated[
        OutputConfigWire | None, Meta(description="Effort, and the form of the answer.")
    ] = None
    output_format: Annotated[
        FormatWire | None, Meta(description="The form of the answer, under its older name.")
    ] = None
    metadata: Annotated[MetadataWire | None, Meta(description="Who asks.")] = None
    provider: Preferred = None
    usage: Shown = None
    session_id: SessionId | None = None
    user: User | None = None


class MessagesBody(CountBody, frozen=True):
    max_tokens: Annotated[int | None, Meta(description="The most tokens of the answer.")] = None
    stream: Streamed | None = None
    stop_sequences: Annotated[list[str] | None, Meta(description="Texts that end the answer.")] = (
        None
    )
    temperature: Annotated[
        float | None, Meta(description="How freely words are chosen, from 0 to 2.")
    ] = None
    top_p: Annotated[
        float | None,
        Meta(description="From which share of likely words they are chosen, from 0 to 1."),
    ] = None
    top_k: Annotated[
        int | None, Meta(description="From how many likely words they are chosen.")
    ] = None


class ToolWire(msgspec.Struct, frozen=True):
    """What is read of a tool; `parameters` and `format` are another dialect's, and `defer_loading` travels as it is."""

    name: Any = None
    type: Any = None
    description: Any = None
    input_schema: Any = None
    parameters: Any = None
    format: Any = None
    strict: Any = None
    cache_control: CacheControl | None = None


class TextBlock(msgspec.Struct, frozen=True):
    type: str
    text: str
    cache_control: CacheControl | None = None


class SourceWire(msgspec.Struct, frozen=True):
    """Any source of an image or document; which fields are needed depends on `type`."""

    type: str
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    content: str | list[dict[str, Any]] | None = None


class ImageBlock(msgspec.Struct, frozen=True):
    type: str
    source: SourceWire
    cache_control: CacheControl | None = None


class UrlWire(msgspec.Struct, frozen=True):
    url: str


class ImageUrlBlock(msgspec.Struct, frozen=True):
    type: str
    image_url: UrlWire | str
    cache_control: CacheControl | None = None


class DocumentBlock(msgspec.Struct, frozen=True):
    type: str
    source: SourceWire
    title: str | None = None
    cache_control: CacheControl | None = None


class ToolUseBlock(msgspec.Struct, frozen=True):
    type: str
    id: str
    name: str
    input: dict[str, Any] | None = None
    cache_control: CacheControl | None = None


class ToolResultBlock(msgspec.Struct, frozen=True):
    type: str
    tool_use_id: str
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = None
    cache_control: CacheControl | None = None


class ThinkingBlock(msgspec.Struct, frozen=True):
    type: str
    thinking: str = ""
    signature: str | None = None
    cache_control: CacheControl | None = None


class RedactedThinkingBlock(msgspec.Struct, frozen=True):
    type: str
    data: str
    cache_control: CacheControl | None = None
