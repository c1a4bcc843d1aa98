"""The page's place among the routes of the server. What it consists of is imported when somebody opens it."""

from typing import Any, Final
from urllib.parse import unquote

from sanic import HTTPResponse, Request, Sanic

from gwd.api.failures import address_of
from gwd.api.node import Node
from gwd.core.links import PAGE_PATH

OLD_PLACES: Final = ("keys", "budgets", "settings", "models")
"""Where links of mails and webhooks led before there was a page; they go on to it."""
_ERRORS: Final = "json"
_LOADING_BYTES: Final = 1_000_000  # the work of importing it, as the bytes of a body


def mount(app: Sanic[Any, Any], node: Node) -> None:
    """Serve the page at /app, and lead old links there."""
    loaded: list[Any] = []

    async def page(request: Request, path: str = "") -> HTTPResponse:
        if not loaded:
            loaded.append(await node.line.offload.run(_LOADING_BYTES, _load, node))
        return await _answered(loaded[0], request, path)

    async def first(_: Request) -> HTTPResponse:
        return HTTPResponse(b"", 302, {"location": f"{node.app_url}/"})

    async def moved(request: Request, **_: str) -> HTTPResponse:
        query = f"?{request.query_string}" if request.query_string else ""
        return HTTPResponse(b"", 302, {"location": f"{node.app_url}{request.path}{query}"})

    methods = ["GET", "HEAD", "POST"]
    app.add_route(
        first,
        PAGE_PATH,
        methods=["GET", "HEAD"],
        name="page",
        strict_slashes=True,
        error_format=_ERRORS,
    )
    app.add_route(
        page,
        f"{PAGE_PATH}/",
        methods=methods,
        name="page_first",
        strict_slashes=True,
        error_format=_ERRORS,
    )
    app.add_route(
        page, f"{PAGE_PATH}/<path:path>", methods=methods, name="page_below", error_format=_ERRORS
    )
    for place in OLD_PLACES:
        app.add_route(
            moved,
            f"/{place}/<path:path>",
            methods=["GET"],
            name=f"moved_{place}",
            error_format=_ERRORS,
        )
    app.add_route(moved, "/node", methods=["GET"], name="moved_node", error_format=_ERRORS)


def _load(node: Node) -> Any:
    from gwd.page.site import Site

    return Site(node)


async def _answered(site: Any, request: Request, path: str) -> HTTPResponse:
    from gwd.page import session
    from gwd.page.gate import Came

    came = Came(
        method=request.method,
        path=f"/{unquote(path)}",
        query=request.query_string,
        headers=request.headers,
        cookies=session.read(request.headers.get("cookie")),
        body=request.body,
        address=address_of(request),
    )
    sent = await site.answer(came)
    return HTTPResponse(sent.body, sent.status, dict(sent.headers), sent.content_type)
