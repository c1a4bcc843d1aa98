"""The addresses of Google's format: `models/NAME:method` under every base, and its own list of models.

A name may hold a slash, as our slugs do, and may be percent-encoded. The key may stand in the query (`?key=`): it is
read as if it were the header of the same vendor, and shows up nowhere.
"""

from collections.abc import Awaitable, Mapping
from typing import Final
from urllib.parse import unquote

from sanic import HTTPResponse, Request

from gwd.api import count_tokens, gemini_models, inference
from gwd.api import headers as response_headers
from gwd.api.headers import JSON
from gwd.api.node import Node
from gwd.core.errors import GatewayError, InvalidValue, MethodNotAllowed, NotFound
from gwd.core.ids import mint
from gwd.dialects.gemini import DIALECT, METHODS, Gemini
from gwd.keys import secret

BETA_PATHS: Final = ("/api/v1beta", "/v1beta")
_KEY: Final = "x-goog-api-key"
_CLIENT: Final = "x-goog-api-client"
_FORMS: Final = ("sse", "json")


async def call(request: Request, node: Node, address: str, path: str) -> HTTPResponse | None:
    """One call of a model's method; `path` is what stands behind `models/`."""
    name, _, method = unquote(path).rpartition(":")
    if method not in METHODS:
        known = ", ".join(METHODS)
        return refused(NotFound(f"no such method of a model; `models/NAME:METHOD` takes {known}"))
    take_query_key(request)
    dialect = DIALECT.at(name, method, alt=request.args.get("alt"))
    if dialect.counts:
        return await count_tokens.count(request, node, dialect, address)
    return await inference.serve(request, node, dialect, address, refusal=_unknown_form(request))


async def list_models(request: Request, node: Node, address: str) -> HTTPResponse:
    """The list of models as Google's SDKs read it."""
    take_query_key(request)
    return await _read(gemini_models.list_models(node, _query(request), request.headers, address))


async def get_model(request: Request, node: Node, name: str) -> HTTPResponse:
    """One model as Google's SDKs read it."""
    if unquote(name).rpartition(":")[2] in METHODS:
        return refused(MethodNotAllowed("this is called with POST", allowed=("POST",)))
    return await _read(gemini_models.get_model(node, unquote(name)))


def is_client(request: Request) -> bool:
    """Whether a request to a path that clients of several formats share comes from one of Google's."""
    headers: Mapping[str, str] = request.headers
    return _KEY in headers or _CLIENT in headers or "key" in request.args


def is_ours(request: Request) -> bool:
    """Whether the path of a request, of one that fails before its handler too, is one of Google's format."""
    path = request.path
    if path.startswith(BETA_PATHS):
        return True
    return request.method == "POST" and path.startswith(("/v1/models/", "/api/v1/models/"))


def bound(request: Request) -> Gemini:
    """The dialect for the address of a request whose handler is not reached."""
    name, _, method = unquote(request.path).rpartition("/models/")[2].rpartition(":")
    if method not in METHODS:
        return DIALECT
    take_query_key(request)
    return DIALECT.at(name, method, alt=request.args.get("alt"))


def take_query_key(request: Request) -> None:
    """Put the key of the query where keys are looked for, unless the header holds one of ours."""
    given = request.args.get("key")
    if given and not secret.is_well_formed(request.headers.get(_KEY, "").strip()):
        request.headers[_KEY] = given


def refused(error: GatewayError) -> HTTPResponse:
    """An error in Google's envelope."""
    request_id = mint("req_")
    headers = response_headers.base(request_id) | response_headers.of_error(error)
    return HTTPResponse(DIALECT.error(error, request_id), error.status, headers, JSON)


async def _read(body: Awaitable[bytes]) -> HTTPResponse:
    request_id = mint("req_")
    try:
        return HTTPResponse(await body, 200, response_headers.base(request_id), JSON)
    except GatewayError as error:
        return refused(error)


def _query(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in request.args.items()}


def _unknown_form(request: Request) -> InvalidValue | None:
    alt = request.args.get("alt")
    if alt in (None, *_FORMS):
        return None
    return InvalidValue("`alt` must be sse or json", param="alt")
