"""At the root: /healthz (the event loop runs), its test stream, /readyz (the node takes requests), /metrics."""

import asyncio
from typing import Any, Final

from sanic import HTTPResponse, Request, Sanic

from gwd.api import headers as response_headers
from gwd.api import metrics
from gwd.api.node import Node
from gwd.api.readiness import unready
from gwd.dialects.base import EVENT_STREAM

PIECES: Final = 4
GAP_S: Final = 0.25
READ: Final = ("GET", "HEAD")
ERRORS: Final = (
    "json"  # said of every route: left to guess, the framework reads each handler's source
)


def add_health(app: Sanic[Any, Any], node: Node) -> None:
    """Both say only yes or no; the reason is in the log and in the metrics."""

    async def healthz(_: Request) -> HTTPResponse:
        return HTTPResponse(b"ok", 200)

    async def readyz(_: Request) -> HTTPResponse:
        if unready(node) is not None:
            return HTTPResponse(b"not ready", 503)
        # No reason to send requests elsewhere: what a wrong clock could harm waits.
        believed = node.clock.standing().state == "ok"
        return HTTPResponse(b"ready" if believed else b"ready, but the clock is in doubt", 200)

    async def stream(request: Request) -> None:
        """Pieces that are sent some time apart: who gets them together has something that holds them back."""
        response = await request.respond(
            content_type=EVENT_STREAM.content_type, headers=response_headers.stream()
        )
        for at in range(PIECES):
            await asyncio.sleep(GAP_S if at else 0)
            await response.send(b"data: %d\n\n" % at)
        await response.eof()

    app.add_route(healthz, "/healthz", methods=READ, name="healthz", error_format=ERRORS)
    app.add_route(stream, "/healthz/stream", methods=["GET"], name="stream", error_format=ERRORS)
    app.add_route(readyz, "/readyz", methods=READ, name="readyz", error_format=ERRORS)


def add_metrics(app: Sanic[Any, Any], node: Node) -> None:
    """The page that Prometheus reads."""

    async def page(_: Request) -> HTTPResponse:
        return HTTPResponse(
            await metrics.render(node), 200, {"cache-control": "no-store"}, metrics.CONTENT_TYPE
        )

    app.add_route(page, "/metrics", methods=["GET"], name="metrics", error_format=ERRORS)
