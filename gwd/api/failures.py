"""What the framework raises, as an answer of ours: in the envelope of the path's dialect, with the headers it needs."""

import logging
from typing import Final, cast

from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed as SanicMethodNotAllowed
from sanic.exceptions import NotFound as SanicNotFound
from sanic.exceptions import PayloadTooLarge, RequestCancelled, RequestTimeout, SanicException
from sanic.handlers import ErrorHandler
from sanic_routing.exceptions import NoMethod
from sanic_routing.exceptions import NotFound as RoutingNotFound

from gwd.api import gemini, inference
from gwd.api import headers as response_headers
from gwd.api.bodies import too_large
from gwd.api.body_intake import BodiesFull
from gwd.api.headers import JSON
from gwd.api.http_guard import BadHead, GuardedProtocol, HeadTooLarge
from gwd.api.node import Node
from gwd.core import errors
from gwd.core.errors import GatewayError, InternalError
from gwd.core.ids import mint
from gwd.dialects.base import Dialect
from gwd.dialects.envelope import error_body

BASE_PATHS: Final = ("/api/v1", "/v1")
METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
NO_STORE: Final = {"cache-control": "no-store"}

log = logging.getLogger(__name__)


class Errors(ErrorHandler):
    """Whatever the framework raises, in the envelope of the path's dialect."""

    def __init__(self, node: Node, dialects: dict[str, Dialect]) -> None:
        super().__init__()
        self._node = node
        self._dialects = dialects
        self.add(PayloadTooLarge, self._too_large)

    def default(self, request: Request | None, exception: Exception) -> HTTPResponse:
        request_id = mint("req_")
        error = _translated(exception, request)
        if isinstance(exception, RequestCancelled):
            return HTTPResponse(b"", 499)  # the client has left; nobody reads this
        if isinstance(error, InternalError):
            log.error("unexpected error", exc_info=exception, extra={"request_id": request_id})
        dialect = self._dialect(request)
        if dialect is None:
            return failed(error, request_id)
        headers = response_headers.base(request_id) | response_headers.of_error(error)
        return HTTPResponse(dialect.error(error, request_id), error.status, headers, JSON)

    def _dialect(self, request: Request | None) -> Dialect | None:
        """The dialect in whose envelope a path's errors stand."""
        if request is not None and gemini.is_ours(request):
            return gemini.bound(request)
        path = _without_base(request)
        for known, dialect in self._dialects.items():
            if path == known or path.startswith(f"{known}/"):
                return dialect
        return None

    async def _too_large(self, request: Request, exception: Exception) -> HTTPResponse | None:
        """The framework stops at the head of a body that is too large; whose it is has to be known all the same."""
        dialect = self._dialects.get(_without_base(request))
        if gemini.is_ours(request):
            dialect = gemini.bound(request)
        if dialect is None:
            return self.default(request, exception)
        error = too_large(self._node.settings.limits.request_body_max_bytes)
        address = address_of(request)
        return await inference.serve(request, self._node, dialect, address, refusal=error)


def _without_base(request: Request | None) -> str:
    path = request.path if request is not None else ""
    for base in BASE_PATHS:
        path = path.removeprefix(base)
    return path


def _allowed(request: Request | None) -> tuple[str, ...]:
    """The methods that a path takes. The framework forgets them where a path has parameters."""
    if request is None:
        return ()
    found = []
    for method in METHODS:
        try:
            request.app.router.resolve(request.path, method=method)
        except (NoMethod, RoutingNotFound):
            continue
        found.append(method)
    return tuple(found)


def _translated(exception: Exception, request: Request | None) -> GatewayError:
    match exception:
        case GatewayError():
            return exception
        case SanicMethodNotAllowed():
            allowed = _allowed(request)
            return errors.MethodNotAllowed(
                f"this endpoint does not take that method; it takes {', '.join(allowed)}",
                allowed=allowed,
            )
        case SanicNotFound():
            return errors.NotFound("no such endpoint; the API's base path is /api/v1")
        case HeadTooLarge():
            return errors.RequestTooLarge(str(exception))
        case PayloadTooLarge():
            return errors.RequestTooLarge("the body is too large; send less")
        case BodiesFull():
            return errors.Overloaded(
                "too many large requests arrive at once; try again in a moment", retry_after_s=5
            )
        case RequestTimeout():
            return errors.RequestTimeout(
                "the request took too long to arrive: its head has 10 s, its body 1 KiB/s after that"
            )
        case BadHead():
            return errors.InvalidRequest(str(exception))
        case SanicException() if exception.status_code < 500:
            return errors.InvalidRequest("the request is not valid HTTP for this gateway")
        case _:
            return InternalError("unexpected")


def failed(error: GatewayError, request_id: str) -> HTTPResponse:
    """An error in the envelope of every route but /messages."""
    headers = response_headers.base(request_id) | response_headers.of_error(error) | NO_STORE
    return HTTPResponse(error_body(error, request_id), error.status, headers, JSON)


def address_of(request: Request) -> str:
    """The client's address, behind trusted proxies as well; empty for one that came over the Unix socket."""
    return cast("GuardedProtocol", request.protocol).client_of(request.headers)
