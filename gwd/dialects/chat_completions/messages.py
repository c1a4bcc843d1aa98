"""Chat messages to internal ones: roles, content parts, tool calls and their results."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec

from gwd.core.errors import (
    InvalidImage,
    InvalidRequest,
    InvalidValue,
    MissingParameter,
    UnsupportedContent,
    UnsupportedParameter,
)
from gwd.core.foreign_blocks import described
from gwd.core.request import (
    CacheTtl,
    FilePart,
    ImagePart,
    InlineSource,
    Message,
    Part,
    ReasoningPart,
    RefusalPart,
    Source,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    UrlSource,
    VendorFileSource,
)
from gwd.dialects import data_url, json_input
from gwd.dialects.chat_completions.reasoning import reasoning_parts, tool_signatures
from gwd.dialects.chat_completions.wire import (
    CacheControlWire,
    FileWire,
    ImageUrlWire,
    MessageWire,
    PartWire,
    ReasoningDetailWire,
    ToolCallWire,
)

ContentPart = TextPart | ImagePart | FilePart
T = TypeVar("T")

# What a message holds that the client knows, and what SDKs and other clients keep on a message and replay with it:
# an answer's own fields and what was read out of them. No vendor takes these.
_MESSAGE_FIELDS: Final = json_input.field_names(MessageWire) | {
    "id",
    "type",
    "status",
    "created_at",
    "timestamp",
    "model",
    "provider",
    "usage",
    "finish_reason",
    "native_finish_reason",
    "images",
    "parsed",
    "provider_specific_fields",
    "thinking_blocks",
    "gateway_metadata",
}
_PART_FIELDS: Final = json_input.field_names(PartWire) | {"id", "role", "annotations", "parsed"}
_HTTP: Final = ("https://", "http://")
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


def messages_of(wires: Sequence[MessageWire], raw: Sequence[dict[str, Any]]) -> tuple[Message, ...]:
    """Raises InvalidRequest subclasses with the path of the message or part."""
    return tuple(
        _message(wire, source, f"messages[{index}]")
        for index, (wire, source) in enumerate(zip(wires, raw, strict=True))
    )


def ttl_of(wire: CacheControlWire | None) -> CacheTtl | None:
    return None if wire is None else wire.ttl or "5m"


def mark_last(parts: tuple[Part, ...], ttl: CacheTtl | None) -> tuple[Part, ...]:
    """Put a message's own cache mark on its last part that can carry one."""
    if ttl is None:
        return parts
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if isinstance(part, TextPart | ImagePart | FilePart | ToolCallPart | ToolResultPart):
            marked = msgspec.structs.replace(part, cache=ttl)
            return (*parts[:index], marked, *parts[index + 1 :])
    return parts


def _message(wire: MessageWire, raw: dict[str, Any], at: str) -> Message:
    if wire.function_call is not None or wire.role == "function":
        raise UnsupportedParameter(
            "legacy function calling is not supported: use `tools` and role `tool`", param=at
        )
    extras = json_input.extras(raw, _MESSAGE_FIELDS)
    match wire.role:
        case "system" | "developer":
            return Message(
                role="system",
                developer=wire.role == "developer",
                parts=mark_last(_content(wire, raw, at), ttl_of(wire.cache_control)),
                name=wire.name,
                extras=extras,
            )
        case "user":
            return Message(
                role="user",
                parts=mark_last(_content(wire, raw, at), ttl_of(wire.cache_control)),
                name=wire.name,
                extras=extras,
            )
        case "assistant":
            parts = mark_last(_assistant_parts(wire, raw, at), ttl_of(wire.cache_control))
            return Message(role="assistant", parts=parts, name=wire.name, extras=extras)
        case "tool":
            return Message(role="tool", parts=(_tool_result(wire, raw, at),), extras=extras)
        case _:
            raise InvalidValue(
                f"`{at}.role` must be system, developer, user, assistant or tool",
                param=f"{at}.role",
            )


def _content(wire: MessageWire, raw: dict[str, Any], at: str) -> tuple[ContentPart, ...]:
    if wire.content is None:
        raise MissingParameter(f"`{at}.content` is required", param=f"{at}.content")
    if isinstance(wire.content, str):
        return (TextPart(text=wire.content),)
    return tuple(
        _part(part, source, f"{at}.content[{index}]", role=wire.role)
        for index, (part, source) in enumerate(zip(wire.content, raw["content"], strict=True))
    )


def _part(wire: PartWire, raw: dict[str, Any], at: str, *, role: str) -> ContentPart:
    extras = json_input.extras(raw, _PART_FIELDS)
    cache = ttl_of(wire.cache_control)
    match wire.type:
        case "text":
            return TextPart(text=_needed(wire.text, f"{at}.text"), cache=cache, extras=extras)
        case "image_url":
            url = wire.image_url
            given = ImageUrlWire(url=url) if isinstance(url, str) else url
            image = _needed(given, f"{at}.image_url")
            return ImagePart(
                source=_image_source(image.url, f"{at}.image_url.url"),
                detail=image.detail,
                cache=cache,
                extras=extras,
            )
        case "file":
            file = _needed(wire.file, f"{at}.file")
            return FilePart(
                source=_file_source(file, f"{at}.file"),
                filename=file.filename,
                cache=cache,
                extras=extras,
            )
        case _ if role in ("tool", "assistant"):
            # A history of another client's making: refused, it would end its session.
            return TextPart(text=described(raw), cache=cache)
        case _:
            raise UnsupportedContent(
                f"`{at}.type`: {wire.type!r} is not supported; send text, image_url or file",
                param=f"{at}.type",
            )


def _assistant_parts(wire: MessageWire, raw: dict[str, Any], at: str) -> tuple[Part, ...]:
    calls = wire.tool_calls or []
    signatures = tool_signatures(wire.reasoning_details, {call.id for call in calls})
    parts: list[Part] = list(reasoning_parts(wire, skip_ids=signatures.keys()))
    if isinstance(wire.content, str):
        if wire.content:
            parts.append(TextPart(text=wire.content))
    elif wire.content is not None:
        for index, part in enumerate(wire.content):
            where = f"{at}.content[{index}]"
            if part.type == "refusal":
                parts.append(RefusalPart(text=_needed(part.refusal, f"{where}.refusal")))
            elif part.type == "thinking":
                parts += _thinking(raw["content"][index])
            else:
                parts.append(_part(part, raw["content"][index], where, role="assistant"))
    if wire.refusal:
        parts.append(RefusalPart(text=wire.refusal))
    for index, call in enumerate(calls):
        parts.append(_tool_call(call, f"{at}.tool_calls[{index}]", signatures.get(call.id)))
    return tuple(parts)


def _thinking(raw: dict[str, Any]) -> list[Part]:
    """Reasoning that some servers, and the clients that replay them, put among the parts of the content."""
    thought = raw.get("thinking")
    pieces = thought if isinstance(thought, list) else [{"text": thought}]
    texts = [piece.get("text") for piece in pieces if isinstance(piece, dict)]
    text = "".join(piece for piece in texts if isinstance(piece, str))
    return [ReasoningPart(text=text)] if text else []


def _tool_call(wire: ToolCallWire, at: str, signature: ReasoningDetailWire | None) -> ToolCallPart:
    extras: dict[str, Any] = (
        {"signature": signature.data, "format": signature.format} if signature else {}
    )
    if wire.extra_content is not None:
        extras["extra_content"] = wire.extra_content
    if wire.custom is not None:
        arguments = msgspec.json.encode({"input": wire.custom.input}).decode()
        return ToolCallPart(
            call_id=wire.id, name=wire.custom.name, arguments=arguments, extras=extras or None
        )
    function = _needed(wire.function, f"{at}.function")
    given = function.arguments
    text = given if isinstance(given, str) else msgspec.json.encode(given or {}).decode()
    return ToolCallPart(
        call_id=wire.id,
        name=function.name,
        arguments=text if text.strip() else "{}",
        extras=extras or None,
    )


def _tool_result(wire: MessageWire, raw: dict[str, Any], at: str) -> ToolResultPart:
    parts = () if wire.content is None else _content(wire, raw, at)
    # The mark belongs to the whole result, wherever the client put it: vendors mark the result block.
    inner = next((part.cache for part in reversed(parts) if part.cache), None)
    return ToolResultPart(
        call_id=_needed(wire.tool_call_id, f"{at}.tool_call_id"),
        parts=tuple(msgspec.structs.replace(part, cache=None) for part in parts),
        cache=ttl_of(wire.cache_control) or inner,
    )


def _image_source(url: str, at: str) -> Source:
    if url.startswith(_HTTP):
        return UrlSource(url=url)
    return _inline(url, at, media_type="image/png", error=InvalidImage)


def _file_source(file: FileWire, at: str) -> Source:
    if file.file_data is not None:
        if file.file_data.startswith(_HTTP):
            return UrlSource(url=file.file_data)
        return _inline(
            file.file_data, f"{at}.file_data", media_type="application/pdf", error=InvalidValue
        )
    return VendorFileSource(file_id=_needed(file.file_id, f"{at}.file_data"))


def _inline(url: str, at: str, *, media_type: str, error: type[InvalidRequest]) -> InlineSource:
    """The bytes of a data URL; parameters are dropped, url-safe or unpadded base64 is made standard."""
    found = data_url.read(url)
    if found is None or not found.is_base64:
        raise error(f"`{at}` must be an https URL or a base64 data URL", param=at)
    data = found.payload.encode("ascii", "replace").translate(_STANDARD, b" \r\n\t").rstrip(b"=")
    if not data or len(data) % 4 == 1 or data.translate(None, _ALPHABET):
        raise error(f"`{at}` holds invalid base64", param=at)
    padded = data + b"=" * (-len(data) % 4)
    return InlineSource(media_type=found.media_type or media_type, data=padded.decode("ascii"))


def _needed(value: T | None, at: str) -> T:
    if value is None:
        raise MissingParameter(f"`{at}` is required", param=at)
    return value
