"""A small HTTP server in the shapes of the management API: scripted answers and plain collections."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

KEY = "gwm_" + "m" * 43 + "ABCDEF"
SECRET = "gwi_6vR2" + "x" * 41 + "9Zq1"


@dataclass
class Received:
    """One request as the server saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text) if self.text else None


@dataclass
class Answer:
    """What to send back; `raw` instead of a body for what is not JSON."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


Script = Answer | Callable[[Received], Answer]


def error(status: int, code: str, message: str, **more: Any) -> Answer:
    """An error reply in the API's envelope."""
    body = {"type": "some_error", "code": code, "message": message, "param": None, "status": status}
    return Answer({"error": body | more}, status, {"x-request-id": "req_01JD"})


# The lists that grow at their head: an answer says where they go on.
WALKED = (
    "/keys",
    "/generations",
    "/credits/ledger",
    "/audit",
    "/notifications/events",
    "/organization/invitations",
)


def is_live(key: dict[str, Any]) -> bool:
    """What the daemon holds to be a key that works."""
    ends = key.get("expires_at")
    over = ends is not None and datetime.fromisoformat(ends) <= datetime.now(UTC)
    return not (key.get("disabled") or key.get("rotated_to") or over)


class FakeGateway:
    """Answers what was scripted; everything else is the API's own 404."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.scripts: dict[tuple[str, str], Script] = {}
        self.collections: dict[str, Collection] = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/api/v1"

    def on(self, method: str, path: str, script: Script | Any) -> None:
        """Answer this request so; a plain value is the body of a 200."""
        known = isinstance(script, Answer) or callable(script)
        self.scripts[method, path] = script if known else Answer(script)

    def collection(self, path: str, *rows: dict[str, Any], **options: Any) -> "Collection":
        self.collections[path] = Collection(path, list(rows), **options)
        return self.collections[path]

    def sent(self, method: str, path: str) -> Received:
        """The last request of that method and path."""
        return [r for r in self.requests if (r.method, r.path) == (method, path)][-1]

    def writes(self) -> list[tuple[str, str]]:
        """Every request that was not a GET."""
        return [(r.method, r.path) for r in self.requests if r.method != "GET"]

    def answer(self, request: Received) -> Answer:
        script = self.scripts.get((request.method, request.path))
        if isinstance(script, Answer):
            return script
        if script is not None:
            return script(request)
        for path, collection in self.collections.items():
            if request.path == path or request.path.startswith(f"{path}/"):
                return collection.answer(request, request.path[len(path) + 1 :])
        return error(404, "not_found", "no such endpoint; the API's base path is /api/v1")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536  # one segment per answer

            def respond(self) -> None:
                parts = urlsplit(self.path)
                length = int(self.headers.get("content-length") or 0)
                request = Received(
                    self.command,
                    unquote(parts.path.removeprefix("/api/v1")),
                    dict(parse_qsl(parts.query)),
                    {name.lower(): value for name, value in self.headers.items()},
                    self.rfile.read(length).decode(),
                )
                gateway.requests.append(request)
                answer = gateway.answer(request)
                raw = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {"content-type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = respond  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        return Handler

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@dataclass
class Collection:
    """Records under one path: list with paging, get by id or slug, create, patch, delete."""

    path: str
    rows: list[dict[str, Any]]
    prefix: str = ""
    secret: str = ""
    identity: str = "id"

    def answer(self, request: Received, rest: str) -> Answer:
        if not rest:
            return self._list(request) if request.method == "GET" else self._create(request)
        row = next((r for r in self.rows if rest in (r.get("id"), r.get("slug"))), None)
        if row is None:
            return error(404, "not_found", f"{rest} does not exist")
        if request.method == "PATCH":
            row.update(request.body)
        if request.method == "DELETE":
            self.rows.remove(row)
            return Answer({"deleted": True, "id": rest})
        return Answer({"data": row})

    def _list(self, request: Received) -> Answer:
        limit, offset = (int(request.query.get(n, d)) for n, d in (("limit", 50), ("offset", 0)))
        filters = {
            n: v for n, v in request.query.items() if n in ("name", "scope", "provider", "kind")
        }
        rows = [r for r in self.rows if all(str(r.get(n)) == v for n, v in filters.items())]
        if "after" in request.query:
            offset = 1 + [str(r.get("id")) for r in rows].index(request.query["after"])
        page = rows[offset : offset + min(limit, 100)]
        listed = {"data": page, "total_count": len(rows)}
        if self.path in WALKED:
            more = offset + len(page) < len(rows)
            listed |= {
                "next": page[-1]["id"] if page and more else None,
                "previous": page[0]["id"] if page else None,
            }
        return Answer(listed)

    def _create(self, request: Received) -> Answer:
        body = request.body
        if body.pop("if_absent", False):
            same = [n for n in ("name", "workspace_id") if n in body]
            for row in self.rows:
                if is_live(row) and all(row.get(n) == body[n] for n in same):
                    return Answer({self.secret: None, "data": row, "existed": True})
        row = {"id": f"{self.prefix}{len(self.rows) + 1}", **body}
        row["id"] = row.get("slug") or row["id"]
        row.pop("key", None)
        self.rows.append(row)
        secret = {self.secret: SECRET} if self.secret else {}
        return Answer({**secret, "data": row}, 201)
