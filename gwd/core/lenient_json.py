"""JSON as vendors and models really write it: the second reading, for what the strict one refuses.

NaN and the infinities become null, control characters may stand inside strings, byte order marks in front of the value
and NULs behind it are passed over. Half a surrogate pair, and bytes that are no UTF-8, may be the end of a piece of
text whose next piece begins with the rest of the character. They are read as marks (characters for private use), so
that they travel like any other text until `Seams` joins the pieces; what stays alone becomes U+FFFD. The marks lie
where no font and no standard puts anything (U+10F000 to U+10F8FF): in an answer with cut characters one of these is
not told from a mark.
"""

import codecs
import json
import re
from typing import Any, Final

import msgspec

MAX_LENIENT_BYTES: Final = 4 * 1024 * 1024
MAX_ODD_STRUCTURE: Final = 500_000
MAX_SURROGATES: Final = 50_000
"""The second reading is several times slower than the first: what is larger is not worth stopping everybody for."""

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a strict reading raises, and this one too."""

_BOM_AND_BLANKS: Final = "\ufeff \t\r\n\x00"
_MOST_BAD_BYTES: Final = 10_000
_FIRST_HALF: Final = 0x10F000  # + the surrogate, less U+D800
_FIRST_BYTE: Final = 0x10F800  # + the byte
_MARK: Final = re.compile("[\U0010f000-\U0010f8ff]")
_MARKS: Final = re.compile("([\U0010f000-\U0010f8ff]+)")
_SURROGATES: Final = re.compile(
    r"(?<!\\)(\\++)(u[dD][89a-fA-F][0-9a-fA-F]{2})((?<=u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2})?"
)
_NO_NUMBER: Final = re.compile(
    r'("(?:[^"\\]++|\\.)*+(?:"|\\?\Z))|[-+]?+\b(?:nan|inf(?:inity)?)\b', re.DOTALL | re.IGNORECASE
)
# Text as bytes in which halves of a pair are written like characters of three bytes.
_PAIR: Final = re.compile(rb"(\xed[\xa0-\xaf][\x80-\xbf])(\xed[\xb0-\xbf][\x80-\xbf])")
_LONE_HALF: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_CUT_CHARACTER: Final = re.compile(
    rb"(?:\xed[\xa0-\xaf][\x80-\xbf])?"
    rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})?\Z"
)
_LONGEST_CUT: Final = 5
_REPLACEMENT: Final = "\ufffd".encode()


def legible(data: bytes | str) -> str:
    """JSON text with marks for what is cut in it. Raises DecodeError for more than is worth a second reading."""
    if len(data) > MAX_LENIENT_BYTES:
        raise msgspec.DecodeError("it is not strict JSON, and too large to be read otherwise")
    text = data if isinstance(data, str) else _marked_bytes(data)
    if sum(map(text.count, "{[,")) > MAX_ODD_STRUCTURE:
        raise msgspec.DecodeError("it has too many elements")
    text = text.strip(_BOM_AND_BLANKS)
    surrogates = text.count("\\ud") + text.count("\\uD")
    if surrogates > MAX_SURROGATES:
        raise msgspec.DecodeError("it holds too much that may be no text")
    return _SURROGATES.sub(_marked_half, text) if surrogates else text


def value_in(text: str) -> Any:
    """The value of legible JSON text, its marks kept. Raises DecodeError and RecursionError."""
    try:
        return json.loads(text, strict=False, parse_constant=_null)
    except ValueError:
        # A number of more digits than Python takes, or `nan` and `-inf` as C writes them.
        text = _NO_NUMBER.sub(lambda found: found[1] or "null", text, MAX_ODD_STRUCTURE)
    try:
        return json.loads(text, strict=False, parse_constant=_null, parse_int=_number)
    except json.JSONDecodeError as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from None


def read(data: bytes | str) -> Any:
    """Any JSON value, strictly where it is strict, and without marks. Raises what is UNREADABLE."""
    try:
        return msgspec.json.decode(data)
    except UNREADABLE:
        text = legible(data)
    return value_in(whole_text(text) if has_marks(text) else text)


def has_marks(text: str) -> bool:
    return _MARK.search(text) is not None


def whole_text(text: str) -> str:
    """The text with its marks joined to characters where they are whole, and U+FFFD for the others."""
    return _decoded(_bytes_of(text)) if has_marks(text) else text


def without_marks(value: Any) -> Any:
    """Any JSON value with all its texts whole."""
    if value is None:
        return None
    encoded = msgspec.json.encode(value).decode()
    return msgspec.json.decode(whole_text(encoded)) if has_marks(encoded) else value


class Seams:
    """The pieces of one text, one after the other: a character that was cut between two comes with the second."""

    def __init__(self) -> None:
        self._cut = b""

    def join(self, piece: str) -> str:
        """The piece as it may go out: its cut end waits for the next one."""
        if not self._cut and not has_marks(piece):
            return piece
        raw = self._cut + _bytes_of(piece)
        found = _CUT_CHARACTER.search(raw, max(0, len(raw) - _LONGEST_CUT))
        end = found.start() if found is not None else len(raw)
        self._cut = raw[end:]
        return _decoded(raw[:end])

    def close(self) -> str:
        """The text is over: what waited stays alone."""
        cut, self._cut = self._cut, b""
        return _decoded(cut)


def _marked_bytes(data: bytes) -> str:
    """Bytes as text; what lies between ASCII characters and is no UTF-8 as one mark for each byte."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        replaced = data.decode("utf-8", "replace")
    if replaced.count("\ufffd") > _MOST_BAD_BYTES:
        return replaced  # of another encoding, or of none
    return data.decode("utf-8", _BAD_BYTES)


def _mark_bad_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    bad = error.object[error.start : error.end]
    return "".join(chr(_FIRST_BYTE + byte) for byte in bad), error.end


_BAD_BYTES: Final = "gwd-mark-bad-bytes"
codecs.register_error(_BAD_BYTES, _mark_bad_bytes)


def _marked_half(found: re.Match[str]) -> str:
    """A lone half as its mark; whole pairs stay, and so does what an escaped backslash only makes look like one."""
    slashes, first, second = found.groups()
    if len(slashes) % 2 == 0:
        return slashes + first + (_mark_of(second) if second else "")
    return found[0] if second else slashes[1:] + _mark_of(first)


def _mark_of(escape: str) -> str:
    return chr(_FIRST_HALF + int(escape[-4:], 16) - 0xD800)


def _bytes_of(text: str) -> bytes:
    """The text with what its marks stand for."""
    pieces = _MARKS.split(text)
    return b"".join(
        b"".join(map(_meaning, piece)) if place % 2 else piece.encode()
        for place, piece in enumerate(pieces)
    )


def _meaning(mark: str) -> bytes:
    if ord(mark) >= _FIRST_BYTE:
        return bytes((ord(mark) - _FIRST_BYTE,))
    return chr(ord(mark) - _FIRST_HALF + 0xD800).encode("utf-8", "surrogatepass")


def _decoded(raw: bytes) -> str:
    raw = _PAIR.sub(_character, raw)
    return _LONE_HALF.sub(_REPLACEMENT, raw).decode("utf-8", "replace")


def _character(pair: re.Match[bytes]) -> bytes:
    halves = pair[0].decode("utf-8", "surrogatepass")
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le").encode()


def _null(_: str) -> None:
    """NaN, Infinity and -Infinity."""


def _number(digits: str) -> int | None:
    return int(digits) if len(digits) < 4_000 else None
