"""The simulated vendor's HTTP server: routes, credentials, models, and the life of the listener."""

import asyncio
import itertools
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from sanic import Request, Sanic
from sanic.exceptions import NotFound, SanicException
from sanic.response import HTTPResponse, raw
from sanic.server.async_server import AsyncioServer

from gwd.core.clock import US_PER_S, Clock, SystemClock
from gwd.demo.calls import Call, Calls
from gwd.demo.chat import ChatFormat
from gwd.demo.delivery import CutOffError
from gwd.demo.embeddings import EmbeddingsFormat
from gwd.demo.exchange import Exchange, Vendor
from gwd.demo.formats import Check, Format, FormatName, check_caller
from gwd.demo.gemini import GeminiFormat
from gwd.demo.gemini_embeddings import GeminiEmbeddingsFormat
from gwd.demo.messages import MessagesFormat
from gwd.demo.model_list import list_models, one_model
from gwd.demo.prompt_cache import PromptCache
from gwd.demo.refusals import RefusedError, gemini_body, openai_body
from gwd.demo.responses import ResponsesFormat
from gwd.demo.script import Script
from gwd.demo.traits import DEFAULT_MODELS, ModelTraits
from gwd.demo.wire import Json, encode

_MAX_BODY_BYTES = 64 * 1024 * 1024
_BACKLOG = 1024
_LONG_S = 24 * 3600
_numbers = itertools.count(1)
# The methods of a Gemini model, and whether each answers with a stream.
_GEMINI: dict[str, tuple[Format, bool]] = {
    "generateContent": (GeminiFormat(), False),
    "streamGenerateContent": (GeminiFormat(), True),
    "batchEmbedContents": (GeminiEmbeddingsFormat(), False),
}

Handler = Callable[[Request], Coroutine[Any, Any, HTTPResponse | None]]


class SimulatedVendor:
    """A vendor on a free loopback port, as an async context manager inside the running loop.

    models: what it serves, ModelTraits or bare names of plain chat models; None takes the default set.
    keys: the credentials it accepts; None accepts any, none at all (an empty list) refuses whatever is sent as one.
    tokens_per_second: how fast it speaks; 0 is at once.
    cache_minimum: the smallest prompt, in tokens, that is cached.
    script: behaviours that tests queue; `vendor.script` is the same object.
    checks: what looks at each format's requests as strictly as the real vendor; without one, whatever can be read is
    answered.
    """

    def __init__(
        self,
        *,
        models: Iterable[ModelTraits | str] | None = None,
        keys: Iterable[str] | None = None,
        tokens_per_second: float = 0.0,
        cache_minimum: int = 1024,
        script: Script | None = None,
        checks: Mapping[FormatName, Check] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self.calls = Calls()
        self.script = script or Script()
        self.models = {traits.name: traits for traits in map(_as_traits, models or DEFAULT_MODELS)}
        self._keys = None if keys is None else frozenset(keys)
        self._clock = clock or SystemClock()
        self._vendor = Vendor(
            models=self.models,
            keys=self._keys,
            script=self.script,
            cache=PromptCache(cache_minimum),
            checks=checks or {},
            tokens_per_second=tokens_per_second,
            now_s=lambda: self._clock.now_us() // US_PER_S,
        )
        self._call_numbers = itertools.count(1)
        self._host, self._wanted_port = host, port
        self._app: Sanic[Any, Any] | None = None
        self._server: AsyncioServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Where it listens, without a path: what the Anthropic SDK takes as its base URL."""
        return f"http://{self._host}:{self._port}"

    @property
    def openai_url(self) -> str:
        """What the OpenAI SDK takes as its base URL."""
        return self.url + "/v1"

    @property
    def gemini_url(self) -> str:
        """What Gemini's SDK takes as its base URL, with the version."""
        return self.url + "/v1beta"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self._host, self._wanted_port))
        self._port = listener.getsockname()[1]
        self._app = self._build_app()
        server = await self._app.create_server(
            sock=listener, backlog=_BACKLOG, access_log=False, return_asyncio_server=True
        )
        assert server is not None
        await server.startup()  # type: ignore[no-untyped-call]
        await server.start_serving()  # type: ignore[no-untyped-call]
        self._server = server

    async def stop(self) -> None:
        """Close the listener and every open connection."""
        if self._server is None or self._app is None:
            return
        server, app = self._server, self._app
        self._server = self._app = None
        closing = server.close()  # type: ignore[no-untyped-call]
        for connection in tuple(server.connections):
            connection.abort()
        if closing is not None:
            await closing
        # Let the aborted connections end their handlers before the loop may close.
        await self.calls.all_finished()
        await asyncio.sleep(0)
        Sanic.unregister_app(app)

    def _build_app(self) -> "Sanic[Any, Any]":
        app: Sanic[Any, Any] = Sanic(f"gwd-demo-{next(_numbers)}", configure_logging=False)
        app.config.MOTD = False
        app.config.REQUEST_MAX_SIZE = _MAX_BODY_BYTES
        app.config.RESPONSE_TIMEOUT = _LONG_S
        app.config.REQUEST_TIMEOUT = _LONG_S
        app.config.KEEP_ALIVE_TIMEOUT = _LONG_S
        # Rewriting sanic's own classes for one app would reach into the other apps of the process.
        app.config.TOUCHUP = False
        formats: dict[str, Format] = {
            "/v1/chat/completions": ChatFormat(),
            "/v1/messages": MessagesFormat(),
            "/v1/messages/count_tokens": MessagesFormat(counts_only=True),
            "/v1/responses": ResponsesFormat(),
            "/v1/embeddings": EmbeddingsFormat(),
        }
        for number, (path, form) in enumerate(formats.items()):
            app.add_route(
                self._handler(form),
                path,
                methods=["POST"],
                name=f"format-{number}",
                strict_slashes=True,
                error_format="json",
            )
        app.add_route(
            self._gemini,
            "/v1beta/models/<named:str>",
            methods=["POST"],
            name="gemini",
            error_format="json",
        )
        app.add_route(
            self._list_models, "/v1/models", methods=["GET"], name="models", error_format="json"
        )
        app.add_route(
            self._one_model,
            "/v1/models/<name:path>",
            methods=["GET"],
            name="model",
            error_format="json",
        )
        app.exception(SanicException)(self._no_such_route)
        return app

    def _handler(self, form: Format) -> Handler:
        async def handle(request: Request) -> HTTPResponse | None:
            return await self._play(form, request, {})

        return handle

    async def _gemini(self, request: Request, named: str) -> HTTPResponse | None:
        """`model:method`: what the other formats say in the body stands in the path."""
        model, _, method = unquote(named).rpartition(":")
        if method not in _GEMINI:
            return await self._no_such_route(request, NotFound())
        form, streamed = _GEMINI[method]
        return await self._play(form, request, {"model": model, "stream": streamed})

    async def _play(self, form: Format, request: Request, placed: Json) -> HTTPResponse | None:
        number = next(self._call_numbers)
        exchange = Exchange(self._vendor, form, request, placed, number=number)
        call = exchange.call
        await self.calls.add(call)
        ended_by_vendor = False
        try:
            await exchange.play()
        except CutOffError as cut:
            if cut.closed:
                ended_by_vendor = True
                # The connection goes down now; that cancels this handler.
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            call.closed_early = not ended_by_vendor and self._server is not None
            raise
        finally:
            call.finished.set()
        return None

    async def _list_models(self, request: Request) -> HTTPResponse:
        return await self._models_answer(request, None)

    async def _one_model(self, request: Request, name: str) -> HTTPResponse:
        return await self._models_answer(request, unquote(name))

    async def _models_answer(self, request: Request, name: str | None) -> HTTPResponse:
        call = Call(
            method=request.method,
            path=request.path,
            query=dict(request.query_args),
            headers=dict(request.headers),
            raw=b"",
            body=None,
            model=name or "",
        )
        await self.calls.add(call)
        form: Format = MessagesFormat() if "anthropic-version" in request.headers else ChatFormat()
        try:
            check_caller(form, call.headers, self._keys)
            if name is None:
                body = list_models(self.models, anthropic=isinstance(form, MessagesFormat))
            elif name in self.models:
                body = one_model(self.models[name], anthropic=isinstance(form, MessagesFormat))
            else:
                raise form.unknown_model(name)
            call.status = 200
        except RefusedError as refused:
            body, call.status = form.refusal(refused, "req_demo"), refused.status
        call.finished.set()
        return raw(encode(body), status=call.status, content_type="application/json")

    async def _no_such_route(self, request: Request, error: SanicException) -> HTTPResponse:
        """404 and 405, as the vendor of that path words them; recorded like every call."""
        call = Call(
            method=request.method,
            path=request.path,
            query=dict(request.query_args),
            headers=dict(request.headers),
            raw=request.body or b"",
            body=None,
            status=error.status_code,
        )
        call.finished.set()
        await self.calls.add(call)
        message = f"Invalid URL ({request.method} {request.path})"
        body = openai_body(RefusedError(message, status=error.status_code))
        if request.path.startswith("/v1/messages"):
            refused = RefusedError("Not Found", status=404, kind="not_found_error")
            body = MessagesFormat().refusal(refused, "req_demo")
        elif request.path.startswith("/v1beta/"):
            body = gemini_body(RefusedError("Method not found.", status=error.status_code))
        return raw(encode(body), status=error.status_code, content_type="application/json")


def _as_traits(model: ModelTraits | str) -> ModelTraits:
    return ModelTraits(name=model) if isinstance(model, str) else model
