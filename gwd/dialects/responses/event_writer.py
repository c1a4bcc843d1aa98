"""Numbered events: every one gets the next sequence number, without a gap, and a line that repeats its type."""

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


class EventWriter:
    """Collects the frames of one stream; `take` hands over what has gathered."""

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._next = 0

    def take(self) -> bytes:
        frames, self._frames = self._frames, []
        return b"".join(frames)

    def event(self, name: str, fields: dict[str, Any]) -> None:
        """Any event but a delta; `name` is from a fixed set of ours."""
        head = f"event: {name}\ndata: ".encode("ascii")
        body = _encode({"type": name, **fields, "sequence_number": self._next})
        self._frames += (head, body, b"\n\n")
        self._next += 1

    def delta(self, head: bytes, text: str) -> None:
        """A delta behind a prepared head: the hot path of a stream."""
        self._frames += (head, _encode(text), b',"sequence_number":%d}\n\n' % self._next)
        self._next += 1


def delta_head(name: str, fields: dict[str, Any]) -> bytes:
    """What all deltas of one part have in common, up to the delta's own text."""
    common = _encode({"type": name, **fields})[:-1]
    return f"event: {name}\ndata: ".encode("ascii") + common + b',"delta":'
