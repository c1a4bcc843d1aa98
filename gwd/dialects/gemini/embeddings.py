"""embedContent and batchEmbedContents: texts to a Request, and vectors to the two shapes of their answers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gwd.core.errors import InvalidValue, MissingParameter, UnsupportedParameter
from gwd.core.events import Completion, Event, Settled
from gwd.core.request import Embed, Extras, Request
from gwd.dialects import extensions, json_input
from gwd.dialects.base import Reply
from gwd.dialects.gemini.casing import normal
from gwd.dialects.gemini.contents import text_of
from gwd.dialects.gemini.parse import model_name
from gwd.dialects.gemini.usage import embedding_usage
from gwd.dialects.gemini.wire import EmbedBatchBody, EmbedBody

_READ: Final = json_input.field_names(EmbedBody) - {"taskType", "title"}


def parse_one(body: bytes, headers: Mapping[str, str], *, model: str | None) -> Request:
    """One text. Raises InvalidRequest subclasses with the field's path."""
    raw = normal(json_input.load(body))
    wire = json_input.typed(raw, EmbedBody, strict=False)
    return _request(wire, [wire], [raw], headers, model=model, size=len(body))


def parse_batch(body: bytes, headers: Mapping[str, str], *, model: str | None) -> Request:
    """Several texts, which one model embeds alike. Raises InvalidRequest subclasses with the field's path."""
    raw = normal(json_input.load(body))
    wire = json_input.typed(raw, EmbedBatchBody, strict=False)
    if not wire.requests:
        raise MissingParameter("`requests` is required: the texts to embed", param="requests")
    return _request(wire, wire.requests, raw["requests"], headers, model=model, size=len(body))


class EmbeddingRenderer:
    """Renders one generation; it is never streamed."""

    def __init__(self, request: Request, reply: Reply, *, is_batch: bool) -> None:
        self._request = request
        self._reply = reply
        self._is_batch = is_batch

    def feed(self, events: Sequence[Event]) -> bytes:
        return b""

    def idle(self) -> bytes:
        return b""

    def whole(self, completion: Completion, settled: Settled) -> bytes:
        # Each written by itself: all of them in one call would hold the others up.
        vectors = [
            {"values": msgspec.Raw(msgspec.json.encode(vector))} for vector in completion.vectors
        ]
        body: dict[str, Any] = (
            {"embeddings": vectors} if self._is_batch else {"embedding": vectors[0]}
        )
        body["usageMetadata"] = embedding_usage(settled, include_cost=self._request.include_cost)
        body |= {"modelVersion": self._reply.model, "provider": self._reply.vendor}
        if settled.receipt is not None:
            body["gateway_metadata"] = settled.receipt
        return msgspec.json.encode(body)


def _request(
    whole: EmbedBody | EmbedBatchBody,
    each: Sequence[EmbedBody],
    raw: Sequence[dict[str, Any]],
    headers: Mapping[str, str],
    *,
    model: str | None,
    size: int,
) -> Request:
    is_batch = isinstance(whole, EmbedBatchBody)
    texts = [
        _text(one, f"requests[{index}].content" if is_batch else "content")
        for index, one in enumerate(each)
    ]
    own = [_extras(fields) for fields in raw]
    if is_batch:
        _check_alike(each, own)
    named = model_name(model or whole.model or each[0].model)
    return Request(
        dialect="gemini",
        family="gemini",
        models=extensions.models_of(named, whole.models),
        body=Embed(inputs=tuple(texts), dimensions=each[0].output_dimensionality),
        preferences=extensions.preferences_of(whole.provider),
        include_cost=extensions.wants_cost(whole.usage),
        include_receipt=extensions.wants_receipt(headers),
        sender=extensions.sender_of(headers, session_id=whole.session_id, user=whole.user),
        extras=own[0] or None,
        own_fields=tuple(sorted(own[0])),
        body_bytes=size,
    )


def _text(one: EmbedBody, at: str) -> str:
    if one.content is None:
        raise MissingParameter(f"`{at}` is required", param=at)
    text = text_of(one.content, at)
    if not text:
        raise InvalidValue(f"`{at}` must hold a text that is not empty", param=at)
    return text


def _extras(raw: dict[str, Any]) -> Extras:
    return {
        name: value
        for name, value in raw.items()
        if name not in _READ and name != "requests" and value is not None
    }


def _check_alike(each: Sequence[EmbedBody], own: Sequence[Extras]) -> None:
    """One call embeds all of them. Raises UnsupportedParameter naming the first that wants something else."""
    first = each[0]
    for index, one in enumerate(each):
        for name, is_alike in (
            ("model", model_name(one.model) == model_name(first.model)),
            ("outputDimensionality", one.output_dimensionality == first.output_dimensionality),
            ("taskType", own[index] == own[0]),
        ):
            if not is_alike:
                param = f"requests[{index}].{name}"
                raise UnsupportedParameter(
                    f"`{param}` differs from that of `requests[0]`: send a batch for each",
                    param=param,
                )
