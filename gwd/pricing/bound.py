"""A number of prompt tokens that no vendor's count exceeds.

Why bytes bound tokens: every vendor's vocabulary falls back to single bytes, so no text has more tokens than UTF-8
bytes, before or after compatibility normalisation (which older vocabularies apply and which can lengthen a text).
What vendors add to a prompt (roles, tool instructions) is covered by fixed amounts well above what was seen.
"""

import re
import unicodedata
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
)
from gwd.pricing.estimate import inline_text

UNKNOWN_SIZE: Final = 10_000_000
"""A document whose text cannot be measured (PDF, a file at a URL): only the model's context bounds it."""

REQUEST_OVERHEAD: Final = 256
MESSAGE_OVERHEAD: Final = 16
PART_OVERHEAD: Final = 16
TOOL_OVERHEAD: Final = 192
"""Names and notes that a translation adds to a tool, a call or a result, besides what the client wrote."""
TOOLS_OVERHEAD: Final = 1_024
"""What vendors add to the prompt of a request with tools: instructions of several hundred tokens."""
IMAGE_BOUND: Final = 12_288
"""The most a vendor counts for one picture: 10,000 patches at original detail, with a margin."""

_MAY_LENGTHEN: Final = re.compile(
    "[\u00a8-\u00be\u0130-\u01ff\u02d8-\u0390\u0587\u0675-\u0678\u0900-\u0fff\u1f00-\u1fff\u2030-\u2060"
    "\u2150-\u218f\u2200-\u24ff\u2a00-\u2aff\u3099-\u309f\u30ff\u3200-\u33ff\uf900-\ufdff\ufe70-\ufeff"
    "\U0001d100-\U0001d1ff\U0001f100-\U0001f2ff]"
)
"""Characters that compatibility normalisation can lengthen; looking for them is forty times faster than normalising."""

_SLICE: Final = 256
"""Normalisation sorts a run of combining marks in a time that grows with its square: it is done in short pieces."""


def bound_prompt(request: Request) -> int:
    """A number of prompt tokens that no vendor's count of this request exceeds."""
    total = REQUEST_OVERHEAD + _json(request.extras)
    match request.body:
        case Embed(inputs=inputs):
            return total + sum(
                PART_OVERHEAD + (bound_text(each) if isinstance(each, str) else len(each))
                for each in inputs
            )
        case Generate() as body:
            total += sum(_message(message) for message in body.messages)
            if body.tools:
                total += TOOLS_OVERHEAD + sum(_tool(tool) for tool in body.tools)
            if body.output is not None:
                total += TOOL_OVERHEAD + _json(body.output.schema)
                total += bound_text(body.output.name or "")
                total += bound_text(body.output.description or "")
            return total
        case _:
            assert_never(request.body)


def bound_text(text: str) -> int:
    """No vocabulary makes more tokens of `text` than this."""
    if text.isascii():
        return len(text)
    if _MAY_LENGTHEN.search(text):
        return max(_bytes(text), _normalised_bytes(text))
    return _bytes(text)


def _normalised_bytes(text: str) -> int:
    """At least the bytes after normalisation: what would be composed over a cut only makes the whole shorter.

    Beyond what any context holds nothing more is counted.
    """
    total = 0
    for start in range(0, len(text), _SLICE):
        piece = text[start : start + _SLICE]
        if _MAY_LENGTHEN.search(piece):
            piece = unicodedata.normalize("NFKC", piece)
        total += _bytes(piece)
        if total > UNKNOWN_SIZE:
            break
    return total


def _message(message: Message) -> int:
    return (
        MESSAGE_OVERHEAD
        + bound_text(message.name or "")
        + _json(message.extras)
        + sum(_part(part) for part in message.parts)
    )


def _part(part: Part) -> int:
    extras = 0 if isinstance(part, RefusalPart) else _json(part.extras)
    return PART_OVERHEAD + extras + _content(part)


def _content(part: Part) -> int:
    match part:
        case TextPart(text=text) | RefusalPart(text=text):
            return bound_text(text)
        case ReasoningPart():
            hidden = bound_text(part.signature or "") + bound_text(part.redacted or "")
            return bound_text(part.text) + hidden
        case ToolCallPart():
            named = bound_text(part.name) + bound_text(part.call_id)
            return TOOL_OVERHEAD + named + bound_text(part.arguments)
        case ToolResultPart():
            inner = sum(_part(each) for each in part.parts)
            return TOOL_OVERHEAD + bound_text(part.call_id) + inner
        case ImagePart():
            return IMAGE_BOUND
        case FilePart():
            return bound_text(part.filename or "") + _file(part)
        case _:
            assert_never(part)


def _file(part: FilePart) -> int:
    text = inline_text(part.source) if isinstance(part.source, InlineSource) else None
    return UNKNOWN_SIZE if text is None else bound_text(text)


def _tool(tool: Tool) -> int:
    described = bound_text(tool.name) + bound_text(tool.description or "")
    shape = _json(tool.parameters) + _json(tool.grammar) + _json(tool.extras)
    return TOOL_OVERHEAD + described + shape


def _json(value: dict[str, object] | None) -> int:
    return len(msgspec.json.encode(value)) if value else 0


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
