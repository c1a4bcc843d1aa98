"""One call from arrival to the end of its answer."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import msgspec
from sanic import Request

from gwd.demo.answer import answer
from gwd.demo.behaviour import BEFORE_HEADERS, Behaviour, BehaviourError, directive_in
from gwd.demo.calls import Call
from gwd.demo.delivery import Head, send_stream, send_whole
from gwd.demo.formats import UNREADABLE, Check, Format, FormatName, Reply, check_caller
from gwd.demo.frames import Frame, to_bytes
from gwd.demo.prompt_cache import PromptCache
from gwd.demo.refusals import RefusedError
from gwd.demo.script import Script
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, encode, mint, seed_of

FAULT_HEADER = "x-demo-fault"
_JSON = "application/json"
_SSE = "text/event-stream; charset=utf-8"
_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Just a moment</title></head>"
    b"<body><h1>Checking your connection</h1></body></html>\n"
)


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """What all calls of one vendor share."""

    models: Mapping[str, ModelTraits]
    keys: frozenset[str] | None
    script: Script
    cache: PromptCache
    checks: Mapping[FormatName, Check]
    tokens_per_second: float
    now_s: Callable[[], int]


class Exchange:
    """Reads the call, decides, and answers it. `placed`: fields that stand in the path instead of the body."""

    def __init__(
        self, vendor: Vendor, form: Format, request: Request, placed: Json, *, number: int
    ) -> None:
        self._vendor = vendor
        self._form = form
        self._request = request
        body = _json_object(request.body)
        self.call = Call(
            method=request.method,
            path=request.path,
            query=dict(request.query_args),
            headers={name: ", ".join(request.headers.getall(name)) for name in request.headers},
            raw=request.body,
            body=body,
        )
        self._body = None if body is None else {**body, **placed}
        self._model, self._suffix = _named_model(self._body)
        self.call.model = self._model
        self._call_seed = seed_of(body or {}) + number.to_bytes(8, "big")
        self._request_id = mint("req_", seed=self._call_seed)

    async def play(self) -> None:
        try:
            behaviour = self._take_behaviour()
        except BehaviourError as error:
            await self._refuse(RefusedError(str(error)), Behaviour())
            return
        self.call.behaviour = behaviour
        if behaviour.status is not None or behaviour.body is not None or behaviour.body_bytes:
            await self._play_scripted(behaviour)
            return
        try:
            reply = self._reply(behaviour)
        except RefusedError as refused:
            await self._refuse(refused, behaviour)
            return
        await self._answer(reply)

    def _take_behaviour(self) -> Behaviour:
        words = self.call.headers.get(FAULT_HEADER) or self._suffix
        if not words and self._body is not None:
            words = directive_in(self._form.user_text(self._body))
        return self._vendor.script.take(self._model, words)

    def _reply(self, behaviour: Behaviour) -> Reply:
        """The answer, or RefusedError, in the order in which a vendor looks at a request."""
        check_caller(self._form, self.call.headers, self._vendor.keys)
        body = self._body
        if body is None:
            raise RefusedError(
                "We could not parse the JSON body of your request. The API expects a JSON object."
            )
        if not self._model:
            raise RefusedError("you must provide a model parameter")
        traits = self._vendor.models.get(self._model)
        if traits is None:
            raise self._form.unknown_model(self._model)
        if check := self._vendor.checks.get(self._form.name):
            check(body, self.call.headers, traits)
        try:
            self._form.check_size(body, traits)
            ask = self._form.ask(body, traits, self._vendor.cache)
        except UNREADABLE:
            raise RefusedError("The request does not have the form of this API.") from None
        return Reply(
            body=body,
            traits=traits,
            answer=answer(ask, behaviour),
            behaviour=behaviour,
            call_seed=self._call_seed,
            created_s=self._vendor.now_s(),
        )

    async def _answer(self, reply: Reply) -> None:
        behaviour = reply.behaviour
        streamed = reply.body.get("stream") is True
        if behaviour.malformed == "stream_for_json" and not streamed:
            # A stream that nobody asked for says everything, usage too.
            options = {"stream_options": {"include_usage": True}}
            asked = msgspec.structs.replace(reply, body={**reply.body, **options})
            frames = enumerate(self._form.frames(asked), 1)
            text = b"".join(to_bytes(frame, behaviour, number=number) for number, frame in frames)
            await self._send_whole(200, text, behaviour, _SSE)
        elif streamed and behaviour.malformed not in ("html", "empty_body", "json_for_stream"):
            await send_stream(
                self._request,
                self._head(200, behaviour, _SSE),
                self._frames(reply),
                behaviour,
                tokens_per_second=self._speed(behaviour),
            )
        else:
            await self._answer_whole(reply)

    async def _answer_whole(self, reply: Reply) -> None:
        behaviour = reply.behaviour
        status, body = 200, encode(self._form.whole(reply))
        content_type = _JSON
        if behaviour.malformed == "html":
            body, content_type = _PAGE, "text/html; charset=utf-8"
        elif behaviour.malformed == "empty_body":
            body = b""
        elif behaviour.malformed == "wrong_shape":
            body = b'["not", "an", "answer"]'
        elif behaviour.malformed == "bad_json":
            body = body[: len(body) // 2]
        elif behaviour.error is not None:
            # Some vendors report a failure of the model with a status that says all is well.
            refused = self._form.scripted(behaviour)
            body = encode(self._form.refusal(refused, self._request_id))
        if speed := self._speed(behaviour):
            wait_s = behaviour.delay_s + reply.answer.counts.completion / speed
            behaviour = msgspec.structs.replace(behaviour, delay_s=wait_s)
        await self._send_whole(status, body, behaviour, content_type)

    def _frames(self, reply: Reply) -> Iterator[Frame]:
        if reply.behaviour.error is None:
            return self._form.frames(reply)
        return self._failing_frames(reply)

    def _failing_frames(self, reply: Reply) -> Iterator[Frame]:
        yield from islice(self._form.frames(reply), reply.behaviour.error_after)
        yield from self._form.error_frames(reply)

    async def _play_scripted(self, behaviour: Behaviour) -> None:
        """A scripted status, with the vendor's own words or exactly the given body."""
        status = behaviour.status or 200
        if behaviour.body_bytes is not None:
            body = behaviour.body_bytes
        elif behaviour.body is not None:
            body = behaviour.body.encode()
        else:
            refused = self._form.scripted(behaviour, status)
            body = encode(self._form.refusal(refused, self._request_id))
        await self._send_whole(status, body, behaviour, _JSON)

    async def _refuse(self, refused: RefusedError, behaviour: Behaviour) -> None:
        body = encode(self._form.refusal(refused, self._request_id))
        await self._send_whole(refused.status, body, behaviour, _JSON)

    async def _send_whole(
        self, status: int, body: bytes, behaviour: Behaviour, content_type: str
    ) -> None:
        await send_whole(
            self._request, self._head(status, behaviour, content_type), body, behaviour
        )

    def _head(self, status: int, behaviour: Behaviour, content_type: str) -> Head:
        headers = self._form.headers(self._request_id)
        if behaviour.retry_after is not None:
            headers["retry-after"] = behaviour.retry_after
        headers.update(behaviour.headers)
        if content_type == _SSE:
            headers.setdefault("cache-control", "no-cache")
        if not _silent(behaviour):
            self.call.status = status
        return Head(
            status=status, content_type=behaviour.content_type or content_type, headers=headers
        )

    def _speed(self, behaviour: Behaviour) -> float:
        if behaviour.tokens_per_second is not None:
            return behaviour.tokens_per_second
        return self._vendor.tokens_per_second


def _silent(behaviour: Behaviour) -> bool:
    """No status line will ever go out."""
    cut = behaviour.cut is not None and behaviour.cut_after == BEFORE_HEADERS
    return cut or behaviour.stall_after == BEFORE_HEADERS


def _json_object(body: bytes) -> Json | None:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _named_model(body: Json | None) -> tuple[str, str | None]:
    """The model's name and the words after `#` in it."""
    name = (body or {}).get("model")
    if not isinstance(name, str):
        return "", None
    model, _, words = name.partition("#")
    return model, words.replace(",", " ") or None
