"""What an Anthropic-format vendor answers, as typed shapes. Read from its Python SDK 2.14.0 models, 2026-11-28.

Counts are untyped: an absurd usage must cost the usage, never the answer. Blocks of kinds we do not read stay raw.
"""

from typing import Any

import msgspec


class ErrorWire(msgspec.Struct, frozen=True):
    type: str | None = None
    message: str | None = None


class Block(msgspec.Struct, frozen=True):
    """A content block of a whole answer, or as it stands in content_block_start."""

    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    citations: list[Any] | None = None
    caller: Any = None
    toolset_name: Any = None


class AnswerWire(msgspec.Struct, frozen=True):
    """A whole answer; `error` where the vendor reports trouble with status 200."""

    type: str | None = None
    id: str | None = None
    model: str | None = None
    content: list[msgspec.Raw] | None = None
    stop_reason: Any = None
    stop_sequence: Any = None
    matched_stop: Any = None
    stop_details: Any = None
    container: Any = None
    context_management: Any = None
    usage: Any = None
    error: ErrorWire | None = None


class Delta(msgspec.Struct, frozen=True):
    """The delta of a content block or of the message."""

    type: str | None = None
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    citation: Any = None
    content: Any = None
    stop_reason: Any = None
    stop_sequence: Any = None
    matched_stop: Any = None
    stop_details: Any = None
    container: Any = None


class StreamEvent(msgspec.Struct, frozen=True):
    """Any event of a stream; `type` tells which fields count."""

    type: str | None = None
    index: int = 0
    delta: Delta | None = None
    content_block: msgspec.Raw = (
        msgspec.Raw()
    )  # empty where there is none: Raw takes no part in unions
    message: AnswerWire | None = None
    usage: Any = None
    context_management: Any = None
    error: ErrorWire | None = None
