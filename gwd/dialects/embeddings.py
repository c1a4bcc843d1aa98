"""The embeddings dialect: texts or tokens in, vectors out, as numbers or as base64 of float32."""

import base64
import struct
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gwd.core.errors import GatewayError, InvalidValue, MissingParameter, UnsupportedParameter
from gwd.core.events import Completion, Event, Settled
from gwd.core.request import DialectName, Embed, Request
from gwd.dialects import extensions, json_input
from gwd.dialects.base import EVENT_STREAM, Reply
from gwd.dialects.chat_completions.common import forwardable
from gwd.dialects.chat_completions.usage import embedding_usage_object
from gwd.dialects.envelope import error_body

MAX_INPUTS: Final = 2_048
MAX_DIMENSIONS: Final = 65_536
_FLOAT32_MAX: Final = 3.4028234663852886e38
Inputs = tuple[str | tuple[int, ...], ...]


class EmbeddingsWire(msgspec.Struct, frozen=True):
    model: extensions.ModelName | None = None
    models: extensions.ModelNames | None = None
    input: Annotated[
        str | list[Any] | None,
        Meta(description="A text, texts, a list of tokens, or lists of tokens."),
    ] = None
    dimensions: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_DIMENSIONS)] | None,
        Meta(description="How long the vectors shall be, where the model can choose."),
    ] = None
    encoding_format: Annotated[
        Literal["float", "base64"] | None,
        Meta(description="Numbers, or base64 of little-endian float32."),
    ] = None
    provider: extensions.Preferred = None
    usage: extensions.Shown = None
    session_id: extensions.SessionId | None = None
    user: extensions.User | None = None
    metadata: extensions.Metadata = None
    stream: Annotated[bool | None, Meta(description="Must not be true.")] = None


# Metadata is the vendor's as well: it is sent on.
_FIELDS: Final = json_input.field_names(EmbeddingsWire) - {"metadata"}


class Embeddings:
    """Stateless; one instance serves every request."""

    name: DialectName = "embeddings"
    path = "/embeddings"
    framing = EVENT_STREAM

    def parse(self, body: bytes, headers: Mapping[str, str]) -> Request:
        """Raises InvalidRequest subclasses whose `param` names the field."""
        raw = json_input.load(body)
        wire = json_input.typed(raw, EmbeddingsWire)
        if wire.stream:
            raise UnsupportedParameter("`stream`: embeddings are not streamed", param="stream")
        return Request(
            dialect="embeddings",
            family="openai_embeddings",
            models=extensions.models_of(wire.model, wire.models),
            body=Embed(
                inputs=_inputs(wire.input),
                dimensions=wire.dimensions,
                encoding_format=wire.encoding_format or "float",
            ),
            preferences=extensions.preferences_of(wire.provider),
            include_cost=extensions.wants_cost(wire.usage),
            include_receipt=extensions.wants_receipt(headers),
            sender=extensions.sender_of(
                headers, session_id=wire.session_id, user=wire.user, metadata=wire.metadata
            ),
            extras=forwardable(json_input.extras(raw, _FIELDS)),
            body_bytes=len(body),
        )

    def renderer(self, request: Request, reply: Reply) -> "EmbeddingsRenderer":
        return EmbeddingsRenderer(request, reply)

    def error(self, error: GatewayError, request_id: str) -> bytes:
        return error_body(error, request_id)


class EmbeddingsRenderer:
    """Renders one generation; it is never streamed."""

    def __init__(self, request: Request, reply: Reply) -> None:
        assert isinstance(request.body, Embed)
        self._request = request
        self._embed = request.body
        self._reply = reply

    def feed(self, events: Sequence[Event]) -> bytes:
        """Nothing is streamed here; `parse` refuses `stream`."""
        return b""

    def idle(self) -> bytes:
        return b""

    def whole(self, completion: Completion, settled: Settled) -> bytes:
        as_base64 = self._embed.encoding_format == "base64"
        body: dict[str, Any] = {
            "object": "list",
            "id": self._reply.generation_id,
            "model": self._reply.model,
            "provider": self._reply.vendor,
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    # Each written by itself: all of them in one call would hold the others up.
                    "embedding": base64_floats(vector)
                    if as_base64
                    else msgspec.Raw(msgspec.json.encode(vector)),
                }
                for index, vector in enumerate(completion.vectors)
            ],
            "usage": embedding_usage_object(settled, include_cost=self._request.include_cost),
        }
        if settled.receipt is not None:
            body["gateway_metadata"] = settled.receipt
        return msgspec.json.encode(body)


def base64_floats(vector: Sequence[float]) -> str:
    """Base64 of the vector as little-endian IEEE float32, without a header."""
    try:
        data = struct.pack(f"<{len(vector)}f", *vector)
    except OverflowError:
        within = (max(-_FLOAT32_MAX, min(number, _FLOAT32_MAX)) for number in vector)
        data = struct.pack(f"<{len(vector)}f", *within)
    return base64.b64encode(data).decode("ascii")


def _inputs(given: str | list[Any] | None) -> Inputs:
    """A text, texts, tokens, or token lists; never empty, never mixed with nonsense."""
    if given is None:
        raise MissingParameter("`input` is required", param="input")
    if isinstance(given, str):
        return (_text(given, "input"),)
    if not given:
        raise InvalidValue("`input` must not be empty", param="input")
    if type(given[0]) is int:
        return (_tokens(given, "input"),)
    if len(given) > MAX_INPUTS:
        raise InvalidValue(f"`input` must hold at most {MAX_INPUTS} items", param="input")
    read = _text if isinstance(given[0], str) else _tokens
    return tuple(read(item, f"input[{index}]") for index, item in enumerate(given))


def _text(given: object, at: str) -> str:
    if not isinstance(given, str):
        raise InvalidValue(f"`{at}` must be a text, as the others are", param=at)
    if not given:
        raise InvalidValue(f"`{at}` must not be an empty string", param=at)
    return given


def _tokens(given: object, at: str) -> tuple[int, ...]:
    if not isinstance(given, list) or not given:
        raise InvalidValue(f"`{at}` must be a text or a list of tokens, each item alike", param=at)
    if not all(type(token) is int and 0 <= token < 2**31 for token in given):
        raise InvalidValue(f"`{at}` must hold token numbers only", param=at)
    return tuple(given)


DIALECT: Final = Embeddings()
