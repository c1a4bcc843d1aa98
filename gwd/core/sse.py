"""Server-sent events as bytes: an incremental splitter for upstreams, and safe framing for clients.

Lines end in LF, CRLF or CR only; bytes are cut before they are decoded, so a character split by the network
stays whole. Comments and unknown fields are ignored, multi-line data is joined with LF.
"""

import re
from typing import Final

import msgspec

MAX_LINE_BYTES: Final = 1024 * 1024
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
MAX_EVENT_LINES: Final = 10_000
COMMENT: Final = b": GW PROCESSING\n\n"
DONE: Final = b"data: [DONE]\n\n"

BOM: Final = b"\xef\xbb\xbf"
_BOMS: Final = re.compile(rb"(?:\xef\xbb\xbf)+")


class SseError(ValueError):
    """The upstream's framing is beyond what we take: an oversized line or event, or one of too many lines."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One event: its `event:` name (empty if none) and its data bytes."""

    event: bytes
    data: bytes


class SseSplitter:
    """Feed it bytes as they come; it gives back the events they complete.

    The time is linear in the bytes however they are cut: an unfinished event is kept in pieces, which are counted as
    they come and joined once, when its end is there.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._lines = 0
        self._line_size = 0
        self._is_after_cr = False
        self._at_start = True
        self._error: SseError | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Events completed by `data`.

        Raises SseError when an event grows past the limits; what was complete before it is given back first.
        """
        if self._error is not None:
            raise self._error
        if self._at_start:
            data = self._without_mark(data)
        if self._is_after_cr or b"\r" in data:
            data = self._with_line_feeds(data)
        if self._pieces:
            if not (b"\n\n" in data or (data[:1] == b"\n" and self._pieces[-1].endswith(b"\n"))):
                self._keep(data)
                return self._given([])
            data = b"".join((*self._pieces, data))
            self._pieces, self._size, self._lines, self._line_size = [], 0, 0, 0
        blocks = data.split(b"\n\n")
        rest = blocks.pop()
        frames = self._frames(blocks, has_large=len(data) > MAX_LINE_BYTES)
        self._keep(rest)
        return self._given(frames)

    def close(self) -> list[Frame]:
        """The last event, where the upstream left out the final blank line."""
        if self._error is not None:
            raise self._error
        rest, self._pieces = b"".join(self._pieces), []
        frame = _frame(rest)
        return [frame] if frame is not None else []

    def _given(self, frames: list[Frame]) -> list[Frame]:
        if self._error is not None and not frames:
            raise self._error
        return frames

    def _frames(self, blocks: list[bytes], *, has_large: bool) -> list[Frame]:
        """The events of complete blocks, up to one beyond the limits; only a large one can be that."""
        frames: list[Frame] = []
        try:
            for block in blocks:
                if has_large and len(block) > MAX_LINE_BYTES:
                    _check_size(block)
                if block.startswith(b"data: ") and b"\n" not in block:
                    frames.append(Frame(b"", block[6:]))  # by far the most frequent form
                elif (frame := _frame(block)) is not None:
                    frames.append(frame)
        except SseError as error:
            self._error = error
        return frames

    def _without_mark(self, data: bytes) -> bytes:
        """The stream's first bytes without byte order marks; nothing while they may be the beginning of one."""
        data = b"".join((*self._pieces, data))
        marks = _BOMS.match(data)
        data = data[marks.end() :] if marks is not None else data
        self._pieces = []
        if BOM.startswith(data):
            self._pieces = [data]
            return b""
        self._at_start = False
        return data

    def _with_line_feeds(self, data: bytes) -> bytes:
        """Every line ended by LF. A LF at the very beginning may be half of a CRLF, whose CR counted already."""
        if self._is_after_cr and data:
            data = data.removeprefix(b"\n")
            self._is_after_cr = False
        if data.endswith(b"\r"):
            self._is_after_cr = True
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _keep(self, data: bytes) -> None:
        """Add to the unfinished event."""
        if not data:
            return
        self._pieces.append(data)
        self._size += len(data)
        fresh = data.count(b"\n")
        if fresh:
            self._lines += fresh
            self._line_size = len(data) - data.rfind(b"\n") - 1
        else:
            self._line_size += len(data)
        if self._size > MAX_EVENT_BYTES or self._line_size > MAX_LINE_BYTES:
            self._error = _too_large()
        elif self._lines > MAX_EVENT_LINES:
            self._error = _too_many_lines()


def _check_size(block: bytes) -> None:
    if len(block) > MAX_EVENT_BYTES or max(map(len, block.split(b"\n"))) > MAX_LINE_BYTES:
        raise _too_large()


def _frame(block: bytes) -> Frame | None:
    if block.count(b"\n") > MAX_EVENT_LINES:
        raise _too_many_lines()
    event, data = b"", []
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name.startswith(BOM):
            name = name.lstrip(BOM)  # servers that mark the beginning of every event
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value
    return Frame(event, b"\n".join(data)) if data else None


def _too_large() -> SseError:
    return SseError("the event is too large")


def _too_many_lines() -> SseError:
    return SseError(f"the event has more than {MAX_EVENT_LINES} lines")


def safe(frames: bytes) -> bytes:
    """Escape the line separators that JSON allows raw but line-splitting clients break on (U+2028, U+2029, U+0085).

    In rendered frames these bytes occur inside JSON strings only, so the escape is the same text.
    """
    if frames.isascii():
        return frames
    if b"\xe2\x80" in frames:
        frames = frames.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    if b"\xc2\x85" in frames:
        frames = frames.replace(b"\xc2\x85", b"\\u0085")
    return frames


def data_frame(value: object) -> bytes:
    """`value` as JSON in one data event without a name."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def named_frame(name: str, value: object) -> bytes:
    """`value` as JSON in one event whose name is from a fixed set of ours."""
    return b"event: " + name.encode("ascii") + b"\ndata: " + msgspec.json.encode(value) + b"\n\n"
