"""What a server puts on its calls for itself: `extra_content`, in which Gemini's thought signatures travel here.

It goes back to the server that wrote it and to no other. A client that keeps it sends it along; most lose it, and
clients of other dialects never see it. Whoever keeps the memory (tool call id to blob, per organization, 24 hours) uses
these pure functions. A blob holds what all calls of one answer carried, under the id of the first.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from gwd.core.request import Generate, Message, Part, Request, ToolCallPart

FIELD: Final = "extra_content"
ORIGIN: Final = "origin"
"""Beside the field: the provider whose server wrote it. Missing on what a client sent."""


class _Kept(msgspec.Struct):
    origin: str
    calls: dict[str, Any]


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Kept).decode


def remember(parts: Iterable[Part]) -> dict[str, bytes]:
    """Blob by tool call id for one answer; empty if no call carries anything."""
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    kept = {call.call_id: call.extras for call in calls if call.extras and FIELD in call.extras}
    origin = next((extras.get(ORIGIN) for extras in kept.values()), None)
    if not isinstance(origin, str):
        return {}
    contents = {call_id: extras[FIELD] for call_id, extras in kept.items()}
    return {calls[0].call_id: _encode(_Kept(origin, contents))}


def missing(request: Request) -> tuple[str, ...]:
    """The first call id of every assistant turn whose calls carry nothing."""
    body = request.body
    if not isinstance(body, Generate):
        return ()
    found = (_bare_call_id(message) for message in body.messages)
    return tuple(call_id for call_id in found if call_id is not None)


def reattach(request: Request, memory: Mapping[str, bytes]) -> Request:
    """The request with what is remembered put back on its calls; blobs of other formats are ignored."""
    body = request.body
    if not memory or not isinstance(body, Generate):
        return request
    messages = tuple(_repaired(message, memory) for message in body.messages)
    return msgspec.structs.replace(request, body=msgspec.structs.replace(body, messages=messages))


def _bare_call_id(message: Message) -> str | None:
    if message.role != "assistant":
        return None
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    if not calls or any(call.extras and FIELD in call.extras for call in calls):
        return None
    return calls[0].call_id


def _repaired(message: Message, memory: Mapping[str, bytes]) -> Message:
    call_id = _bare_call_id(message)
    blob = memory.get(call_id) if call_id is not None else None
    if blob is None:
        return message
    try:
        kept = _decode(blob)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return message
    parts = tuple(_marked(part, kept) for part in message.parts)
    return msgspec.structs.replace(message, parts=parts)


def _marked(part: Part, kept: _Kept) -> Part:
    if not isinstance(part, ToolCallPart) or part.call_id not in kept.calls:
        return part
    extras = {**(part.extras or {}), FIELD: kept.calls[part.call_id], ORIGIN: kept.origin}
    return msgspec.structs.replace(part, extras=extras)
