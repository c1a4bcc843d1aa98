"""What a messages client sends, as typed shapes. Read from the vendor's Python SDK 2.14.0 models, 2026-11-28.

Content blocks, tools and their nested objects stay plain objects in the outer shapes: they are typed one by one, by
their `type`, so that a block of a kind we do not know is kept and not refused.
"""

from typing import Any, Literal

import msgspec

from gwd.dialects.extensions import ProviderWire, UsageWire


class CacheControl(msgspec.Struct, frozen=True):
    type: Literal["ephemeral"] = "ephemeral"
    ttl: Literal["5m", "1h"] | None = None


class MessageWire(msgspec.Struct, frozen=True):
    role: Literal["user", "assistant", "system"]
    content: str | list[dict[str, Any]] | None


class ToolChoiceWire(msgspec.Struct, frozen=True):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class ThinkingWire(msgspec.Struct, frozen=True):
    type: str
    budget_tokens: int | None = None
    display: str | None = None


class FormatWire(msgspec.Struct, frozen=True):
    type: str
    schema: dict[str, Any] | None = None


class OutputConfigWire(msgspec.Struct, frozen=True):
    effort: str | None = None
    format: FormatWire | None = None


class MetadataWire(msgspec.Struct, frozen=True):
    user_id: str | None = None


class CountBody(msgspec.Struct, frozen=True):
    """What counting tokens reads of a body; the rest of a messages body may be there too."""

    messages: list[MessageWire]
    model: str | None = None
    models: list[str] | None = None
    fallbacks: list[dict[str, Any]] | None = None
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: ToolChoiceWire | None = None
    thinking: ThinkingWire | None = None
    output_config: OutputConfigWire | None = None
    output_format: FormatWire | None = None
    metadata: MetadataWire | None = None
    provider: ProviderWire | None = None
    usage: UsageWire | None = None
    session_id: str | None = None
    user: str | None = None


class MessagesBody(CountBody, frozen=True):
    max_tokens: int | None = None
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


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
