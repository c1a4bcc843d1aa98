"""One event of a stream as a value, and its bytes on the wire."""

import msgspec

from gwd.demo.behaviour import Behaviour
from gwd.demo.wire import Json, encode

_COMMENT = b": keep-alive\n\n"
_ENDINGS = {"lf": b"\n", "crlf": b"\r\n", "cr": b"\r"}
_BIG = 2 * 1024 * 1024
# What some servers write beside their answer, and no strict reader takes: no number, half a character, no UTF-8.
_ODD = b'{"odd":[NaN,-Infinity,1e999],"half":"\\ud83d","raw":"\xf0\x9f",'


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """`data` is JSON, or text that is sent as it is; `event` the name of its `event:` line, if it has one."""

    data: Json | str
    event: str | None = None
    tokens: int = 0


def to_bytes(frame: Frame, behaviour: Behaviour, *, number: int) -> bytes:
    """The frame as it goes out; `number` counts from 1."""
    data = frame.data.encode() if isinstance(frame.data, str) else encode(frame.data)
    if number == behaviour.malformed_after:
        if behaviour.malformed == "bad_json":
            data = data[: max(1, len(data) // 2)]
        elif behaviour.malformed == "wrong_shape":
            data = b'["not", "an", "event"]'
        elif behaviour.malformed == "big_line":
            data = encode({"padding": "x" * _BIG})
    if behaviour.odd_json and data[:2] == b'{"':
        data = _ODD + data[1:]
    lines = [b"event: " + frame.event.encode()] if frame.event else []
    prefix = b"data: " if behaviour.space else b"data:"
    if behaviour.multi_line and data[:1] == b"{" and b"," in data:
        head, _, tail = data.partition(b",")
        # A line break is allowed between two members of an object, and data lines are joined with one.
        lines += [prefix + head + b",", prefix + tail]
    else:
        lines.append(prefix + data)
    text = b"\n".join(lines) + b"\n\n"
    if behaviour.comments:
        text = _COMMENT + text
    if behaviour.line_ending != "lf":
        text = text.replace(b"\n", _ENDINGS[behaviour.line_ending])
    if behaviour.bom and number == 1:
        text = b"\xef\xbb\xbf" + text
    return text
