"""`reasoning_details` in both directions: what a client replays, and what it is shown."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec

from gwd.core.request import ReasoningPart
from gwd.dialects.chat_completions.wire import MessageWire, ReasoningDetailWire

ANTHROPIC: Final = "anthropic-claude-v1"
FORMATS: Final = (ANTHROPIC, "openai-responses-v1", "google-gemini-v1")
Detail = dict[str, Any]


def reasoning_parts(wire: MessageWire, *, skip_ids: Collection[str]) -> Iterator[ReasoningPart]:
    """The reasoning an assistant message replays. Details win over the plain text, which repeats them.

    An encrypted detail that follows a summary of the same item is that item's signature, not a part of its own.
    `skip_ids` are the details that belong to tool calls.
    """
    open_part: ReasoningPart | None = None
    details = [d for d in wire.reasoning_details or () if d.id is None or d.id not in skip_ids]
    if not details:
        text = wire.reasoning_content or wire.reasoning
        if text:
            yield ReasoningPart(text=text)
        return
    for detail in details:
        if detail.type == "reasoning.encrypted" and open_part and _proves(detail, open_part):
            yield msgspec.structs.replace(open_part, signature=detail.data)
            open_part = None
            continue
        if open_part is not None:
            yield open_part
        open_part = _part(detail)
    if open_part is not None:
        yield open_part


def tool_signatures(
    details: Sequence[ReasoningDetailWire] | None, call_ids: Collection[str]
) -> dict[str, ReasoningDetailWire]:
    """Signatures that a vendor put on tool calls: encrypted details whose id is a call's id."""
    return {
        detail.id: detail
        for detail in details or ()
        if detail.type == "reasoning.encrypted"
        and detail.id is not None
        and detail.id in call_ids
        and detail.data
    }


def text_detail(part: ReasoningPart, *, index: int, text: str) -> Detail:
    """A piece of readable reasoning, or all of it."""
    if part.summary:
        return _detail("reasoning.summary", part, index, {"summary": text})
    return _detail("reasoning.text", part, index, {"text": text})


def closing_detail(part: ReasoningPart, *, index: int, signature: str) -> Detail:
    """The signature that ends a piece of reasoning: in place for signed text, a detail of its own elsewhere."""
    if has_own_detail(part):
        return encrypted_detail(
            signature, part_format=part.format, item_id=part.item_id, index=index
        )
    return _detail("reasoning.text", part, index, {"text": None, "signature": signature})


def has_own_detail(part: ReasoningPart) -> bool:
    """Whether the signature of this reasoning is shown beside it; Anthropic's signature belongs to the text itself."""
    return part.summary or part.format not in (ANTHROPIC, "unknown")


def encrypted_detail(data: str, *, part_format: str, item_id: str | None, index: int) -> Detail:
    return {
        "type": "reasoning.encrypted",
        "data": data,
        "format": part_format if part_format in FORMATS else "unknown",
        "id": item_id,
        "index": index,
    }


def _detail(kind: str, part: ReasoningPart, index: int, fields: Detail) -> Detail:
    known = part.format if part.format in FORMATS else "unknown"
    return {"type": kind, **fields, "format": known, "id": part.item_id, "index": index}


def _part(detail: ReasoningDetailWire) -> ReasoningPart | None:
    known = detail.format if detail.format in FORMATS else "unknown"
    match detail.type:
        case "reasoning.text":
            return ReasoningPart(
                text=detail.text or "",
                signature=detail.signature,
                format=known,
                item_id=detail.id,
            )
        case "reasoning.summary":
            return ReasoningPart(
                text=detail.summary or "", summary=True, format=known, item_id=detail.id
            )
        case "reasoning.encrypted" if detail.data:
            if known == ANTHROPIC:
                return ReasoningPart(redacted=detail.data, format=known, item_id=detail.id)
            return ReasoningPart(signature=detail.data, format=known, item_id=detail.id)
        case _:
            return None


def _proves(detail: ReasoningDetailWire, part: ReasoningPart) -> bool:
    same_format = (detail.format if detail.format in FORMATS else "unknown") == part.format
    return (
        same_format
        and part.format != ANTHROPIC
        and part.signature is None
        and bool(part.text)
        and detail.id == part.item_id
        and bool(detail.data)
    )
