"""The arguments of one call while they come in pieces.

The time is linear in the text however it is cut: whether it is a whole object is told by its brackets, which are
followed as the pieces come, and it is read once, when the last of them is there.

Most servers send what is new. Some send everything so far each time, or the whole once more at the end, or a `{}` that
only holds the place. Each of these begins with a brace, so only pieces that do are looked at more closely.
"""

import re
from typing import Final

import msgspec

_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder().decode
_PLACEHOLDERS: Final = ("{", "{}", "{ }")
_LONGEST_PLACEHOLDER: Final = 8
MAX_FOLLOWED: Final = 1024 * 1024
MAX_SIGNS: Final = 200_000
"""Arguments beyond these are not looked at: what comes behind them waits for the end of the answer."""

MANY_PIECES: Final = 1_000
_BRACE_MAY_FOLLOW: Final = (":", ",", "[", '"')
_SIGN: Final = re.compile(r'["{}\[\]]')
_IN_STRING: Final = re.compile(r'["\\]')


class _Brackets:
    """Follows a text in pieces to the bracket that closes the one it begins with, if that is not too far away."""

    __slots__ = ("_depth", "_in_string", "_is_escaped", "_signs", "_size", "is_closed", "is_spoilt")

    def __init__(self) -> None:
        self._size = self._signs = 0
        self._depth = 0
        self._in_string = self._is_escaped = False
        self.is_closed = False
        self.is_spoilt = False
        """It does not begin with a brace, goes on behind the last one, or is too long to be looked at."""

    def add(self, text: str) -> None:
        if self.is_spoilt:
            return
        self._size += len(text)
        if self._size > MAX_FOLLOWED:
            self.is_spoilt = True
        elif self._depth:
            self._follow(text)
        elif text and not text.isspace():
            self.is_spoilt = self.is_closed or not text.lstrip().startswith("{")
            if not self.is_spoilt:
                self._follow(text)

    def _follow(self, text: str) -> None:
        place, end = 0, len(text)
        if self._is_escaped and text:
            self._is_escaped, place = False, 1
        while place < end:
            found = (_IN_STRING if self._in_string else _SIGN).search(text, place)
            if found is None:
                return
            place = found.end()
            sign = found[0]
            self._signs += 1
            if self._signs > MAX_SIGNS:
                self.is_spoilt = True
                return
            if sign == "\\":
                self._is_escaped = place == end
                place += 1
            elif sign == '"':
                self._in_string = not self._in_string
            elif sign in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    self.is_closed = True
                    self.is_spoilt = bool(text[place:].strip())
                    return


class Arguments:
    """Feed it pieces; `take` what may go on to the client, and `close` for the rest."""

    __slots__ = (
        "_brackets",
        "_doubted",
        "_is_cumulative",
        "_is_over",
        "_is_whole",
        "_length",
        "_pieces",
        "_restated",
        "_unfollowed",
        "_waiting",
    )

    def __init__(self, *, is_cumulative: bool = False) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._waiting: list[str] = []
        self._is_cumulative = is_cumulative
        self._is_over = False
        # Pieces that are either new or a restatement of everything; only the whole tells.
        self._doubted: list[str] = []
        self._restated: Arguments | None = None
        # How far it was looked at for being a whole object.
        self._brackets = _Brackets()
        self._unfollowed: list[str] = []
        self._is_whole: bool | None = None

    def add(self, text: str) -> None:
        if self._is_over or not text:
            return
        begins = text.lstrip()[:1] == "{"
        if self._restated is not None:
            self._is_over = begins and self.is_complete()
            if not self._is_over:
                self._doubted.append(text)
                self._unfollowed.append(text)
                self._restated.add(text)
            return
        if begins and self._pieces:
            text = self._news(text)
        if text:
            self._pieces.append(text)
            self._unfollowed.append(text)
            self._length += len(text)
            self._waiting.append(text)

    @property
    def is_empty(self) -> bool:
        return not (self._pieces or self._doubted)

    def text(self) -> str:
        return "".join(self._pieces) + "".join(self._doubted)

    @property
    def is_placeholder(self) -> bool:
        """Whether this may be no more than an empty object in front of the real one."""
        return (
            0 < self._length <= _LONGEST_PLACEHOLDER
            and "".join(self._pieces).strip() in _PLACEHOLDERS
        )

    def is_complete(self) -> bool:
        """Whether this is a whole JSON object; followed as far as it is asked for."""
        brackets = self._brackets
        if self._unfollowed:
            for text in self._unfollowed:
                brackets.add(text)
            self._unfollowed.clear()
        if brackets.is_spoilt or not brackets.is_closed:
            return False
        if self._is_whole is None:
            self._is_whole = as_object(self.text()) is not None
        return self._is_whole

    def take(self) -> list[str]:
        """What can go out now."""
        if not self._waiting or self.is_placeholder:
            return []
        return self._taken()

    def close(self) -> list[str]:
        """Everything that has not gone out; nothing more will come."""
        if self._restated is not None:
            self._settle(self._restated)
        self._is_over = True
        return self._taken()

    def _taken(self) -> list[str]:
        """What waited; as one text where that are very many pieces, since all of them go out at once."""
        taken, self._waiting = self._waiting, []
        return taken if len(taken) <= MANY_PIECES else ["".join(taken)]

    def _news(self, text: str) -> str:
        """What is new in a piece that begins with a brace."""
        if self.is_placeholder:
            self._pieces, self._waiting, self._length = [], [], 0
            self._follow_anew()
            return text
        if self.is_complete():
            self._is_over = True  # Only a repetition can follow a whole object.
            return ""
        if len(text) < self._length:
            return text
        collected = self.text()
        if not text.startswith(collected):
            return text
        # `{"a":` may go on with `{"a":1}`, an object inside; where no value can stand such a piece is no JSON.
        if not self._is_cumulative and collected.rstrip().endswith(_BRACE_MAY_FOLLOW):
            self._restated = Arguments(is_cumulative=True)
            self._restated.add(text)
            self._doubted.append(text)
            self._unfollowed.append(text)
            return ""
        self._is_cumulative = True
        return text[len(collected) :]

    def _settle(self, restated: "Arguments") -> None:
        """The pieces were new if all of them together are an object, and restated everything otherwise."""
        if self.is_complete():
            news = self._doubted
        else:
            collected = "".join(self._pieces)
            news = [restated.text().removeprefix(collected)]
        self._pieces += news
        self._waiting += news
        self._doubted, self._restated = [], None
        self._follow_anew()
        self._unfollowed += self._pieces

    def _follow_anew(self) -> None:
        self._brackets, self._unfollowed, self._is_whole = _Brackets(), [], None


class FreeText(Arguments):
    """The input of a custom call, which travels inside as `{"input": "…"}`: it is whole when nothing more can come."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        self._texts.append(text)

    def close(self) -> list[str]:
        super().add(_ENCODE({"input": "".join(self._texts)}).decode())
        return super().close()


def as_object(text: str) -> object | None:
    """The JSON object that a text is, or None."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        found: object = _DECODE(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found
