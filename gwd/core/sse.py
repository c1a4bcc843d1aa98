"""Server-sent events as bytes: an incremental splitter for upstreams, and safe framing for clients.

Lines end in LF, CRLF or CR only; bytes are cut before they are decoded, so a character split by the network
stays whole. Comments and unknown fields are ignored, multi-line data is joined with LF.
"""

import re
from typing import Final

import msgspec

MAX_LINE_BYTES: Final = 1024 * 1024
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
COMMENT: Final = b": GW PROCESSING\n\n"
DONE: Final = b"data: [DONE]\n\n"

BOM: Final = b"\xef\xbb\xbf"
_BOMS: Final = re.compile(rb"(?:\xef\xbb\xbf)+")


class SseError(ValueError):
    """The upstream's framing is beyond what we take: an oversized line or event."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One event: its `event:` name (empty if none) and its data bytes."""

    event: bytes
    data: bytes


class SseSplitter:
    """Feed it bytes as they come; it gives back the events they complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._at_start = True

    def feed(self, data: bytes) -> list[Frame]:
        """Events completed by `data`. Raises SseError when an unfinished event grows past the limits."""
        buffer = self._rest + data if self._rest else data
        if self._at_start:
            marks = _BOMS.match(buffer)
            buffer = buffer[marks.end() :] if marks is not None else buffer
            if BOM.startswith(buffer):
                self._rest = buffer
                return []
            self._at_start = False
        if b"\r" in buffer:
            # A CR at the very end may be half of a CRLF: it waits for the next bytes.
            held = b"\r" if buffer.endswith(b"\r") else b""
            buffer = buffer[: len(buffer) - len(held)]
            buffer = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + held
        blocks = buffer.split(b"\n\n")
        self._rest = blocks.pop()
        if len(self._rest) > MAX_LINE_BYTES:
            self._check_size()
        frames: list[Frame] = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                frames.append(Frame(b"", block[6:]))  # by far the most frequent form
            elif (frame := _frame(block)) is not None:
                frames.append(frame)
        return frames

    def close(self) -> list[Frame]:
        """The last event, where the upstream left out the final blank line."""
        rest, self._rest = self._rest, b""
        frame = _frame(rest.replace(b"\r", b"\n"))
        return [frame] if frame is not None else []

    def _check_size(self) -> None:
        if (
            len(self._rest) > MAX_EVENT_BYTES
            or max(map(len, self._rest.split(b"\n"))) > MAX_LINE_BYTES
        ):
            raise SseError("the event is too large")


def _frame(block: bytes) -> Frame | None:
    event, data = b"", None
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name.startswith(BOM):
            name = name.lstrip(BOM)  # servers that mark the beginning of every event
        if name == b"data":
            data = value if data is None else data + b"\n" + value
        elif name == b"event":
            event = value
    return None if data is None else Frame(event, data)


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
