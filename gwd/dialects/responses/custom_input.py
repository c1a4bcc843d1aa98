"""The text of a custom tool call, taken out of its internal form `{"input": "…"}` while it streams."""

import re
from typing import Final

import msgspec

from gwd.dialects.free_text import free_text

_OPENING: Final = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_OPENING_PREFIX: Final = re.compile(r'\s*(\{\s*("(i(n(p(u(t("\s*(:\s*)?)?)?)?)?)?)?)?)?')
# Whole characters of a JSON string body: a surrogate pair counts as one, a cut escape as none.
_WHOLE: Final = re.compile(
    r'(?:[^"\\]+|\\["\\/bfnrt]'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*"
)
_ODD_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r'|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\["\\/bfnrtu]|\\'
)
# Models write raw line breaks into JSON strings; the decoder wants them escaped.
_RAW_CONTROLS: Final = {code: f"\\u{code:04x}" for code in range(0x20)}


class CustomInput:
    """Feed it the JSON text as it comes; it gives back the input text that is certain so far."""

    def __init__(self) -> None:
        self._json = ""
        self._at = 0
        self._state: str = "opening"
        self.text = ""

    def feed(self, piece: str) -> str:
        """Input text that `piece` completes."""
        self._json += piece
        if self._state == "opening":
            opening = _OPENING.match(self._json)
            if opening is None:
                if not _OPENING_PREFIX.fullmatch(self._json):
                    self._state = "other"
                return ""
            self._at, self._state = opening.end(), "inside"
        return self._take() if self._state == "inside" else ""

    def close(self) -> str:
        """What remains: usually nothing; all of it where the model did not keep to the form."""
        if self._state == "closed":
            return ""
        if self._state == "inside":
            self._json = self._json[: self._at] + _ODD_ESCAPE.sub(_repaired, self._json[self._at :])
            return self._take()
        rest = free_text(self._json)
        self.text += rest
        return rest

    def _take(self) -> str:
        whole = _WHOLE.match(self._json, self._at)
        assert whole is not None
        self._at = whole.end()
        if self._json[self._at : self._at + 1] == '"':
            self._state = "closed"
        try:
            text = _unescaped(whole[0])
        except msgspec.DecodeError:
            self._state = "closed"
            return ""
        self.text += text
        return text


def _repaired(escape: re.Match[str]) -> str:
    """Half a surrogate pair becomes the replacement character, a backslash that escapes nothing itself."""
    text = escape[0]
    if len(text) == 6:
        return "\\ufffd"
    return "\\\\" if text == "\\" else text


def _unescaped(body: str) -> str:
    if "\\" not in body:
        return body
    return msgspec.json.decode(f'"{body.translate(_RAW_CONTROLS)}"', type=str)
