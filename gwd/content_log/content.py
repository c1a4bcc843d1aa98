"""What is stored of a request and its answer: the internal form as plain values, hidden and bounded on the way.

Whole and streamed answers, and those that broke off, go the same way: the events that reached the client, collected.
Of pictures and files kind and size are stored, of lists of tokens their length, of what only vendors read nothing.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, Literal

import msgspec

from gwd.core.events import Completion, Event, Finished, PartEnded, PartStarted, Started, collect
from gwd.core.personal_data import Redactor
from gwd.core.request import Embed, InlineSource, ReasoningPart, Request

MAX_CHARACTERS: Final = 1024 * 1024
"""Of a request, and of an answer; what is longer is cut off there."""

_ITEM_COST: Final = 8  # of each field and element, so that many small ones are bounded too
_MARGIN: Final = 1024  # what is hidden begins before the cut and may end behind it
_SHORTEST_NUMBER: Final = 10**6
_LONGEST_WORD: Final = 2048
_JUDGED: Final = 64 * 1024  # by its beginning: of a long text that would be one long call
_OPAQUE: Final = re.compile(r"[A-Za-z0-9+/_=-]++")
_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?[^,]{0,200};base64,", re.ASCII)
_NOT_STORED: Final = {
    Request: frozenset(
        (
            *("family", "sender", "include_cost", "include_receipt", "sent_parameters"),
            *("dropped_tools", "vendor_headers", "own_fields", "body_bytes", "replay_reasoning"),
        )
    ),
    ReasoningPart: frozenset(("signature", "redacted")),
}


Side = Literal["request", "answer"]


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """`answer` is None where nothing reached the client. `cut` names what was longer than is stored."""

    request: dict[str, Any]
    answer: dict[str, Any] | None
    cut: tuple[Side, ...]


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Content)


def content_of(request: Request, events: Sequence[Event], redactor: Redactor) -> Content:
    """What is stored of them."""
    asked, answered = _Walk(redactor), _Walk(redactor)
    shown = asked.value(request)
    completion = _collected(events)
    answer = None
    if completion is not None:
        answer = {
            "parts": answered.value(completion.parts),
            "finish_reason": completion.finished.reason,
            "explanation": answered.value(completion.finished.explanation),
            "embeddings": len(completion.vectors),
        }
        answer = {name: value for name, value in answer.items() if value}
    walks: dict[Side, _Walk] = {"request": asked, "answer": answered}
    return Content(
        request=shown,
        answer=answer,
        cut=tuple(name for name, walk in walks.items() if walk.was_cut),
    )


def encode(content: Content) -> bytes:
    """As bytes, to be sealed."""
    return _encoder.encode(content)


def decode(data: bytes) -> Content:
    """What was encoded."""
    return _decoder.decode(data)


def _collected(events: Sequence[Event]) -> Completion | None:
    """The answer as far as it came; None where there is none of it."""
    if not events:
        return None
    whole = list(events)
    open_part: int | None = None
    for event in events:
        if isinstance(event, PartStarted):
            open_part = event.index
        elif isinstance(event, PartEnded):
            open_part = None
    if open_part is not None:
        whole.append(PartEnded(open_part))
    if not isinstance(events[0], Started):
        whole.insert(0, Started())
    if not isinstance(events[-1], Finished):
        whole.append(Finished(None))
    return collect(whole)


class _Walk:
    """One walk over a value, with room for so many characters."""

    def __init__(self, redactor: Redactor) -> None:
        self.was_cut = False
        self._redactor = redactor
        self._left = MAX_CHARACTERS

    def value(self, value: Any) -> Any:
        """The value without what has to be hidden, as far as there is room."""
        match value:
            case str():
                return self._text(value)
            case bool() | float() | None:
                return value
            case int():
                return _number(self._redactor, value)
            case InlineSource():
                size = len(value.data.rstrip("=")) * 3 // 4
                return {"type": "inline", "media_type": value.media_type, "bytes": size}
            case msgspec.Struct():
                return self._struct(value)
            case dict():
                return self._fields(value.items())
            case _:
                return self._elements(value)

    def _struct(self, struct: msgspec.Struct) -> dict[str, Any]:
        """Its fields that differ from their defaults, and its kind where it is one of several."""
        tag = struct.__struct_config__.tag
        fields = [("type", tag)] if isinstance(tag, str) else []
        for name, default in _stored_fields(type(struct)):
            value = getattr(struct, name)
            if name == "inputs" and isinstance(struct, Embed):
                value = [each if isinstance(each, str) else _tokens(each) for each in value]
            if value != default:
                fields.append((name, value))
        return self._fields(fields)

    def _fields(self, fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        shown = {}
        for name, value in fields:
            if not self._has_room():
                break
            shown[self._redactor.text(name)] = self.value(value)
        return shown

    def _elements(self, values: Iterable[Any]) -> list[Any]:
        shown = []
        for value in values:
            if not self._has_room():
                break
            shown.append(self.value(value))
        return shown

    def _has_room(self) -> bool:
        self._left -= _ITEM_COST
        if self._left <= 0:
            self.was_cut = True
        return self._left > 0

    def _text(self, text: str) -> str:
        if (about := _about_bytes(text)) is not None:
            return about
        shown = _hidden(self._redactor, text[: self._left + _MARGIN])
        if len(shown) > self._left:
            shown, self.was_cut = shown[: max(0, self._left)], True
        self._left -= len(shown)
        return shown


@cache
def _stored_fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """(name, default) of the fields that are stored."""
    left_out = _NOT_STORED.get(kind, frozenset())
    return tuple(
        (each.name, each.default)
        for each in msgspec.structs.fields(kind)
        if each.name not in left_out
    )


def _about_bytes(text: str) -> str | None:
    """What stands for bytes written as text; None for a text."""
    if (found := _DATA_URL.match(text)) is not None:
        return f"[{found[1] or 'data'}, {(len(text) - found.end()) * 3 // 4} bytes]"
    if len(text) > _LONGEST_WORD and _OPAQUE.fullmatch(text, 0, _JUDGED) is not None:
        return f"[{len(text)} characters]"
    return None


def _hidden(redactor: Redactor, text: str) -> str:
    """A text without what has to be hidden; in a JSON text, such as a call's arguments, it is looked for unescaped."""
    if text[:1] in ("{", "["):
        try:
            tree = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return redactor.text(text)
        shown = _hidden_in(redactor, tree)
        if shown != tree:
            text = msgspec.json.encode(shown).decode()
    return redactor.text(text)


def _hidden_in(redactor: Redactor, tree: Any) -> Any:
    match tree:
        case str():
            return _hidden(redactor, tree)
        case bool() | float() | None:
            return tree
        case int():
            return _number(redactor, tree)
        case dict():
            return {
                redactor.text(name): _hidden_in(redactor, value) for name, value in tree.items()
            }
        case _:
            return [_hidden_in(redactor, value) for value in tree]


def _number(redactor: Redactor, number: int) -> int | str:
    """A number may be that of a card or of a phone."""
    if abs(number) < _SHORTEST_NUMBER:
        return number
    shown = redactor.text(str(number))
    return number if shown == str(number) else shown


def _tokens(tokens: Sequence[int]) -> str:
    return f"[{len(tokens)} tokens]"
