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
from gwd.pricing.tokens import estimate_texts

MESSAGE_TOKENS: Final = 4
REPLY_TOKENS: Final = 3
TOOL_TOKENS: Final = 8
IMAGE_TOKENS: Final = 1_000
IMAGE_LOW_DETAIL_TOKENS: Final = 85
FILE_TOKENS: Final = 5_000
FILE_BYTES_PER_TOKEN: Final = 10


def estimate_prompt(request: Request) -> int:
    """About how many prompt tokens the vendor will count for `request`, in one pass over its parts."""
    fixed, texts = 0, []
    match request.body:
        case Embed(inputs=inputs):
            fixed = sum(len(each) for each in inputs if not isinstance(each, str))
            texts = [each for each in inputs if isinstance(each, str)]
        case Generate() as body:
            fixed = REPLY_TOKENS + sum(_message(message, texts) for message in body.messages)
            fixed += sum(_tool(tool, texts) for tool in body.tools_in_sight)
            if body.output is not None:
                _add_json(body.output.schema, texts)
        case _:
            assert_never(request.body)
    return fixed + estimate_texts(texts)


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


# These give the tokens that do not depend on a text, and add the texts to those that are estimated together.


def _message(message: Message, texts: list[str]) -> int:
    if message.name:
        texts.append(message.name)
    fixed = MESSAGE_TOKENS
    for part in message.parts:
        fixed += _part(part, texts)
    return fixed


def _part(part: Part, texts: list[str]) -> int:
    match part:
        case TextPart(text=text) | RefusalPart(text=text) | ReasoningPart(text=text):
            texts.append(text)
            return 0
        case ToolCallPart():
            texts += (part.name, part.arguments)
            return TOOL_TOKENS
        case ToolResultPart():
            return TOOL_TOKENS + sum(_part(inner, texts) for inner in part.parts)
        case ImagePart():
            return IMAGE_LOW_DETAIL_TOKENS if part.detail == "low" else IMAGE_TOKENS
        case FilePart():
            return _file(part, texts)
        case _:
            assert_never(part)


def _file(part: FilePart, texts: list[str]) -> int:
    match part.source:
        case InlineSource() as source:
            text = inline_text(source)
            if text is None:
                return max(1, len(source.data) * 3 // 4 // FILE_BYTES_PER_TOKEN)
            texts.append(text)
            return 0
        case UrlSource() | VendorFileSource():
            return FILE_TOKENS
        case _:
            assert_never(part.source)


def _tool(tool: Tool, texts: list[str]) -> int:
    texts += (tool.name, tool.description or "")
    _add_json(tool.parameters, texts)
    _add_json(tool.grammar, texts)
    return TOOL_TOKENS


def _add_json(value: dict[str, object] | None, texts: list[str]) -> None:
    if value:
        texts.append(msgspec.json.encode(value).decode())


def _images(parts: Iterable[Part]) -> int:
    count = 0
    for part in parts:
        if isinstance(part, ImagePart):
            count += 1
        elif isinstance(part, ToolResultPart):
            count += _images(part.parts)
    return count
