"""Whose reasoning a thinking block holds, read from its signature, which every client sends back unchanged.

The messages format has one kind of thinking block, signed by one vendor. Reasoning that another vendor made is shown
in the same block; its own signature (encrypted content, thought signature) travels there too, behind a mark that
names its format. The vendor's own signatures are base64 and never hold a colon, so the mark cannot be mistaken.
"""

from typing import Final

from gwd.core.request import ReasoningPart

OWN_FORMAT: Final = "anthropic-claude-v1"
_MARK: Final = "gw1"


def signature_for(
    signature: str | None, *, format_: str, summary: bool, item_id: str | None
) -> str:
    """The signature to show a messages client; empty where the reasoning carries none."""
    if not signature or format_ == OWN_FORMAT:
        return signature or ""
    return ":".join((_MARK, format_, "s" if summary else "t", item_id or "", signature))


def reasoning_from(text: str, signature: str | None) -> ReasoningPart:
    """The part a replayed thinking block stands for; without a signature nobody can take it back."""
    if not signature:
        return ReasoningPart(text=text)
    pieces = signature.split(":", 4)
    if len(pieces) != 5 or pieces[0] != _MARK:
        return ReasoningPart(text=text, signature=signature, format=OWN_FORMAT)
    _, format_, kind, item_id, own = pieces
    return ReasoningPart(
        text=text,
        signature=own,
        format=format_,
        summary=kind == "s",
        item_id=item_id or None,
    )
