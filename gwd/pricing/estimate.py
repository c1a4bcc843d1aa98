"""How many tokens a request or an answer is about: fills in missing usage and checks against a context length.

An estimate is within about ten per cent for text (see tokens.py). Pictures and documents get a fixed guess: their
real count depends on the vendor's scaling. What must not be under a real count is in hold.py.
"""

import binascii
from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from gwd.core.request import (
    Embed,
    FilePart,
    Generate,
    ImagePart,
    InlineSource,
    Message,
    Part,
    ReasoningPart,
    RefusalPart,
    Request,
    TextPart,
    Tool,
    ToolCallPart,
    ToolResultPart,
    UrlSource,
    VendorFileSource,
)
from gwd.pricing.tokens import estimate_text

MESSAGE_TOKENS: Final = 4
REPLY_TOKENS: Final = 3
TOOL_TOKENS: Final = 8
IMAGE_TOKENS: Final = 1_000
IMAGE_LOW_DETAIL_TOKENS: Final = 85
FILE_TOKENS: Final = 5_000
FILE_BYTES_PER_TOKEN: Final = 10


def estimate_prompt(request: Request) -> int:
    """About how many prompt tokens the vendor will count for `request`."""
    match request.body:
        case Embed(inputs=inputs):
            return sum(
                estimate_text(each) if isinstance(each, str) else len(each) for each in inputs
            )
        case Generate() as body:
            total = REPLY_TOKENS + sum(_message(message) for message in body.messages)
            total += sum(_tool(tool) for tool in body.tools_in_sight)
            if body.output is not None and body.output.schema is not None:
                total += _json(body.output.schema)
            return total
        case _:
            assert_never(request.body)


def count_images(request: Request) -> int:
    """How many pictures the request sends along, those inside tool results included."""
    match request.body:
        case Embed():
            return 0
        case Generate(messages=messages):
            return sum(_images(message.parts) for message in messages)
        case _:
            assert_never(request.body)


def inline_text(source: InlineSource) -> str | None:
    """The text of an inline text document; None when it is of another kind or not valid base64 and UTF-8."""
    kind = source.media_type.lower()
    if not (kind.startswith("text/") or kind in _TEXT_KINDS or kind.endswith(("+json", "+xml"))):
        return None
    try:
        return binascii.a2b_base64(source.data).decode("utf-8-sig")
    except (binascii.Error, ValueError):
        return None


_TEXT_KINDS: Final = frozenset({"application/json", "application/xml", "application/x-ndjson"})


def _message(message: Message) -> int:
    name = estimate_text(message.name) if message.name else 0
    return MESSAGE_TOKENS + name + sum(_part(part) for part in message.parts)


def _part(part: Part) -> int:
    match part:
        case TextPart(text=text) | RefusalPart(text=text):
            return estimate_text(text)
        case ReasoningPart():
            return estimate_text(part.text)
        case ToolCallPart():
            return TOOL_TOKENS + estimate_text(part.name) + estimate_text(part.arguments)
        case ToolResultPart():
            return TOOL_TOKENS + sum(_part(inner) for inner in part.parts)
        case ImagePart():
            return IMAGE_LOW_DETAIL_TOKENS if part.detail == "low" else IMAGE_TOKENS
        case FilePart():
            return _file(part)
        case _:
            assert_never(part)


def _file(part: FilePart) -> int:
    match part.source:
        case InlineSource() as source:
            text = inline_text(source)
            if text is not None:
                return estimate_text(text)
            return max(1, len(source.data) * 3 // 4 // FILE_BYTES_PER_TOKEN)
        case UrlSource() | VendorFileSource():
            return FILE_TOKENS
        case _:
            assert_never(part.source)


def _tool(tool: Tool) -> int:
    described = estimate_text(tool.name) + estimate_text(tool.description or "")
    return TOOL_TOKENS + described + _json(tool.parameters) + _json(tool.grammar)


def _json(value: dict[str, object] | None) -> int:
    return estimate_text(msgspec.json.encode(value).decode()) if value else 0


def _images(parts: Iterable[Part]) -> int:
    count = 0
    for part in parts:
        if isinstance(part, ImagePart):
            count += 1
        elif isinstance(part, ToolResultPart):
            count += _images(part.parts)
    return count
