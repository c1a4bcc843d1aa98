"""The routes of inference and the public reading of models as operations: six dialects, each with its own shapes."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gwd.api import models
from gwd.api.model_record import ModelAnswer, ModelEndpoints, ModelList
from gwd.api.openapi import answers, statuses
from gwd.api.openapi.management import SECURITY, query_parameter
from gwd.api.openapi.statuses import (
    EVERY_KEY,
    EVERY_REQUEST,
    OTHER_REFUSAL,
    ErrorEnvelope,
    GeminiErrorEnvelope,
    GeminiStreamErrorEnvelope,
    MessagesErrorEnvelope,
    References,
)
from gwd.api.openapi.words import PARAMETERS
from gwd.api.query import Query, Text, Words
from gwd.api.shapes import One
from gwd.dialects.chat_completions.wire import ChatWire
from gwd.dialects.completions import CompletionsWire
from gwd.dialects.embeddings import EmbeddingsWire
from gwd.dialects.gemini import wire as gemini
from gwd.dialects.messages.wire import CountBody, MessagesBody
from gwd.dialects.responses.wire import BodyWire, ResponseObject

Json = dict[str, Any]

# A vendor's own refusal of a request is passed on with its status: 422 mostly, or another one.
_REFUSALS: Final = (402, 404, 422, 502, OTHER_REFUSAL)
_EXAMPLE_MODEL: Final = "openai/gpt-5"
_HELLO: Final = [{"role": "user", "content": "Say hello."}]


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One inference route. `event` is the data of its streamed events; without one it does not stream.

    `is_named` says that the model stands in the path; `query` are parameters beside it.
    """

    path: str
    name: str
    summary: str
    about: str
    body: type
    example: Json
    answer: Any
    event: Any = None
    envelope: Any = ErrorEnvelope
    refusals: tuple[int | str, ...] = _REFUSALS
    required: tuple[str, ...] = ()
    is_named: bool = False
    query: tuple[Query, ...] = ()


_CONTENTS: Final = [{"role": "user", "parts": [{"text": "Say hello."}]}]
_TEXT: Final = {"parts": [{"text": "hello"}]}
_KEY: Final = Query("key", Text(), "The key, where the client sends no header. Use a header.")
_ALT: Final = Query(
    "alt", Words(("sse", "json")), "`sse` streams events; without it the chunks are one JSON array."
)
SHAPES: Final = (
    Shape(
        path="/chat/completions",
        name="chat_completions",
        summary="A chat completion.",
        about="The dialect of the OpenAI SDKs' chat completions.",
        body=ChatWire,
        example={"model": _EXAMPLE_MODEL, "messages": _HELLO, "max_tokens": 100},
        answer=answers.ChatCompletion,
        event=answers.ChatChunk,
    ),
    Shape(
        path="/messages",
        name="messages",
        summary="A message.",
        about="The dialect of the Anthropic SDKs and of Claude Code.",
        body=MessagesBody,
        example={"model": _EXAMPLE_MODEL, "messages": _HELLO, "max_tokens": 100},
        answer=answers.MessageAnswer,
        event=answers.MessagesEvent,
        envelope=MessagesErrorEnvelope,
        required=("max_tokens",),
    ),
    Shape(
        path="/messages/count_tokens",
        name="messages_count_tokens",
        summary="How many tokens a message's prompt has.",
        about="Our own estimate: free, and no generation. It has a rate window of its own.",
        body=CountBody,
        example={"model": _EXAMPLE_MODEL, "messages": _HELLO},
        answer=answers.CountedTokens,
        envelope=MessagesErrorEnvelope,
        refusals=(404,),
    ),
    Shape(
        path="/responses",
        name="responses",
        summary="A response.",
        about="The dialect of the OpenAI SDKs' responses and of Codex. Nothing is stored: `store` and"
        " `previous_response_id` are not taken.",
        body=BodyWire,
        example={"model": _EXAMPLE_MODEL, "input": "Say hello.", "max_output_tokens": 100},
        answer=ResponseObject,
        event=answers.ResponseEvent,
        required=("input",),
    ),
    Shape(
        path="/models/{model}:generateContent",
        name="gemini_generate",
        summary="An answer in Google's form.",
        about="The dialect of Google's SDKs and of the Gemini command line. Names may be in camelCase or snake_case.",
        body=gemini.GenerateBody,
        example={"contents": _CONTENTS, "generationConfig": {"maxOutputTokens": 100}},
        answer=answers.GeminiAnswer,
        envelope=GeminiErrorEnvelope,
        required=("contents",),
        is_named=True,
        query=(_KEY,),
    ),
    Shape(
        path="/models/{model}:streamGenerateContent",
        name="gemini_stream",
        summary="A streamed answer in Google's form.",
        about="As generateContent, in chunks.",
        body=gemini.GenerateBody,
        example={"contents": _CONTENTS, "generationConfig": {"maxOutputTokens": 100}},
        answer=list[answers.GeminiAnswer],
        event=answers.GeminiAnswer,
        envelope=GeminiStreamErrorEnvelope,
        required=("contents",),
        is_named=True,
        query=(_ALT, _KEY),
    ),
    Shape(
        path="/models/{model}:countTokens",
        name="gemini_count_tokens",
        summary="How many tokens a prompt in Google's form has.",
        about="Our own estimate: free, and no generation. It has a rate window of its own.",
        body=gemini.CountBody,
        example={"contents": _CONTENTS},
        answer=answers.GeminiCounted,
        envelope=GeminiErrorEnvelope,
        refusals=(404,),
        is_named=True,
        query=(_KEY,),
    ),
    Shape(
        path="/models/{model}:embedContent",
        name="gemini_embed",
        summary="The vector of a text in Google's form.",
        about="Needs a model that makes embeddings.",
        body=gemini.EmbedBody,
        example={"content": _TEXT},
        answer=answers.GeminiEmbedding,
        envelope=GeminiErrorEnvelope,
        required=("content",),
        is_named=True,
        query=(_KEY,),
    ),
    Shape(
        path="/models/{model}:batchEmbedContents",
        name="gemini_embed_batch",
        summary="Vectors of texts in Google's form.",
        about="Needs a model that makes embeddings. All texts have one model, one length of vector and one task.",
        body=gemini.EmbedBatchBody,
        example={"requests": [{"content": _TEXT}]},
        answer=answers.GeminiEmbeddings,
        envelope=GeminiErrorEnvelope,
        required=("requests",),
        is_named=True,
        query=(_KEY,),
    ),
    Shape(
        path="/completions",
        name="completions",
        summary="A text completion.",
        about="The older dialect: a prompt in, text out. Several prompts are one message, a line each.",
        body=CompletionsWire,
        example={"model": _EXAMPLE_MODEL, "prompt": "Say hello.", "max_tokens": 100},
        answer=answers.TextCompletion,
        event=answers.TextCompletion,
        required=("prompt",),
    ),
    Shape(
        path="/embeddings",
        name="embeddings",
        summary="Vectors of texts.",
        about="Needs a model that makes embeddings; it is never streamed.",
        body=EmbeddingsWire,
        example={"model": _EXAMPLE_MODEL, "input": ["hello", "world"]},
        answer=answers.Embeddings,
        required=("input",),
    ),
)
_HEADERS: Final[Json] = {
    name: {"description": about, "schema": {"type": kind}}
    for name, about, kind in (
        ("x-request-id", "The request, for questions about it.", "string"),
        ("x-gw-generation-id", "The generation: its record is at GET /generation.", "string"),
        ("x-gw-provider", "The vendor that served.", "string"),
        ("x-gw-model", "The model that served.", "string"),
        (
            "x-gw-overhead-ms",
            "What the gateway itself took until the answer began, in milliseconds with one decimal: all but the"
            " waiting for vendors.",
            "number",
        ),
        ("x-ratelimit-limit", "Requests that the key may make in a minute.", "integer"),
        ("x-ratelimit-remaining", "How many of them are left.", "integer"),
        ("x-ratelimit-reset", "When all are back, in seconds since 1970.", "integer"),
    )
}
_SENT_HEADERS: Final[list[Json]] = [
    {"name": name, "in": "header", "description": about, "schema": schema}
    for name, about, schema in (
        (
            "x-gw-metadata",
            "`enabled` puts a receipt into the answer: how the request was routed and priced.",
            {"type": "string"},
        ),
        ("x-gw-session-id", "The session, where the body names none.", {"type": "string"}),
        ("x-gw-user-id", "The user, where the body names none.", {"type": "string"}),
        (
            "x-gw-tags",
            "Up to eight tags with commas between, where `metadata` has none: each 1 to 64 characters, none of them a"
            " comma or a control character. Outer blanks are left out, upper and lower case are two tags.",
            {"type": "string"},
        ),
        ("http-referer", "The application's address, for the records.", {"type": "string"}),
        ("x-title", "The application's name, for the records.", {"type": "string"}),
    )
]


_MODEL: Final[Json] = {"name": "model", "in": "path", "required": True, **PARAMETERS["model"]}
_NAMED: Final[Json] = {"anyOf": [{"required": ["model"]}, {"required": ["models"]}]}


def types() -> list[Any]:
    """Every type that a body, an answer or an event has."""
    of_dialects = [
        each
        for shape in SHAPES
        for each in (shape.body, shape.answer, shape.event)
        if each is not None
    ]
    return [*of_dialects, ModelList, ModelAnswer, One[ModelEndpoints]]


def operations(references: References) -> Iterator[tuple[str, str, Json]]:
    """(path, method, operation) of each."""
    for shape in SHAPES:
        yield shape.path, "post", _operation(shape, references)
    yield from _read_by_everybody(references)


def _operation(shape: Shape, references: References) -> Json:
    named = "the path" if shape.is_named else "`model`"
    in_path = [_MODEL] if shape.is_named else []
    content: Json = {"application/json": {"schema": references[shape.answer]}}
    if shape.event is not None:
        content["text/event-stream"] = {
            "schema": {
                "type": "string",
                "description": f"With `{_streamed(shape)}`: server-sent events. The `data` of each is as x-event says.",
                "x-event": references[shape.event],
            }
        }
    return {
        "operationId": shape.name,
        "tags": ["inference"],
        "summary": shape.summary,
        "description": f"{shape.about} Needs an inference key. Name a model in {named}, or several in `models`: the"
        " first that can serve does. Fields that are not listed are passed on to vendors of the same dialect.",
        "parameters": [*in_path, *map(query_parameter, shape.query), *_SENT_HEADERS],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": _body(shape, references), "example": shape.example}
            },
        },
        "responses": {
            "200": {
                "description": "The answer, whole or streamed."
                if shape.event is not None
                else "The answer.",
                "headers": _HEADERS,
                "content": content,
            },
            **statuses.responses(
                {*EVERY_REQUEST, *EVERY_KEY, *shape.refusals}, envelope=shape.envelope
            ),
        },
        "security": SECURITY,
        "x-keys": ["inference"],
    }


def _body(shape: Shape, references: References) -> Json:
    """The body's schema, with what is required of it beside what its types say."""
    named: Json = {} if shape.is_named else _NAMED
    if shape.required:
        named = {**named, "required": list(shape.required)}
    return {"allOf": [references[shape.body], named]}


def _streamed(shape: Shape) -> str:
    return "alt=sse" if shape.is_named else "stream: true"


def _read_by_everybody(references: References) -> Iterator[tuple[str, str, Json]]:
    """What `app` serves beside the table: the catalog in public, and this document."""
    listed = [query_parameter(each) for each in models.QUERY]
    for path, name, summary, parameters, answer in (
        ("/models", "models_list", "All models that can be asked for.", listed, ModelList),
        ("/models/{model}", "models_get", "One model, by id or alias.", [_MODEL], ModelAnswer),
        (
            "/models/{model}/endpoints",
            "models_endpoints",
            "What serves a model, at which price.",
            [_MODEL],
            One[ModelEndpoints],
        ),
        ("/openapi.json", "openapi", "The written shape of this API: this document.", [], None),
    ):
        failures = (*EVERY_REQUEST, 429, *((404,) if _MODEL in parameters else ()))
        yield (
            path,
            "get",
            {
                "operationId": name,
                "tags": ["meta" if answer is None else "models"],
                "summary": summary,
                "description": "Needs no key.",
                "parameters": parameters,
                "responses": {
                    "200": {
                        "description": "What was asked for.",
                        "content": {
                            "application/json": {
                                "schema": {"type": "object"}
                                if answer is None
                                else references[answer]
                            }
                        },
                    },
                    **statuses.responses(failures),
                },
                "security": [{}, *SECURITY],
                "x-keys": [],
            },
        )
