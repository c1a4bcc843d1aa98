"""Gemini's embeddings: one batch for however many texts.

The vendor answers in the order of the batch, and tells no token count on some of its models: then it is estimated.
"""

from typing import Any, Final

import msgspec

from gwd.core.errors import UnsupportedInput
from gwd.core.events import Embedded, Event, Failed, Finished, Started
from gwd.core.lenient_json import MAX_LENIENT_BYTES, UNREADABLE
from gwd.core.request import Embed, Request
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.base import UndecodableError
from gwd.vendors.call import headers_for
from gwd.vendors.gemini.call import method_url, model_path
from gwd.vendors.gemini.faults import error_in, fault_inside
from gwd.vendors.gemini.format import FORMAT
from gwd.vendors.gemini.wire import EmbeddingsWire, EmbeddingWire, RawEmbeddingsWire
from gwd.vendors.second_reading import read_any, reader
from gwd.vendors.usage import usage_of
from gwd.vendors.usage_formats import EMBEDDINGS

Json = dict[str, Any]

MAX_BATCH: Final = 100

_ANSWER: Final = reader(msgspec.json.Decoder(EmbeddingsWire).decode)
_RAW_ANSWER: Final = msgspec.json.Decoder(RawEmbeddingsWire).decode
_VALUES: Final = msgspec.json.Decoder(tuple[float, ...]).decode


def build(request: Request, embed: Embed, target: Target) -> UpstreamCall:
    """Raises UnsupportedInput for tokens, and for more texts than the vendor takes at once."""
    if len(embed.inputs) > MAX_BATCH:
        raise UnsupportedInput(
            f"`input` may hold at most {MAX_BATCH} texts for this model; send several requests",
            param="input",
        )
    own = (request.extras or {}) if request.family == FORMAT.family else {}
    body = {"requests": [{**own, **_one(text, embed, target)} for text in embed.inputs]}
    return UpstreamCall(
        url=method_url(target, "batchEmbedContents"),
        headers=headers_for(target),
        body=msgspec.json.encode(body),
        stream=False,
    )


def decode(body: bytes, embed: Embed) -> list[Event]:
    """Vectors in the order of the inputs. Raises UndecodableError if one is missing."""
    try:
        answer = _answer(body)
    except UNREADABLE:
        answer = EmbeddingsWire(error=_error_of(body))
    if answer.error:
        return [Failed(fault_inside(answer.error))]
    found = [answer.embedding] if answer.embedding is not None else (answer.embeddings or [])
    if len(found) != len(embed.inputs):
        raise UndecodableError(f"{len(found)} vectors came for {len(embed.inputs)} inputs")
    if not all(one.values for one in found):
        raise UndecodableError("a vector is empty")
    return [
        Started(),
        Embedded(tuple(one.values for one in found)),
        Finished("stop", usage=usage_of(answer.usage_metadata, EMBEDDINGS)),
    ]


def _answer(body: bytes) -> EmbeddingsWire:
    """The answer, its embeddings read one by one. Raises what is UNREADABLE."""
    try:
        raw = _RAW_ANSWER(body)
        one = raw.embedding
        return EmbeddingsWire(
            [EmbeddingWire(_VALUES(each.values)) for each in raw.embeddings or ()],
            None if one is None else EmbeddingWire(_VALUES(one.values)),
            raw.usage_metadata,
            raw.error,
        )
    except UNREADABLE:
        if len(body) > MAX_LENIENT_BYTES:
            raise
        return _ANSWER(body)


def _one(text: str | tuple[int, ...], embed: Embed, target: Target) -> Json:
    if not isinstance(text, str):
        raise UnsupportedInput(
            "`input` must be text for this model: it does not take tokens", param="input"
        )
    one: Json = {"model": model_path(target), "content": {"parts": [{"text": text}]}}
    if embed.dimensions is not None:
        one["outputDimensionality"] = embed.dimensions
    return one


def _error_of(body: bytes) -> object:
    try:
        error = error_in(read_any(body))
    except UNREADABLE:
        error = None
    if error is None:
        raise UndecodableError("the answer is not a list of embeddings") from None
    return error
