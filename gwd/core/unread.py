"""Blocks that only their own vendor format can read (see dialects/messages/blocks), where nothing else is said."""

from gwd.core.errors import InvalidRequest
from gwd.core.request import Family, Generate, Request, TextPart


def refuse_unread_question(request: Request, family: Family | None) -> None:
    """Refuse a last user message of which a vendor of `family` would see nothing (api.md 5.2).

    Left out, it would let the vendor answer an earlier question. Raises InvalidRequest naming the blocks.
    """
    if request.family == family or not isinstance(request.body, Generate):
        return
    last = next((m for m in reversed(request.body.messages) if m.role != "system"), None)
    if last is None or last.role != "user":
        return
    kinds = set()
    for part in last.parts:
        if not isinstance(part, TextPart) or part.text.strip():
            return
        kind = (part.extras or {}).get("type")
        if isinstance(kind, str):
            kinds.add(kind)
    if kinds:
        named = ", ".join(sorted(kinds))
        raise InvalidRequest(
            f"the last message holds nothing that this model can read: it cannot take blocks of type {named}",
            param="messages",
        )
