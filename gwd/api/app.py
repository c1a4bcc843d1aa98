"""The sanic application: built from the table of routes, with our error envelopes instead of the framework's."""

import logging
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from sanic import HTTPResponse, Request, Sanic

from gwd.api import count_tokens, gemini, inference, models, vital_routes
from gwd.api import headers as response_headers
from gwd.api.auth import check_access, count_auth_failure
from gwd.api.failures import BASE_PATHS, NO_STORE, Errors, address_of, failed
from gwd.api.front_page import add_front_page, wants_html
from gwd.api.headers import JSON
from gwd.api.invitations import HOW_TO_ACCEPT
from gwd.api.node import Node
from gwd.api.perform import Incoming, Reply, perform, perform_open
from gwd.api.route import LiveRoute, OpenRoute, Route
from gwd.api.routes import LIVE_ROUTES, OPEN_ROUTES, ROUTES
from gwd.api.vital_routes import ERRORS
from gwd.core.errors import GatewayError, StatementMismatch
from gwd.core.ids import mint
from gwd.dialects.base import Dialect
from gwd.dialects.gemini import Gemini
from gwd.dialects.messages import Messages

READ: Final = ("GET", "HEAD")
RESPONSE_LIMIT_S: Final = 100_000  # our own deadlines end answers, never the framework's
KEEP_ALIVE_S: Final = 75
REQUEST_LIMIT_S: Final = 60
PLAIN: Final = "text/plain; charset=utf-8"
OPENAPI_BYTES: Final = 1_000_000  # the work of building it, as the bytes of a body
BODY_SLACK: Final = 1024  # the framework's cap is above ours, so that ours gives the error

Handler = Callable[..., Coroutine[Any, Any, HTTPResponse | None]]

log = logging.getLogger(__name__)
_NAME: Final = re.compile(r"[^A-Za-z0-9]+")
_NO_NAME: Final = re.compile(r"[^!#$%&'*+\-.^_`|~0-9A-Za-z, ]+")  # not in a list of header names


def build(
    node: Node, dialects: dict[str, Dialect], *, name: str = "gwd", alone: bool = False
) -> Sanic[Any, Any]:
    """The application of a node. `dialects` by their path.

    `alone` says that this is the only application of the process: then the framework may rewrite its own hot
    functions for it (it can do so once).
    """
    app = _bare(node, dialects, name, alone=alone)
    _add_inference(app, node, dialects)
    _add_models(app, node)
    _add_openapi(app, node)
    managed: tuple[Route | LiveRoute, ...] = (*ROUTES, *LIVE_ROUTES)
    for route in managed:
        _add(app, route.method, route.path, _management(node, route))
    for open_route in OPEN_ROUTES:
        _add(app, open_route.method, open_route.path, _open(node, open_route))
    vital_routes.add_health(app, node)
    if not node.settings.server.metrics_port:
        vital_routes.add_metrics(app, node)
    _add_root(app, node)
    return app


def build_vitals(node: Node, *, name: str) -> Sanic[Any, Any]:
    """The application of the separate listener: health and metrics, nothing else."""
    app = _bare(node, {}, name, alone=False)
    vital_routes.add_health(app, node)
    vital_routes.add_metrics(app, node)
    return app


def _bare(node: Node, dialects: dict[str, Dialect], name: str, *, alone: bool) -> Sanic[Any, Any]:
    app: Sanic[Any, Any] = Sanic(
        name, configure_logging=False, error_handler=Errors(node, dialects), loads=_no_loads
    )
    app.config.update(
        ACCESS_LOG=False,
        MOTD=False,
        AUTO_EXTEND=False,
        FALLBACK_ERROR_FORMAT=ERRORS,
        KEEP_ALIVE_TIMEOUT=KEEP_ALIVE_S,
        REQUEST_TIMEOUT=REQUEST_LIMIT_S,
        RESPONSE_TIMEOUT=RESPONSE_LIMIT_S,
        REQUEST_MAX_SIZE=node.settings.limits.request_body_max_bytes + BODY_SLACK,
        INSPECTOR=False,
        TOUCHUP=alone,
    )
    return app


def _add(
    app: Sanic[Any, Any],
    method: str,
    path: str,
    handler: Handler,
    bases: tuple[str, ...] = BASE_PATHS,
) -> None:
    for base in bases:
        name = _NAME.sub("_", f"{method}_{base}{path}")
        app.add_route(handler, base + path, methods=[method], name=name, error_format=ERRORS)


def _add_inference(app: Sanic[Any, Any], node: Node, dialects: dict[str, Dialect]) -> None:
    for path, dialect in dialects.items():
        if isinstance(dialect, Gemini):
            _add_gemini(app, node, path)
            continue
        _add(app, "POST", path, _inference(node, dialect))
        if isinstance(dialect, Messages):
            _add(app, "POST", dialect.count_path, _count_tokens(node, dialect))


def _add_gemini(app: Sanic[Any, Any], node: Node, path: str) -> None:
    """Its calls under every base, and under its own the lists of models in its form."""

    async def call(request: Request, model: str) -> HTTPResponse | None:
        return await gemini.call(request, node, address_of(request), model)

    async def list_(request: Request) -> HTTPResponse:
        return await gemini.list_models(request, node, address_of(request))

    async def get(request: Request, model: str) -> HTTPResponse:
        return await gemini.get_model(request, node, model)

    _add(app, "POST", path, call, (*BASE_PATHS, *gemini.BETA_PATHS))
    for method in READ:
        _add(app, method, "/models", list_, gemini.BETA_PATHS)
        _add(app, method, path, get, gemini.BETA_PATHS)


def _inference(node: Node, dialect: Dialect) -> Handler:
    async def handle(request: Request) -> HTTPResponse | None:
        return await inference.serve(request, node, dialect, address_of(request))

    return handle


def _count_tokens(node: Node, dialect: Messages) -> Handler:
    async def handle(request: Request) -> HTTPResponse:
        return await count_tokens.count(request, node, dialect, address_of(request))

    return handle


def _add_models(app: Sanic[Any, Any], node: Node) -> None:
    """Public reading of the catalog, for Google's SDKs in the form that they read."""

    async def list_(request: Request) -> HTTPResponse:
        if gemini.is_client(request):
            return await gemini.list_models(request, node, address_of(request))
        listed = models.list_models(node, _query(request), request.headers, address_of(request))
        return await _public(listed)

    async def get(request: Request, model: str) -> HTTPResponse:
        if gemini.is_client(request):
            return await gemini.get_model(request, node, model)
        return await _public(models.get_model(node, model))

    for method in READ:
        _add(app, method, "/models", list_)
        _add(app, method, "/models/<model:path>", get)


def _add_openapi(app: Sanic[Any, Any], node: Node) -> None:
    """The written shape of the API, built when it is first asked for."""
    base_path = urlsplit(node.base_url).path

    async def show(_: Request) -> HTTPResponse:
        return await _public(node.line.offload.run(OPENAPI_BYTES, _written_shape, base_path))

    for method in READ:
        _add(app, method, "/openapi.json", show)


def _written_shape(base_path: str) -> bytes:
    from gwd.api import openapi  # a start does without it

    return openapi.encoded(base_path)


async def _public(body: Awaitable[bytes]) -> HTTPResponse:
    request_id = mint("req_")
    try:
        return HTTPResponse(await body, 200, response_headers.base(request_id), JSON)
    except GatewayError as error:
        return failed(error, request_id)


def _management(node: Node, route: Route | LiveRoute) -> Handler:
    async def handle(request: Request, **parameters: str) -> HTTPResponse:
        request_id = mint("req_")
        try:
            incoming = _incoming(request, route.method, request_id, parameters)
            row = await node.authenticator.find(request.headers, incoming.address)
            caller = check_access(row, route.access, now_us=node.clock.now_us())
            reply = await perform(node, route, incoming, caller)
        except StatementMismatch as error:
            node.counters.statement_mismatches += 1
            log.error("a statement is not shown: %s", error, extra={"request_id": request_id})
            return failed(error, request_id)
        except GatewayError as error:
            count_auth_failure(node.counters, error)
            return failed(error, request_id)
        return _answered(reply, request_id)

    return handle


def _open(node: Node, route: OpenRoute) -> Handler:
    async def handle(request: Request, **parameters: str) -> HTTPResponse:
        request_id = mint("req_")
        try:
            incoming = _incoming(request, route.method, request_id, parameters)
            reply = await perform_open(node, route, incoming)
        except GatewayError as error:
            return failed(error, request_id)
        return _answered(reply, request_id)

    return handle


def _incoming(
    request: Request, method: str, request_id: str, parameters: dict[str, str]
) -> Incoming:
    return Incoming(
        method=method,
        path=request.path,
        parameters={name: unquote(value) for name, value in parameters.items()},
        query=request.get_query_args(keep_blank_values=True),
        headers=request.headers,
        body=request.body,
        address=address_of(request),
        request_id=request_id,
    )


def _answered(reply: Reply, request_id: str) -> HTTPResponse:
    headers = response_headers.base(request_id) | NO_STORE
    if reply.replayed:
        headers["idempotency-replayed"] = "true"
    return HTTPResponse(reply.body, reply.status, headers, JSON)


def _add_root(app: Sanic[Any, Any], node: Node) -> None:
    """The probes of agents, preflight, the front page and invitations, and the counting of answers."""

    async def probe(_: Request) -> HTTPResponse:
        return HTTPResponse(b"", 204)

    async def preflight(request: Request, **_: str) -> HTTPResponse:
        wanted = request.headers.get(
            "access-control-request-headers", "authorization, content-type"
        )
        wanted = _NO_NAME.sub("", wanted)
        return HTTPResponse(
            b"",
            204,
            {
                "access-control-allow-methods": "GET, POST, OPTIONS",
                "access-control-allow-headers": wanted,
                "access-control-max-age": "86400",
            },
        )

    async def invited(request: Request) -> HTTPResponse:
        if node.settings.server.page and wants_html(request):
            path = f"{node.app_url}/invitations/accept?{request.query_string}"
            return HTTPResponse(b"", 302, NO_STORE | {"location": path})
        text = HOW_TO_ACCEPT.format(node.base_url)
        return HTTPResponse(text, 200, NO_STORE | {"referrer-policy": "no-referrer"}, PLAIN)

    app.add_route(
        invited, "/invitations/accept", methods=["GET"], name="invited", error_format=ERRORS
    )
    add_front_page(app, node)
    for place, path in enumerate(("/", "/api", "/api/v1", "/v1")):
        app.add_route(probe, path, methods=["HEAD"], name=f"probe_{place}", error_format=ERRORS)
    public = [*_inference_paths(app), "/models", "/models/<model:path>"]
    for path in dict.fromkeys(public):
        _add(app, "OPTIONS", path, preflight)
    for path in ("/models", "/models/<model:path>"):
        _add(app, "OPTIONS", path, preflight, gemini.BETA_PATHS)

    _count_answers(app, node)


def _count_answers(app: Sanic[Any, Any], node: Node) -> None:
    """Every answer is counted, and those of public paths may be read by the origins that the settings name."""
    requests = node.counters.requests
    origins = node.settings.server.cors_origins

    def finish(request: Any, response: Any) -> None:
        route = request.route
        if route is None:
            requests["", "", response.status // 100] += 1
        else:
            requests[request.method, route.path, response.status // 100] += 1
        origin = request.headers.get("origin")
        if origin is None or not _is_public(request.path):
            return
        is_open = not origins or "*" in origins
        if is_open or origin in origins:
            response.headers["access-control-allow-origin"] = "*" if is_open else origin
            response.headers["access-control-expose-headers"] = response_headers.EXPOSED
        if not is_open:
            response.headers["vary"] = "origin"

    app.register_middleware(finish, "response")


def _inference_paths(app: Sanic[Any, Any]) -> list[str]:
    paths = []
    for route in app.router.routes:
        path = f"/{route.path}"
        if "POST" in route.methods and _is_public(path) and path.startswith(f"{BASE_PATHS[0]}/"):
            paths.append(path.removeprefix(BASE_PATHS[0]))
    return paths


_PUBLIC: Final = (
    "/chat/completions",
    "/messages",
    "/responses",
    "/completions",
    "/embeddings",
    "/models",
    "/openapi.json",
)


def _is_public(path: str) -> bool:
    for base in (*gemini.BETA_PATHS, *BASE_PATHS):
        if path.startswith(base):
            return path.removeprefix(base).startswith(_PUBLIC)
    return False


def _query(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in request.args.items()}


def _no_loads(_: Any) -> Any:
    raise AssertionError("bodies are read by gwd.api.bodies and the dialects")
