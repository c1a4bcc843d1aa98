"""Vectors as events, in the order of the inputs."""

import base64
import binascii
import struct
from math import isfinite
from typing import Any, Final

import msgspec

from gwd.core.errors import Fault
from gwd.core.events import Embedded, Event, Failed, Finished, Started
from gwd.core.extras import Given
from gwd.core.lenient_json import MAX_LENIENT_BYTES, UNREADABLE
from gwd.core.request import Embed, Request
from gwd.core.sse import Frame
from gwd.core.usage import Usage
from gwd.vendors.base import UndecodableError
from gwd.vendors.openai_chat.faults import error_in, fault_inside
from gwd.vendors.second_reading import read_any, reader
from gwd.vendors.usage import usage_of
from gwd.vendors.usage_formats import EMBEDDINGS


class ItemWire(msgspec.Struct):
    embedding: tuple[float, ...] | str
    index: int | None = None


class AnswerWire(msgspec.Struct):
    data: list[ItemWire]
    usage: Any = None
    model: Any = None
    id: Any = None
    error: Any = None


class RawItemWire(msgspec.Struct):
    embedding: msgspec.Raw
    index: int | None = None


class RawAnswerWire(AnswerWire):
    data: list[RawItemWire]  # type: ignore[assignment]


_ANSWER: Final = reader(msgspec.json.Decoder(AnswerWire).decode)
_RAW_ANSWER: Final = msgspec.json.Decoder(RawAnswerWire).decode
_VECTOR: Final = msgspec.json.Decoder(tuple[float, ...] | str).decode


def decode(body: bytes, request: Request) -> list[Event]:
    """Vectors in the order of the inputs. Raises UndecodableError if one is missing."""
    assert isinstance(request.body, Embed)
    try:
        answer = _answer(body)
    except UNREADABLE:
        return [Failed(_fault_in(body))]
    if answer.error:
        return [Failed(fault_inside(answer.error))]
    vectors = _in_order(answer.data, len(request.body.inputs))
    return [
        Started(
            upstream_id=answer.id if isinstance(answer.id, str) else None,
            upstream_model=answer.model if isinstance(answer.model, str) else None,
        ),
        Embedded(vectors),
        Finished("stop", usage=usage_of(answer.usage, EMBEDDINGS)),
    ]


class NoStream:
    """Embeddings are never streamed; a server that does so is not understood."""

    usage: Usage | None = None
    given: Given | None = None

    def feed(self, frame: Frame) -> list[Event]:
        raise UndecodableError("an embeddings answer can't be a stream")

    def close(self) -> list[Event]:
        message = "the stream ended without an answer"
        return [Failed(Fault(reason="upstream_error", message=message))]


def _answer(body: bytes) -> AnswerWire:
    """The answer, its vectors read one by one: together they may be millions of numbers. Raises what is UNREADABLE."""
    try:
        raw = _RAW_ANSWER(body)
        items = [ItemWire(_VECTOR(item.embedding), item.index) for item in raw.data]
    except UNREADABLE:
        if len(body) > MAX_LENIENT_BYTES:
            raise
        return _ANSWER(body)
    return AnswerWire(items, raw.usage, raw.model, raw.id, raw.error)


def _fault_in(body: bytes) -> Fault:
    try:
        error = error_in(read_any(body))
    except UNREADABLE:
        error = None
    if error is None:
        raise UndecodableError("the answer is not a list of embeddings") from None
    return fault_inside(error)


def _in_order(items: list[ItemWire], count: int) -> tuple[tuple[float, ...], ...]:
    """One vector for each input: told by `index` where the server numbers at all, else by the order of the list."""
    if len(items) != count:
        raise UndecodableError(f"{len(items)} vectors came for {count} inputs")
    indices = [item.index for item in items if item.index is not None]
    if indices:
        if sorted(indices) != list(range(count)):
            raise UndecodableError("the indices of the vectors are not those of the inputs")
        items = sorted(items, key=lambda item: item.index or 0)
    return tuple(_vector(item.embedding) for item in items)


def _vector(embedding: tuple[float, ...] | str) -> tuple[float, ...]:
    if isinstance(embedding, str):
        try:
            data = base64.b64decode(embedding, validate=True)
            embedding = struct.unpack(f"<{len(data) // 4}f", data)
        except (binascii.Error, ValueError, struct.error):
            raise UndecodableError("a vector is neither numbers nor base64 of float32") from None
    if not embedding or not isfinite(sum(embedding)):
        raise UndecodableError("a vector is empty, or holds what is no number")
    return embedding
