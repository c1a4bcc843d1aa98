"""Reasoning of earlier turns that goes back with a vendor's signature: how to leave it out."""

import msgspec

from gwd.core.request import Generate, Message, Part, ReasoningPart, Request, TextPart, ToolCallPart


def signature_of(part: TextPart | ToolCallPart, format_: str) -> str | None:
    """The signature that a text or a call carries itself, if it is of this format."""
    extras = part.extras or {}
    signature = extras.get("signature")
    is_own = isinstance(signature, str) and bool(signature) and extras.get("format") == format_
    return signature if is_own else None


def without_signatures(request: Request, format_: str) -> Request:
    """The request without any reasoning or signature of this format."""
    body = request.body
    if not isinstance(body, Generate):
        return request
    messages = tuple(_stripped(message, format_) for message in body.messages)
    return msgspec.structs.replace(request, body=msgspec.structs.replace(body, messages=messages))


def _stripped(message: Message, format_: str) -> Message:
    if message.role != "assistant":
        return message
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ReasoningPart) and part.format == format_:
            continue
        if isinstance(part, TextPart | ToolCallPart) and signature_of(part, format_) is not None:
            part = msgspec.structs.replace(part, extras=None)
        parts.append(part)
    return msgspec.structs.replace(message, parts=tuple(parts))
