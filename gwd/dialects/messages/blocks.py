"""Content blocks of a messages body to parts.

A block kind we know becomes its part; fields we do not know go to the part's `extras`. A block of another kind (search
results, the vendor's own tools) becomes a text part whose `text` is what any vendor may read of it and whose `extras`
are the block itself, `type` included: an adapter of the same family sends such extras in place of the part. The
same device hides the billing line that one coding agent puts in front of its system text from all other vendors.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from gwd.core.errors import InvalidRequest, InvalidValue
from gwd.core.foreign_blocks import described
from gwd.core.request import (
    CacheTtl,
    Extras,
    FilePart,
    ImagePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from gwd.dialects import json_input
from gwd.dialects.messages.media import source_of
from gwd.dialects.messages.provenance import OWN_FORMAT, reasoning_from
from gwd.dialects.messages.wire import (
    CacheControl,
    DocumentBlock,
    ImageBlock,
    ImageUrlBlock,
    RedactedThinkingBlock,
    SourceWire,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    ToolWire,
)

# The line changes with every call: kept for its own vendor; for any other it would make every prompt miss the cache.
_BILLING_LINE: Final = re.compile(r"\s*x-anthropic-billing[\w-]*\s*:[^\n]*(?:\n|\Z)", re.IGNORECASE)
_NOT_IN_SYSTEM: Final = ("image", "image_url", "document")
_ROLE_OF_BLOCK: Final = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}

Shape = TypeVar("Shape", bound=msgspec.Struct)


def system_parts(system: str | list[dict[str, Any]] | None) -> tuple[Part, ...]:
    """The top-level system text; the billing line in front of the first block stays with its own vendor."""
    parts = _parts(system, "system", "system")
    first = parts[0] if parts else None
    if isinstance(first, TextPart) and (line := _BILLING_LINE.match(first.text)):
        block: Extras = {"type": "text", "text": first.text}
        if first.cache:
            block["cache_control"] = _mark(first.cache)
        block |= first.extras or {}
        hidden = TextPart(text=first.text[line.end() :], cache=first.cache, extras=block)
        return (hidden, *parts[1:])
    return parts


def message_parts(
    content: str | list[dict[str, Any]] | None, *, role: str, path: str
) -> tuple[Part, ...]:
    """The parts of one message. Raises InvalidRequest subclasses with the path of the field."""
    return _parts(content, role, path)


def typed_at(value: object, shape: type[Shape], path: str) -> Shape:
    """`value` as `shape`, with errors that name the field by its whole path."""
    try:
        return json_input.typed(value, shape)
    except InvalidRequest as error:
        found = error.param
        full = f"{path}.{found}" if found else path
        text = (
            error.message.replace(f"`{found}`", f"`{full}`", 1)
            if found
            else f"`{path}`: {error.message}"
        )
        raise type(error)(text, param=full) from None


def cache_of(control: CacheControl | None) -> CacheTtl | None:
    return None if control is None else control.ttl or "5m"


def extras_of(raw: dict[str, Any], shape: type[msgspec.Struct]) -> Extras | None:
    """Fields the shape does not know, and a cache mark that says more than its time to live.

    SDKs write a null for every optional field they know when they replay an answer; those say nothing.
    """
    extras = _unknown(raw, shape)
    control = raw.get("cache_control")
    if isinstance(control, dict) and (
        control.get("ttl") == "5m" or not control.keys() <= {"type", "ttl"}
    ):
        extras = {**(extras or {}), "cache_control": control}
    return extras


def _unknown(raw: dict[str, Any], shape: type[msgspec.Struct]) -> Extras | None:
    found = json_input.extras(raw, _KNOWN[shape]) or {}
    return {name: value for name, value in found.items() if value is not None} or None


def extras_of_tool(fields: dict[str, Any]) -> Extras | None:
    """As `extras_of`; a tool's `type` says nothing (custom or null) once the tool is known as the client's own."""
    return extras_of(fields, ToolWire)


def _parts(content: str | list[dict[str, Any]] | None, role: str, path: str) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    base = path if role == "system" and path == "system" else f"{path}.content"
    parts: list[Part] = []
    for index, block in enumerate(content):
        parts.extend(_block(block, role, f"{base}[{index}]"))
    return tuple(parts)


def _block(block: dict[str, Any], role: str, path: str) -> Iterable[Part]:
    kind = block.get("type")
    if not isinstance(kind, str):
        raise InvalidValue(f"`{path}.type` is required: text, image, …", param=f"{path}.type")
    wanted = _ROLE_OF_BLOCK.get(kind, role)
    if wanted != role and role == "result":
        return (TextPart(text=described(block), extras=block),)
    if wanted != role or (role == "system" and kind in _NOT_IN_SYSTEM):
        raise InvalidValue(
            f"`{path}`: a block of type {kind} is not allowed in a {role} message", param=path
        )
    match kind:
        case "text":
            return (_text(block, path),)
        case "image":
            return (_image(block, path),)
        case "image_url":
            return (_image_url(block, path),)
        case "document":
            return _document(block, path)
        case "tool_use":
            return (_tool_use(block, path),)
        case "tool_result":
            return (_tool_result(block, path),)
        case "thinking":
            return (_thinking(block, path),)
        case "redacted_thinking":
            return (_redacted(block, path),)
        case _:
            return (TextPart(text=_readable(block), extras=block),)


def _text(block: dict[str, Any], path: str) -> TextPart:
    wire = typed_at(block, TextBlock, path)
    return TextPart(
        text=wire.text, cache=cache_of(wire.cache_control), extras=extras_of(block, TextBlock)
    )


def _image(block: dict[str, Any], path: str) -> ImagePart:
    wire = typed_at(block, ImageBlock, path)
    return ImagePart(
        source=source_of(wire.source, f"{path}.source", default_type="image/png"),
        cache=cache_of(wire.cache_control),
        extras=extras_of(block, ImageBlock),
    )


def _image_url(block: dict[str, Any], path: str) -> ImagePart:
    """The image block of another dialect, which some clients write here too."""
    wire = typed_at(block, ImageUrlBlock, path)
    given = wire.image_url if isinstance(wire.image_url, str) else wire.image_url.url
    source = SourceWire(type="url", url=given)
    return ImagePart(
        source=source_of(source, f"{path}.image_url", default_type="image/png"),
        cache=cache_of(wire.cache_control),
    )


def _document(block: dict[str, Any], path: str) -> Iterable[Part]:
    wire = typed_at(block, DocumentBlock, path)
    if wire.source.type == "content":
        return _document_of_blocks(block, wire, path)
    part = FilePart(
        source=source_of(wire.source, f"{path}.source", default_type="application/pdf"),
        filename=wire.title,
        cache=cache_of(wire.cache_control),
        extras=extras_of(block, DocumentBlock),
    )
    return (part,)


def _document_of_blocks(block: dict[str, Any], wire: DocumentBlock, path: str) -> Iterable[Part]:
    """A document made of blocks: whole for its own vendor, flattened to text and images for the others.

    The first part carries the block; the rest are marked with a null type, which tells its own vendor's adapter that
    the block has said it already.
    """
    inner = _parts(wire.source.content, "user", f"{path}.source")
    parts: list[Part] = [TextPart(text=wire.title or "", extras=block)]
    for part in inner:
        if isinstance(part, (TextPart, ImagePart)):
            parts.append(msgspec.structs.replace(part, extras={"type": None}))
    return parts


def _tool_use(block: dict[str, Any], path: str) -> ToolCallPart:
    wire = typed_at(block, ToolUseBlock, path)
    for name, value in (("id", wire.id), ("name", wire.name)):
        if not value:
            raise InvalidValue(f"`{path}.{name}` must not be empty", param=f"{path}.{name}")
    return ToolCallPart(
        call_id=wire.id,
        name=wire.name,
        arguments=msgspec.json.encode(wire.input or {}).decode(),
        cache=cache_of(wire.cache_control),
        extras=extras_of(block, ToolUseBlock),
    )


def _tool_result(block: dict[str, Any], path: str) -> ToolResultPart:
    wire = typed_at(block, ToolResultBlock, path)
    inner = _parts(wire.content, "result", path)
    return ToolResultPart(
        call_id=wire.tool_use_id,
        parts=tuple(part for part in inner if isinstance(part, (TextPart, ImagePart, FilePart))),
        is_error=wire.is_error is True,
        cache=cache_of(wire.cache_control),
        extras=extras_of(block, ToolResultBlock),
    )


def _thinking(block: dict[str, Any], path: str) -> ReasoningPart:
    wire = typed_at(block, ThinkingBlock, path)
    part = reasoning_from(wire.thinking, wire.signature)
    extras = _unknown(block, ThinkingBlock)
    return msgspec.structs.replace(part, extras=extras) if extras else part


def _redacted(block: dict[str, Any], path: str) -> ReasoningPart:
    wire = typed_at(block, RedactedThinkingBlock, path)
    return ReasoningPart(
        redacted=wire.data,
        format=OWN_FORMAT,
        extras=_unknown(block, RedactedThinkingBlock),
    )


def _readable(block: dict[str, Any]) -> str:
    """What any vendor may read of a block of another kind: a search result's title, source and text."""
    if block["type"] != "search_result":
        return described(block)
    content = block.get("content")
    texts = [block.get("title"), block.get("source")]
    if isinstance(content, list):
        texts += [item.get("text") for item in content if isinstance(item, dict)]
    return "\n".join(text for text in texts if isinstance(text, str) and text) or described(block)


def _mark(ttl: CacheTtl) -> dict[str, str]:
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


# What SDKs write on the blocks of an answer for their own use, and replay with them.
_CLIENTS_OWN: Final = frozenset(("index", "parsed_output", "partial_json"))
_KNOWN: Final[dict[type[msgspec.Struct], frozenset[str]]] = {
    shape: json_input.field_names(shape) | _CLIENTS_OWN
    for shape in (
        TextBlock,
        ImageBlock,
        DocumentBlock,
        ToolUseBlock,
        ToolResultBlock,
        ToolWire,
        ThinkingBlock,
        RedactedThinkingBlock,
    )
}
