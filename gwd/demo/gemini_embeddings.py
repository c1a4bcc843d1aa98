"""POST /v1beta/models/…:batchEmbedContents: the vectors of the texts, in their order."""

from collections.abc import Iterator, Mapping

from gwd.demo.answer import Ask
from gwd.demo.behaviour import Behaviour
from gwd.demo.counts import Counts, reported
from gwd.demo.embeddings import size_of, unit_vector
from gwd.demo.formats import FormatName, Reply
from gwd.demo.frames import Frame
from gwd.demo.gemini import check_key, unknown_model
from gwd.demo.prompt_cache import PromptCache
from gwd.demo.refusals import RefusedError, gemini_body, gemini_scripted
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list, as_object, as_text, seed_of


class GeminiEmbeddingsFormat:
    """Speaks Gemini's embeddings; there is nothing to stream."""

    name: FormatName = "gemini_embeddings"

    def check_caller(self, headers: Mapping[str, str], keys: frozenset[str] | None) -> None:
        check_key(headers, keys)

    def check_size(self, body: Json, traits: ModelTraits) -> None:
        """A text that is too long is cut, without a word."""

    def user_text(self, body: Json) -> str:
        return " ".join(texts_of(body))

    def ask(self, body: Json, traits: ModelTraits, cache: PromptCache) -> Ask:
        size = sum(min(size_of(text), traits.context_length) for text in texts_of(body))
        return Ask(seed=seed_of(body), user_text="", prompt=Counts(prompt=size, completion=0))

    def whole(self, reply: Reply) -> Json:
        wished = [as_object(one).get("outputDimensionality") for one in reply.body["requests"]]
        vectors = [
            {"values": unit_vector(text, dimensions or reply.traits.dimensions)}
            for text, dimensions in zip(texts_of(reply.body), wished, strict=True)
        ]
        answer: Json = {"embeddings": [] if reply.behaviour.empty else vectors}
        prompt = reply.answer.counts.prompt
        usage = reported({"promptTokenCount": prompt}, reply.behaviour)
        if usage is not None or reply.behaviour.usage == "null":
            answer["usageMetadata"] = usage
        return answer

    def frames(self, reply: Reply) -> Iterator[Frame]:
        yield Frame(data=self.whole(reply))

    def error_frames(self, reply: Reply) -> Iterator[Frame]:
        yield Frame(data=gemini_body(self.scripted(reply.behaviour)))

    def refusal(self, refused: RefusedError, request_id: str) -> Json:
        return gemini_body(refused)

    def scripted(self, behaviour: Behaviour, status: int | None = None) -> RefusedError:
        return gemini_scripted(behaviour, status)

    def unknown_model(self, name: str) -> RefusedError:
        return unknown_model(name)

    def headers(self, request_id: str) -> dict[str, str]:
        return {"vary": "Origin, X-Origin, Referer"}


def texts_of(body: Json) -> list[str]:
    """The text of each request, its parts joined."""
    return [
        "".join(as_text(as_object(part).get("text")) for part in _parts(one))
        for one in as_list(body.get("requests"))
    ]


def _parts(request: object) -> list[object]:
    return as_list(as_object(as_object(request).get("content")).get("parts"))
