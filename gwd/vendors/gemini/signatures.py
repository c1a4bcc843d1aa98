"""Thought signatures of calls: what to remember of an answer, and how to put it back into a request.

The vendor signs the first call of each turn and wants the signature back on that very call. Few clients keep it: most
know a call by its id, name and arguments only. Whoever keeps the memory (tool call id to blob, per organization,
24 hours) uses these pure functions; what cannot be found goes out with the vendor's own word for a missing signature.
"""

from collections.abc import Iterable, Mapping

import msgspec

from gwd.core.request import Generate, Message, Part, ReasoningPart, Request, ToolCallPart
from gwd.vendors.gemini.format import SIGNATURE_FORMAT
from gwd.vendors.signatures import signature_of


def remember(parts: Iterable[Part]) -> dict[str, bytes]:
    """Signature by tool call id for one answer; one that came in front of a call without a part of its own counts."""
    blobs: dict[str, bytes] = {}
    carried: str | None = None
    for part in parts:
        if isinstance(part, ReasoningPart):
            carried = (part.signature if part.format == SIGNATURE_FORMAT else None) or carried
        elif isinstance(part, ToolCallPart):
            signature = signature_of(part, SIGNATURE_FORMAT) or carried
            carried = None
            if signature is not None:
                blobs[part.call_id] = signature.encode()
    return blobs


def missing(request: Request) -> tuple[str, ...]:
    """The first call id of every assistant turn that holds calls but no signature of this format."""
    body = request.body
    if not isinstance(body, Generate):
        return ()
    return tuple(call.call_id for message in body.messages if (call := _unsigned(message)))


def reattach(request: Request, memory: Mapping[str, bytes]) -> Request:
    """The request with remembered signatures in front of the calls that lost them."""
    body = request.body
    if not memory or not isinstance(body, Generate):
        return request
    return _with(request, body, [_repaired(message, memory) for message in body.messages])


def _with(request: Request, body: Generate, messages: list[Message]) -> Request:
    changed = msgspec.structs.replace(body, messages=tuple(messages))
    return msgspec.structs.replace(request, body=changed)


def _unsigned(message: Message) -> ToolCallPart | None:
    if message.role != "assistant":
        return None
    first: ToolCallPart | None = None
    for part in message.parts:
        match part:
            case ReasoningPart() if part.format == SIGNATURE_FORMAT and part.signature:
                return None
            case ToolCallPart() if signature_of(part, SIGNATURE_FORMAT) is not None:
                return None
            case ToolCallPart() if first is None:
                first = part
            case _:
                pass
    return first


def _repaired(message: Message, memory: Mapping[str, bytes]) -> Message:
    call = _unsigned(message)
    blob = memory.get(call.call_id) if call is not None else None
    # What another format remembered is an object of JSON; a signature is one word of base64.
    if blob is None or not blob.isascii() or blob[:1] in (b"{", b"["):
        return message
    # As reasoning in front of the call: that part means nothing to any other format.
    carrier = ReasoningPart(text="", signature=blob.decode("ascii"), format=SIGNATURE_FORMAT)
    parts: list[Part] = []
    for part in message.parts:
        parts += [carrier, part] if part is call else [part]
    return msgspec.structs.replace(message, parts=tuple(parts))
