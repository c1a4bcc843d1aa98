"""Blocks and items of a kind that only one format knows, as text that names them to any other model.

Inside results and in earlier turns the text stands in the block's place, so that nothing vanishes unnoticed: an empty
result would tell the model that its tool found nothing.
"""

from typing import Any, Final

import msgspec

from gwd.core.errors import UnsupportedContent
from gwd.core.request import Family, Generate, Request, TextPart

TOOL_REFERENCE: Final = "tool_reference"
_SILENT: Final = frozenset(("type", "cache_control"))
# A run of this many characters without a space is data or a seal, and nothing to read.
_LONGEST_WORD: Final = 512
_ENCODE: Final = msgspec.json.Encoder().encode


def described(block: dict[str, Any]) -> str:
    """What a model that does not know the block's kind is told of it: the kind, and what can be read of the rest."""
    kind = block.get("type")
    named = kind if isinstance(kind, str) and kind else "unknown"
    if named == TOOL_REFERENCE and isinstance(name := block.get("tool_name"), str):
        return f"[{named}: {name}]"
    rest = {
        name: _readable(value)
        for name, value in block.items()
        if name not in _SILENT and value is not None
    }
    return f"[{named}: {_ENCODE(rest).decode()}]" if rest else f"[{named}]"


def refuse_foreign_question(request: Request, family: Family | None, model: str) -> None:
    """Refuse a last user message of which a vendor of `family` could read nothing.

    Answered all the same, it would be answered from nothing. Raises UnsupportedContent naming the blocks.
    """
    if request.family == family or not isinstance(request.body, Generate):
        return
    last = next((m for m in reversed(request.body.messages) if m.role != "system"), None)
    if last is None or last.role != "user":
        return
    kinds = set()
    for part in last.parts:
        if not isinstance(part, TextPart):
            return
        kind = (part.extras or {}).get("type")
        if part.text.strip() and (part.extras is None or part.text != described(part.extras)):
            return
        if isinstance(kind, str):
            kinds.add(kind)
    if kinds:
        named = ", ".join(sorted(kinds))
        raise UnsupportedContent(
            f"the last message holds nothing that `{model}` can read: it cannot take blocks of type {named};"
            " send text as well, or use a model of the vendor that knows them",
            param="messages",
        )


def _readable(value: Any) -> Any:
    match value:
        case str() if len(value) > _LONGEST_WORD and " " not in value[:_LONGEST_WORD]:
            return f"… ({len(value)} characters)"
        case dict():
            return {name: _readable(each) for name, each in value.items()}
        case list():
            return [_readable(each) for each in value]
        case _:
            return value
