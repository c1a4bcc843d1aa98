"""Signed reasoning of tool turns: what to remember of an answer, and how to put it back into a request.

A client of another dialect rarely sends the signed thinking of a tool turn back, and the vendor refuses the next call
of that loop without it. Whoever keeps the memory (tool call id to blob, per organization, 24 hours) uses these pure
functions: `remember` on the parts of a finished answer, `missing` to see which blobs a request needs, `reattach` to
put them back. A request whose signatures cannot be found is built with thinking off for that call; nothing else is
needed.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gwd.core.request import Generate, Message, Part, ReasoningPart, Request, ToolCallPart
from gwd.vendors.anthropic_messages.format import SIGNATURE_FORMAT

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(tuple[ReasoningPart, ...]).decode


def remember(parts: Iterable[Part]) -> dict[str, bytes]:
    """Blob by tool call id for one answer: the signed reasoning in front of its first call. Empty if there is none."""
    reasoning: list[ReasoningPart] = []
    call_ids: list[str] = []
    for part in parts:
        if isinstance(part, ToolCallPart):
            call_ids.append(part.call_id)
        elif isinstance(part, ReasoningPart) and _is_signed(part) and not call_ids:
            reasoning.append(part)
    if not reasoning:
        return {}
    blob = _encode(tuple(reasoning))
    return dict.fromkeys(call_ids, blob)


def missing(request: Request) -> tuple[str, ...]:
    """The first call id of every assistant turn that holds calls but no signed reasoning."""
    body = request.body
    if not isinstance(body, Generate):
        return ()
    return tuple(call_id for message in body.messages if (call_id := _needs(message)) is not None)


def reattach(request: Request, memory: Mapping[str, bytes]) -> Request:
    """The request with remembered reasoning in front of the turns that lost it; blobs nobody can read are ignored."""
    body = request.body
    if not memory or not isinstance(body, Generate):
        return request
    messages = tuple(_repaired(message, memory) for message in body.messages)
    return _with_messages(request, body, messages)


def _with_messages(request: Request, body: Generate, messages: tuple[Message, ...]) -> Request:
    return msgspec.structs.replace(request, body=msgspec.structs.replace(body, messages=messages))


def _needs(message: Message) -> str | None:
    if message.role != "assistant":
        return None
    if any(isinstance(part, ReasoningPart) and _is_signed(part) for part in message.parts):
        return None
    return next((part.call_id for part in message.parts if isinstance(part, ToolCallPart)), None)


def _repaired(message: Message, memory: Mapping[str, bytes]) -> Message:
    call_id = _needs(message)
    blob = memory.get(call_id) if call_id is not None else None
    if blob is None:
        return message
    try:
        reasoning = _decode(blob)
    except msgspec.DecodeError:
        return message
    # Unsigned reasoning of the same turn is what the blob is the original of.
    rest = tuple(part for part in message.parts if not isinstance(part, ReasoningPart))
    return msgspec.structs.replace(message, parts=(*reasoning, *rest))


def _is_signed(part: ReasoningPart) -> bool:
    return part.format == SIGNATURE_FORMAT and bool(part.signature or part.redacted is not None)
