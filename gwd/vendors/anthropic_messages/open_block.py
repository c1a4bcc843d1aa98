"""A content block of an answer while it is being received."""

from typing import Any, Final

import msgspec

from gwd.core.events import PartKind
from gwd.core.lenient_json import UNREADABLE, read
from gwd.vendors.anthropic_messages.wire import Block, Delta

READ_BLOCKS: Final = frozenset(("text", "thinking", "redacted_thinking", "tool_use", ""))


class OpenBlock:
    """A block of the vendor's; deltas wait in `held` while another block is open."""

    __slots__ = ("block", "ended", "foreign", "held", "is_answer", "kind", "said", "signature")

    def __init__(self, block: Block, raw: msgspec.Raw, *, is_answer: bool) -> None:
        self.block = block
        self.foreign = None if block.type in READ_BLOCKS else ForeignBlock(raw)
        self.is_answer = is_answer
        self.held: list[tuple[str, dict[str, Any] | None]] = []
        self.said = False
        self.ended = False
        self.signature = block.signature or ""
        self.kind: PartKind
        match block.type:
            case "thinking" | "redacted_thinking":
                self.kind = "reasoning"
            case "tool_use" if not is_answer:
                self.kind = "tool_call"
            case _:
                self.kind = "text"


class ForeignBlock:
    """A block of a kind only its own clients know: it goes out as it came, completed by what was streamed of it."""

    def __init__(self, raw: msgspec.Raw) -> None:
        self._raw = raw
        self._input: list[str] = []
        self._content: list[str] = []

    def add(self, delta: Delta) -> None:
        if delta.partial_json:
            self._input.append(delta.partial_json)
        if isinstance(delta.content, str):
            self._content.append(delta.content)

    def block(self) -> dict[str, Any]:
        block: dict[str, Any] = read(bytes(self._raw)) if self._raw else {}
        if self._input:
            try:
                block["input"] = read("".join(self._input))
            except UNREADABLE:
                block["input"] = {}
        if self._content:
            block["content"] = "".join(self._content)
        return block
