"""How every adapter reads vendor bytes: strictly by its typed shape, and once more in a lenient way if that fails.

The first reading is a msgspec decoder and nothing else; only what it refuses comes here. The second one takes what
`gwd.core.lenient_json` takes, and values of another type than the shape says where their meaning is plain. A character
that was cut between two pieces of text, reasoning, refusal or arguments is put together in the events (`join`).
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from gwd.core.events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted, Started
from gwd.core.lenient_json import (
    UNREADABLE,
    Seams,
    has_marks,
    legible,
    read,
    value_in,
    whole_text,
    without_marks,
)
from gwd.core.sse import Frame

MAX_MISFITS: Final = 8
MAX_LINES: Final = 10_000

# The names that lead to the pieces of an answer in the formats of all vendors, and the names of the pieces.
_WAY: Final = frozenset(
    (
        *("choices", "delta", "message", "content", "tool_calls", "function", "custom"),
        *("function_call", "reasoning_details", "thinking", "content_block"),
        *("candidates", "parts", "part", "item", "summary", "response", "output"),
    )
)
_PIECES: Final = frozenset(
    (
        *("content", "text", "thinking", "reasoning_content", "reasoning", "refusal"),
        *("arguments", "input", "partial_json", "delta", "summary"),
    )
)
_MISFIT: Final = re.compile(r"Expected `(?P<type>[^`]+)`, got `\w+` - at `\$(?P<path>[^`]*)`$")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")

T = TypeVar("T")


class SecondReading:
    """The lenient reading of one answer. `has_cuts` is whether a character in it may have been cut."""

    def __init__(self) -> None:
        self.has_cuts = False
        self._seams = Seams()
        self._index = 0

    def first(self, shape: Callable[[bytes], T], data: bytes) -> T:
        """`data` by the decoder of its shape, and by the second reading only where that fails."""
        try:
            return shape(data)
        except UNREADABLE:
            return self.read(data, shape)

    def read(self, data: bytes, shape: Callable[[bytes], T]) -> T:
        """`data` by the decoder of its shape. Raises what is UNREADABLE."""
        text = legible(data)
        value = value_in(text)
        if has_marks(text):
            self.has_cuts = True
            value = _cut_only_on_the_way(value)
        return _fitted(value, shape)

    def join(self, events: list[Event]) -> list[Event]:
        """Events of the answer, in which all text is whole."""
        if not self.has_cuts:
            return events
        joined: list[Event] = []
        for event in events:
            match event:
                case PartDelta():
                    self._index = event.index
                    text, extras = self._seams.join(event.text), without_marks(event.extras)
                    if text or extras:
                        joined.append(PartDelta(event.index, text, extras))
                case PartStarted():
                    self._index = event.index
                    item, extras = without_marks(event.item), without_marks(event.extras)
                    joined.append(msgspec.structs.replace(event, item=item, extras=extras))
                case PartEnded():
                    extras = without_marks(event.extras)
                    joined += [*self._rest(), msgspec.structs.replace(event, extras=extras)]
                case Failed():
                    joined += [*self._rest(), event]
                case Started() | Finished():
                    extras = without_marks(event.extras)
                    joined.append(msgspec.structs.replace(event, extras=extras))
                case _:
                    joined.append(event)
        return joined

    def _rest(self) -> list[Event]:
        text = self._seams.close()
        return [PartDelta(self._index, text)] if text else []


def reader(shape: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """The function that reads a whole value, by the decoder of its shape, in which no text goes on elsewhere."""

    def read_whole(data: bytes) -> T:
        try:
            return shape(data)
        except UNREADABLE:
            text = legible(data)
        return _fitted(value_in(whole_text(text)), shape)

    return read_whole


def read_any(data: bytes) -> Any:
    """A value of any shape. Raises what is UNREADABLE."""
    return read(data)


def lines_of(frame: Frame) -> list[Frame]:
    """The frames of a server that leaves out the blank lines between its events; empty if this is not that."""
    if not 0 < frame.data.count(b"\n") <= MAX_LINES:
        return []
    lines = [line.strip() for line in frame.data.split(b"\n")]
    lines = [line for line in lines if line]
    if len(lines) < 2 or any(line[:1] != b"{" and line != b"[DONE]" for line in lines):
        return []
    return [Frame(frame.event, line) for line in lines]


def _cut_only_on_the_way(value: Any) -> Any:
    """The value with marks in the pieces of the answer only: nothing goes on elsewhere."""
    if isinstance(value, list):
        return [_cut_only_on_the_way(item) for item in value]
    if not isinstance(value, dict):
        return without_marks(value)
    kept: dict[str, Any] = {}
    for name, field in value.items():
        if isinstance(field, str):
            kept[whole_text(name)] = field if name in _PIECES else whole_text(field)
        elif isinstance(field, dict | list):
            on_the_way = name in _WAY
            kept[whole_text(name)] = (
                _cut_only_on_the_way(field) if on_the_way else without_marks(field)
            )
        else:
            kept[whole_text(name)] = field
    return kept


def _fitted(value: Any, shape: Callable[[bytes], T]) -> T:
    """The value in its shape, after what has another type than that says was put right."""
    for _ in range(MAX_MISFITS):
        try:
            return shape(msgspec.json.encode(value))
        except msgspec.ValidationError as error:
            if not _put_right(value, str(error)):
                raise
    return shape(msgspec.json.encode(value))


def _put_right(value: Any, complaint: str) -> bool:
    """Put right what a decoder complains of: a number for a name or an id, text that is a number, an empty value of any
    type for none. False where something would be lost by it."""
    found = _MISFIT.search(complaint)
    steps = (
        [int(place) if place else name for name, place in _STEP.findall(found["path"])]
        if found
        else []
    )
    if found is None or not steps:
        return False
    try:
        for step in steps[:-1]:
            value = value[step]
        last, wrong = steps[-1], value[steps[-1]]
    except (KeyError, IndexError, TypeError):
        return False
    wanted = found["type"]
    if isinstance(value, list):
        if wanted != "object" or wrong is not None:
            return False
        value[:] = [item for item in value if item is not None]
    elif "int" in wanted and (whole := _whole_number(wrong)) is not None:
        value[last] = whole
    elif "str" in wanted and last not in _PIECES and isinstance(wrong, bool | int | float):
        value[last] = msgspec.json.encode(wrong).decode()
    elif not wrong or last in ("usage", "usageMetadata"):
        del value[last]
    else:
        return False
    return True


def _whole_number(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return None
