"""The dialect object for one address: model and method stand in the path, the form of a stream in the query."""

from collections.abc import Mapping
from typing import Final, Literal, cast, get_args

import msgspec

from gwd.core.errors import GatewayError
from gwd.core.request import DialectName, Request
from gwd.dialects.base import EVENT_STREAM, Framing, Renderer, Reply
from gwd.dialects.gemini import embeddings
from gwd.dialects.gemini.envelope import envelope, error_body
from gwd.dialects.gemini.parse import parse, parse_count
from gwd.dialects.gemini.render import GeminiRenderer

Method = Literal[
    "generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents"
]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
ARRAY: Final = Framing("application/json", b"\n")


class Gemini:
    """Stateless. Without an address it reads generateContent whose `model` is in the body, as questions about requests
    hold it."""

    name: DialectName = "gemini"
    path = "/models/<model:path>"

    def __init__(
        self,
        model: str | None = None,
        method: Method = "generateContent",
        *,
        is_array: bool = False,
    ) -> None:
        self._model = model
        self._method = method
        self._is_array = is_array
        self.framing = ARRAY if is_array else EVENT_STREAM

    @property
    def counts(self) -> bool:
        """Whether tokens are only to be counted."""
        return self._method == "countTokens"

    def at(self, model: str, method: str, *, alt: str | None = None) -> "Gemini":
        """The same dialect for one address; `method` is one of METHODS."""
        streams = method == "streamGenerateContent"
        return Gemini(model, cast("Method", method), is_array=streams and alt != "sse")

    def parse(self, body: bytes, headers: Mapping[str, str]) -> Request:
        match self._method:
            case "embedContent":
                return embeddings.parse_one(body, headers, model=self._model)
            case "batchEmbedContents":
                return embeddings.parse_batch(body, headers, model=self._model)
            case _:
                streams = self._method == "streamGenerateContent"
                return parse(body, headers, model=self._model, stream=streams)

    def parse_count(self, body: bytes, headers: Mapping[str, str]) -> Request:
        """The body of a token count as a Request whose contents, tools and system text are to be counted."""
        return parse_count(body, headers, model=self._model)

    def count(self, input_tokens: int) -> bytes:
        """The answer to a token count."""
        return msgspec.json.encode({"totalTokens": input_tokens})

    def renderer(self, request: Request, reply: Reply) -> Renderer:
        if self._method in ("embedContent", "batchEmbedContents"):
            is_batch = self._method == "batchEmbedContents"
            return embeddings.EmbeddingRenderer(request, reply, is_batch=is_batch)
        return GeminiRenderer(request, reply, is_array=self._is_array)

    def error(self, error: GatewayError, request_id: str) -> bytes:
        if self._is_array:
            return msgspec.json.encode([envelope(error, request_id)])
        return error_body(error, request_id)


DIALECT: Final = Gemini()
