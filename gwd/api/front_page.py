"""GET /: what this is and where things are, for programs that look there; browsers go on to the page."""

from html import escape
from typing import Any, Final
from urllib.parse import urlsplit

from sanic import HTTPResponse, Request, Sanic

from gwd.api.node import Node
from gwd.api.vital_routes import ERRORS
from gwd.core.links import page_root

_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    "referrer-policy": "no-referrer",
    "vary": "accept",
    "x-content-type-options": "nosniff",
}
_STYLE: Final = "body{font:16px/1.5 sans-serif;max-width:44em;margin:3em auto;padding:0 1em}"


def add_front_page(app: Sanic[Any, Any], node: Node) -> None:
    """A page for browsers, the same as plain text for everything else."""
    pages = _pages(node)
    plain = _plain(node.base_url, pages)
    html = _html(node.base_url, pages)

    async def front(request: Request) -> HTTPResponse:
        if wants_html(request):
            if node.settings.server.page:
                return HTTPResponse(
                    b"", 302, _HEADERS | {"location": f"{page_root(node.app_url)}/"}
                )
            return HTTPResponse(html, 200, _HEADERS, "text/html; charset=utf-8")
        return HTTPResponse(plain, 200, _HEADERS, "text/plain; charset=utf-8")

    app.add_route(front, "/", methods=["GET"], name="front_page", error_format=ERRORS)


def wants_html(request: Request) -> bool:
    """Whether a browser asks."""
    return "text/html" in request.headers.get("accept", "")


def _pages(node: Node) -> list[tuple[str, str]]:
    """Path and what is there; everything else wants a key."""
    # Behind a proxy with a path of its own the pages stand beside the API.
    base = urlsplit(node.base_url).path
    prefix = base.removesuffix("/v1").removesuffix("/api")
    pages = [
        (f"{base}/models", "the models that are served, with their prices (JSON)"),
        (f"{prefix}/healthz", "whether the process lives"),
        (f"{prefix}/readyz", "whether it takes requests"),
    ]
    if node.settings.server.page:
        pages.insert(0, (f"{page_root(node.app_url)}/", "the page for people"))
    if not node.settings.server.metrics_port:
        pages.append((f"{prefix}/metrics", "counters for Prometheus"))
    return pages


def _plain(base_url: str, pages: list[tuple[str, str]]) -> str:
    lines = [
        "This is gwd, a model gateway.",
        "",
        f"API            {base_url}   (openai SDK, Codex)",
        f"               {base_url.removesuffix('/v1')}      (anthropic SDK, Claude Code)",
        f"command line   gwctl login --url {base_url}",
        "",
        *(f"{path:<14} {text}" for path, text in pages),
    ]
    return "\n".join(lines) + "\n"


def _html(base_url: str, pages: list[tuple[str, str]]) -> str:
    rows = "".join(
        f'<li><a href="{escape(path)}">{escape(path)}</a>: {escape(text)}</li>'
        for path, text in pages
    )
    base = escape(base_url)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>gwd</title><style>{_STYLE}</style>'
        "<h1>gwd</h1><p>This is a model gateway.</p>"
        f"<ul><li>API for the openai SDK and Codex: <code>{base}</code></li>"
        f"<li>API for the anthropic SDK and Claude Code: <code>{base.removesuffix('/v1')}</code></li>"
        f"<li>Command line: <code>gwctl login --url {base}</code></li></ul><h2>Pages</h2><ul>{rows}</ul></html>\n"
    )
