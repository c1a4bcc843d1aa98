"""Puts what a server streams into parts: one open at a time, in the order in which they appeared."""

from collections import deque
from typing import Any

import msgspec

from gwd.core.events import Event, PartDelta, PartEnded, PartStarted
from gwd.vendors.base import PartCount, together


class Slot:
    """A part on its way. What arrives before its turn waits in `pending`."""

    __slots__ = ("annotations", "is_closed", "length", "opening", "pending", "signature")

    def __init__(self, opening: PartStarted) -> None:
        self.opening = opening
        self.pending: list[tuple[str, dict[str, Any] | None]] = []
        self.length = 0
        self.is_closed = False
        self.signature: str | None = None
        self.annotations: list[dict[str, Any]] = []


class Parts:
    """Open slots, feed them, close them in any order; the events come out by the grammar. Take them from `events`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.calls = 0
        self._queue: deque[Slot] = deque()
        self._count = PartCount()
        self._index = 0
        self._head_is_open = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the answer has appeared yet."""
        return self._index == 0 and not self._queue

    def open(self, opening: PartStarted) -> Slot:
        """A new part, behind those that are not complete yet; its index is given when its turn comes."""
        slot = Slot(opening)
        self._count.add(is_call=opening.kind == "tool_call")
        if opening.kind == "tool_call":
            self.calls += 1
        self._queue.append(slot)
        self._advance()
        return slot

    def feed(self, slot: Slot, text: str, extras: dict[str, Any] | None = None) -> None:
        if slot.is_closed or not (text or extras):
            return
        slot.length += len(text)
        if self._head_is_open and self._queue[0] is slot:
            self.events.append(PartDelta(self._index, text, extras))
        else:
            slot.pending.append((text, extras))

    def complete(self, slot: Slot, text: object, extras: dict[str, Any] | None = None) -> None:
        """The vendor repeats the whole text: whatever its deltas left out is added; `extras` if they left out all."""
        if isinstance(text, str) and len(text) > slot.length:
            self.feed(slot, text[slot.length :], None if slot.length else extras)

    def close(self, slot: Slot) -> None:
        if not slot.is_closed:
            slot.is_closed = True
            self._advance()

    def close_all(self) -> None:
        """The answer is over."""
        for slot in list(self._queue):
            self.close(slot)

    def _advance(self) -> None:
        while self._queue:
            head = self._queue[0]
            if not self._head_is_open:
                self._start(head)
            if not head.is_closed:
                return
            if head.opening.kind == "tool_call" and head.length == 0:
                self.events.append(PartDelta(self._index, "{}"))
            annotations = [_nested(annotation) for annotation in head.annotations]
            extras = {"annotations": annotations} if annotations else None
            self.events.append(PartEnded(self._index, head.signature, extras))
            self._queue.popleft()
            self._index += 1
            self._head_is_open = False

    def _start(self, head: Slot) -> None:
        self._head_is_open = True
        self.events.append(msgspec.structs.replace(head.opening, index=self._index))
        self.events += (
            PartDelta(self._index, text, extras) for text, extras in together(head.pending)
        )
        head.pending.clear()


def logprobs_of(found: object) -> dict[str, Any] | None:
    """Token probabilities as the chat format holds them: the form in which they travel between formats."""
    return {"logprobs": {"content": found}} if found and isinstance(found, list) else None


def _nested(annotation: dict[str, Any]) -> dict[str, Any]:
    """A citation as the chat format nests it: the form in which annotations travel between formats."""
    if annotation.get("type") != "url_citation" or "url_citation" in annotation:
        return annotation
    fields = {name: value for name, value in annotation.items() if name != "type"}
    return {"type": "url_citation", "url_citation": fields}
