"""POST /v1/embeddings: unit vectors made from the text, the same text always the same vector."""

import base64
import math
import struct
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from gwd.demo import tokens
from gwd.demo.answer import Ask
from gwd.demo.behaviour import Behaviour
from gwd.demo.counts import Counts, reported
from gwd.demo.formats import FormatName, Reply
from gwd.demo.frames import Frame
from gwd.demo.openai_common import answer_headers, check_bearer, unknown_model
from gwd.demo.prompt_cache import PromptCache
from gwd.demo.refusals import RefusedError, openai_body, openai_scripted
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_text, compact, is_whole_number, seed_of

_BYTES_PER_DIGEST = 64


class EmbeddingsFormat:
    """Speaks the embeddings API; there is nothing to stream."""

    name: FormatName = "embeddings"

    def check_caller(self, headers: Mapping[str, str], keys: frozenset[str] | None) -> None:
        check_bearer(headers, keys)

    def check_size(self, body: Json, traits: ModelTraits) -> None:
        longest = max(map(size_of, inputs_of(body["input"])))
        if longest > traits.context_length:
            raise RefusedError(
                f"This model's maximum context length is {traits.context_length} tokens, however you "
                f"requested {longest} tokens. Please reduce your prompt.",
                code="context_length_exceeded",
                param="input",
            )

    def user_text(self, body: Json) -> str:
        given = body.get("input")
        if isinstance(given, list):
            return " ".join(as_text(one) for one in given)
        return as_text(given)

    def ask(self, body: Json, traits: ModelTraits, cache: PromptCache) -> Ask:
        size = sum(size_of(one) for one in inputs_of(body["input"]))
        return Ask(seed=seed_of(body), user_text="", prompt=Counts(prompt=size, completion=0))

    def whole(self, reply: Reply) -> Json:
        body = reply.body
        dimensions = body.get("dimensions") or reply.traits.dimensions
        vectors = [unit_vector(one, dimensions) for one in inputs_of(body["input"])]
        if reply.behaviour.empty:
            vectors = []
        answer: Json = {
            "object": "list",
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": _encoded(vector, body.get("encoding_format")),
                }
                for index, vector in enumerate(vectors)
            ],
            "model": reply.traits.snapshot or reply.traits.name,
        }
        prompt = reply.answer.counts.prompt
        usage = reported({"prompt_tokens": prompt, "total_tokens": prompt}, reply.behaviour)
        if usage is not None or reply.behaviour.usage == "null":
            answer["usage"] = usage
        return answer

    def frames(self, reply: Reply) -> Iterator[Frame]:
        yield Frame(data=self.whole(reply))

    def error_frames(self, reply: Reply) -> Iterator[Frame]:
        yield Frame(data=openai_body(self.scripted(reply.behaviour)))

    def refusal(self, refused: RefusedError, request_id: str) -> Json:
        return openai_body(refused)

    def scripted(self, behaviour: Behaviour, status: int | None = None) -> RefusedError:
        return openai_scripted(behaviour, status)

    def unknown_model(self, name: str) -> RefusedError:
        return unknown_model(name)

    def headers(self, request_id: str) -> dict[str, str]:
        return answer_headers(request_id)


def inputs_of(given: Any) -> list[Any]:
    """One entry per vector: a text or a list of token numbers."""
    if isinstance(given, list) and not (given and is_whole_number(given[0])):
        return given
    return [given] if given else []


def size_of(one: str | list[int]) -> int:
    return tokens.count(one) if isinstance(one, str) else len(one)


def unit_vector(one: str | list[int], dimensions: int) -> list[float]:
    text = one if isinstance(one, str) else compact(one)
    drawn = bytearray()
    while len(drawn) < dimensions:
        block = len(drawn) // _BYTES_PER_DIGEST
        drawn += blake2b(text.encode("utf-8", "surrogatepass") + block.to_bytes(4, "big")).digest()
    values = [byte - 127.5 for byte in drawn[:dimensions]]
    length = math.sqrt(sum(value * value for value in values))
    return [round(value / length, 8) for value in values]


def _encoded(vector: list[float], encoding: object) -> list[float] | str:
    if encoding != "base64":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
