"""The arguments of one call while they come in pieces.

Most servers send what is new. Some send everything so far each time, or the whole once more at the end, or a `{}` that
only holds the place. Each of these begins with a brace, so only pieces that do are looked at more closely.
"""

from typing import Final

import msgspec

_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder().decode
_PLACEHOLDERS: Final = ("{", "{}", "{ }")
_LONGEST_PLACEHOLDER: Final = 8
_BRACE_MAY_FOLLOW: Final = (":", ",", "[", '"')


class Arguments:
    """Feed it pieces; `take` what may go on to the client, and `close` for the rest."""

    __slots__ = (
        "_doubted",
        "_is_cumulative",
        "_is_over",
        "_length",
        "_pieces",
        "_restated",
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

    def add(self, text: str) -> None:
        if self._is_over or not text:
            return
        begins = text.lstrip()[:1] == "{"
        if self._restated is not None:
            self._is_over = begins and self.is_complete()
            if not self._is_over:
                self._doubted.append(text)
                self._restated.add(text)
            return
        if begins and self._pieces:
            text = self._news(text)
        if text:
            self._pieces.append(text)
            self._length += len(text)
            self._waiting.append(text)

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
        return self._may_be_whole() and as_object(self.text()) is not None

    def take(self) -> list[str]:
        """What can go out now."""
        if not self._waiting or self.is_placeholder:
            return []
        taken, self._waiting = self._waiting, []
        return taken

    def close(self) -> list[str]:
        """Everything that has not gone out; nothing more will come."""
        if self._restated is not None:
            self._settle(self._restated)
        self._is_over = True
        taken, self._waiting = self._waiting, []
        return taken

    def _news(self, text: str) -> str:
        """What is new in a piece that begins with a brace."""
        if len(text) < self._length and not self._may_be_whole():
            return text
        collected = self.text()
        if self.is_placeholder:
            self._pieces, self._waiting, self._length = [], [], 0
            return text
        if as_object(collected) is not None:
            self._is_over = True  # Only a repetition can follow a whole object.
            return ""
        if not text.startswith(collected):
            return text
        # `{"a":` may go on with `{"a":1}`, an object inside; where no value can stand such a piece is no JSON.
        if not self._is_cumulative and collected.rstrip().endswith(_BRACE_MAY_FOLLOW):
            self._restated = Arguments(is_cumulative=True)
            self._restated.add(text)
            self._doubted.append(text)
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

    def _may_be_whole(self) -> bool:
        """Cheap: whether the last piece that is no blank ends like an object."""
        last = next(
            (piece for piece in reversed(self._doubted or self._pieces) if piece.strip()), ""
        )
        return last.rstrip().endswith("}")


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
