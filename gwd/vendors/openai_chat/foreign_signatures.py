"""Signatures of earlier reasoning that clients and servers of this format keep beside a message or a call.

They are no part of the format: each has the name that some server gave it, and goes through as a field we do not know.
"""

from typing import Final

import msgspec

from gwd.core.request import Extras, Generate, Message, Part, Request, TextPart, ToolCallPart

_NAMES: Final = frozenset(("extra_content", "reasoning_opaque"))


def without_signatures(request: Request) -> Request:
    """The request without any of them."""
    body = request.body
    if not isinstance(body, Generate):
        return request
    messages = tuple(_stripped(message) for message in body.messages)
    return msgspec.structs.replace(request, body=msgspec.structs.replace(body, messages=messages))


def _stripped(message: Message) -> Message:
    if message.role != "assistant":
        return message
    parts: list[Part] = [
        msgspec.structs.replace(part, extras=_others(part.extras))
        if isinstance(part, TextPart | ToolCallPart)
        else part
        for part in message.parts
    ]
    return msgspec.structs.replace(message, parts=tuple(parts), extras=_others(message.extras))


def _others(extras: Extras | None) -> Extras | None:
    return {name: extras[name] for name in extras if name not in _NAMES} if extras else extras
