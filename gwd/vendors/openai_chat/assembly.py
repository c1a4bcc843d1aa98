"""Puts what a server streams into parts: one open at a time, in order of first appearance.

A later part waits while a tool call is still incomplete: servers interleave calls, reuse an index for several of them,
leave ids out, repeat names, or number nothing at all. A call whose arguments are a complete JSON object is complete.
What begins again behind a complete call is held back until it is known to be another call and no repetition.
A call that never gets a name is none.
"""

from collections import deque
from typing import Any, Final

import msgspec

from gwd.core import ids
from gwd.core.events import Event, PartDelta, PartEnded, PartKind, PartStarted
from gwd.vendors.base import PartCount, together
from gwd.vendors.openai_chat.arguments import Arguments, FreeText, as_object
from gwd.vendors.openai_chat.signatures import FIELD, ORIGIN
from gwd.vendors.openai_chat.wire import ToolCallWire
from gwd.vendors.tool_names import ToolNames

_ENCODE: Final = msgspec.json.Encoder().encode


class _Part:
    """A part that has begun to arrive; `pending` is what has not been emitted yet."""

    __slots__ = (
        "arguments",
        "call_id",
        "echo_of",
        "extras",
        "format",
        "item_id",
        "kind",
        "name",
        "pending",
        "redacted",
        "signature",
        "summary",
        "vendor_id",
        "vendor_index",
    )

    def __init__(self, kind: PartKind) -> None:
        self.kind = kind
        self.pending: list[tuple[str, dict[str, Any] | None]] = []
        self.arguments = Arguments()
        self.echo_of: _Part | None = None
        self.extras: dict[str, Any] | None = None
        self.call_id: str | None = None
        self.name: str | None = None
        self.vendor_id: str | None = None
        self.vendor_index: int | None = None
        self.format: str | None = None
        self.redacted: str | None = None
        self.signature: str | None = None
        self.summary = False
        self.item_id: str | None = None


class Assembly:
    """Feed it pieces; take the events they complete from `events`. `origin` is the provider that answers."""

    def __init__(self, names: ToolNames, *, origin: str) -> None:
        self.events: list[Event] = []
        self.calls = 0
        self.has_lost_call = False
        self._names = names
        self._origin = origin
        self._queue: deque[_Part] = deque()
        self._count = PartCount()
        self._all_calls: list[_Part] = []
        self._ids: set[str] = set()
        self._index = 0
        self._is_open = False
        self.open_text: int | None = None
        """The index of the open part that more plain text would just continue: the stream's fast path."""
        self._reports_open_text = True

    @property
    def has_output(self) -> bool:
        return self._index > 0 or self._is_open or bool(self._queue)

    @property
    def has_whole_call(self) -> bool:
        """Whether a call has all of its arguments, or none. A call without a name is none at all."""
        return any(
            call.name is not None and (call.arguments.is_complete() or not call.arguments.text())
            for call in self._all_calls
        )

    def expect_cuts(self) -> None:
        """From now on every piece goes the long way: it may be the rest of a character."""
        self._reports_open_text, self.open_text = False, None

    def text(self, kind: PartKind, text: str, extras: dict[str, Any] | None = None) -> None:
        """Text of a kind; it continues the last part if that is of the same kind."""
        if not text and not extras:
            return
        last = self._queue[-1] if self._queue else None
        if last is None or last.kind != kind:
            last = self._append(_Part(kind))
        last.pending.append((text, extras))
        self._advance()

    def reasoning(
        self,
        text: str,
        *,
        format_: str | None,
        summary: bool,
        item_id: str | None,
        signature: str | None = None,
        redacted: str | None = None,
    ) -> None:
        """Reasoning with its origin; a change of origin starts a part of its own."""
        last = self._queue[-1] if self._queue else None
        same = (
            last is not None
            and last.kind == "reasoning"
            and redacted is None
            and last.redacted is None
            and last.signature is None
            and (last.format, last.summary) == (format_, summary)
        )
        if not same or last is None:
            last = self._append(_Part("reasoning"))
            last.format, last.summary, last.item_id = format_, summary, item_id
            last.redacted = redacted
        if text:
            last.pending.append((text, None))
        if signature:
            last.signature = signature
        self._advance()

    def tool_call(self, delta: ToolCallWire, *, whole: bool = False) -> None:
        """A piece of a call, or a whole one."""
        name, text = _said(delta)
        vendor_id = str(delta.id) if delta.id or delta.id == 0 else None
        part = None if whole else self._known_call(delta.index, vendor_id, name, text)
        echo_of: _Part | None = None
        if part is not None and name and part.name is not None and _begins_again(part):
            echo_of = part if name == part.name else None
            part = None
        if part is None:
            part = self._append(_Part("tool_call"))
            part.vendor_index = delta.index
            part.echo_of = echo_of
            if delta.custom is not None:
                part.arguments = FreeText()
            self._all_calls.append(part)
            self.calls += 1
        if part.vendor_id is None:
            part.vendor_id = vendor_id
        if part.name is None and name:
            part.name = name
        if delta.extra_content is not None:
            part.extras = {FIELD: delta.extra_content, ORIGIN: self._origin}
        part.arguments.add(text)
        if part is not self._queue[0]:
            part.arguments.is_complete()  # looked at as it comes: when its turn comes, many may
        self._advance()

    def finish(self) -> None:
        """The answer is over: everything that waited comes out."""
        while self._queue:
            head = self._queue[0]
            if head.kind == "tool_call" and head.name is None:
                self.has_lost_call = True
                self._drop_head()
            elif _is_echo(head):
                self._drop_head()
            else:
                self._emit_head()
                self._end_head()

    def _append(self, part: _Part) -> _Part:
        self._count.add(is_call=part.kind == "tool_call")
        self._queue.append(part)
        self.open_text = None
        return part

    def _known_call(
        self, index: int | None, vendor_id: str | None, name: str | None, text: str
    ) -> _Part | None:
        """The call that a piece belongs to, or None for one that is not known yet."""
        if vendor_id is None:
            last = self._last_call(index)
            same = last is None or not name or last.name is None or name == last.name
            return last if same else None
        known = self._call_of_id(vendor_id, index)
        if known is not None or name:
            return known  # A piece with a name and an id of its own is a call of its own.
        last = self._last_call(index) or self._call_of_id(vendor_id, None)
        if last is None or (
            last.vendor_id is not None and not text and last.arguments.is_complete()
        ):
            return None  # The name of a new call may come behind its id.
        return last

    def _call_of_id(self, vendor_id: str, index: int | None) -> _Part | None:
        for call in reversed(self._all_calls):
            if call.vendor_id == vendor_id and index in (None, call.vendor_index):
                return call
        return None

    def _last_call(self, index: int | None) -> _Part | None:
        if index is None:
            return self._all_calls[-1] if self._all_calls else None
        return next((c for c in reversed(self._all_calls) if c.vendor_index == index), None)

    def _advance(self) -> None:
        """Emit the head; end it when something waits behind it and it can't grow any more."""
        while self._queue:
            head = self._queue[0]
            if head.kind == "tool_call" and head.name is None:
                return  # Some servers send the id first: a call starts once its name is known.
            is_last = len(self._queue) == 1
            if head.echo_of is not None:
                if is_last or not (head.arguments.is_complete() or head.arguments.is_empty):
                    return
                if _is_echo(head):
                    self._drop_head()
                    continue
            self._emit_head()
            if is_last:
                if head.kind == "text" and self._reports_open_text:
                    self.open_text = self._index
                return
            if head.kind == "tool_call" and not head.arguments.is_complete():
                return
            self._end_head()

    def _emit_head(self) -> None:
        head = self._queue[0]
        if not self._is_open:
            self._start(head)
        if head.kind == "tool_call":
            self._emit_arguments(head.arguments.take())
        elif head.pending:
            index = self._index
            self.events += (
                PartDelta(index, text, extras) for text, extras in together(head.pending)
            )
            head.pending.clear()

    def _emit_arguments(self, texts: list[str]) -> None:
        self.events += [PartDelta(self._index, text) for text in texts]

    def _start(self, head: _Part) -> None:
        self._is_open = True
        if head.kind == "tool_call":
            call_id = head.vendor_id
            if call_id is None or call_id in self._ids:
                call_id = ids.mint("call_")
            self._ids.add(call_id)
            head.call_id = call_id
        self.events.append(
            PartStarted(
                self._index,
                head.kind,
                call_id=head.call_id,
                name=self._names.client(head.name or "") if head.kind == "tool_call" else None,
                format=head.format,
                redacted=head.redacted,
                summary=head.summary,
                item_id=head.item_id,
                extras=head.extras,
            )
        )
        head.extras = None

    def _end_head(self) -> None:
        head = self._queue.popleft()
        self.open_text = None
        if head.kind == "tool_call":
            self._emit_arguments(head.arguments.close())
        self.events.append(PartEnded(self._index, signature=head.signature, extras=head.extras))
        self._index += 1
        self._is_open = False

    def _drop_head(self) -> None:
        """A call that is none after all; nothing of it has come out."""
        self._queue.popleft()
        self.calls -= 1


def _said(delta: ToolCallWire) -> tuple[str | None, str]:
    """Name and arguments in a piece of a call; the arguments of a custom call are free text."""
    if delta.custom is not None:
        return delta.custom.name, delta.custom.input or ""
    if delta.function is not None:
        return delta.function.name, _arguments_text(delta.function.arguments)
    return None, ""


def _arguments_text(arguments: str | dict[str, Any] | None) -> str:
    """Arguments as JSON text; some servers send the object itself."""
    if isinstance(arguments, dict):
        return _ENCODE(arguments).decode()
    return arguments or ""


def _begins_again(call: _Part) -> bool:
    """Whether a piece with a name cannot go on with a call: it is complete already.

    Where the server gives ids, an empty object in front of a call's own arguments only holds their place.
    """
    if call.vendor_id is not None and call.arguments.is_placeholder:
        return False
    return call.arguments.is_complete()


def _is_echo(call: _Part) -> bool:
    """Whether a call only repeats the one it follows: it says nothing, or the same under the same id."""
    first = call.echo_of
    if first is None:
        return False
    text, said = call.arguments.text(), first.arguments.text()
    if not text.strip():
        return True
    if first.vendor_id is None or call.vendor_id not in (None, first.vendor_id):
        return False
    return text == said or as_object(text) == as_object(said)
