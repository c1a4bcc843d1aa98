"""A small HTTP server that keeps to the written API: scripted answers and plain collections.

Only routes of the API are served, with requests and answers that its schema takes. A test says of an answer what it
is about; the other fields are filled in as a daemon sends them. What no daemon says is scripted with `untrue`.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.cli import written
from tests.cli.written import KEY, SECRET, Untrue

__all__ = ["KEY", "SECRET", "Answer", "FakeGateway", "Received", "error"]

# Beside the API, at the root of the host, in plain words.
VITALS = {
    "/healthz": {200: b"ok"},
    "/healthz/stream": {200: b"data: 0\n\ndata: 1\n\n"},
    "/readyz": {200: b"ready", 503: b"not ready"},
}


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
    """What to send back; `raw` instead of a body for what is not JSON. Without a status it is the route's usual one."""

    body: Any = None
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


Script = Answer | Callable[[Received], Answer]


def error(status: int, code: str, message: str, **more: Any) -> Answer:
    """An error reply in the API's envelope."""
    kind = written.error_codes().get(code, (set(), "unknown"))[1]
    body = {"type": kind, "code": code, "message": message, "status": status}
    return Answer({"error": body | more}, status, {"x-request-id": "req_01JD"})


def events(*chunks: Any, done: bool = True) -> Answer:
    """A stream of chat chunks, filled in like other answers."""
    shape = written.route("POST", "/chat/completions").event
    assert shape is not None
    whole = [written.checked(shape, chunk, "an event") for chunk in chunks]
    lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in whole)
    end = "data: [DONE]\n\n" if done else ""
    return Answer(raw=f"{lines}{end}".encode(), headers={"content-type": "text/event-stream"})


def is_live(key: dict[str, Any]) -> bool:
    """What the daemon holds to be a key that works."""
    ends = key.get("expires_at")
    over = ends is not None and datetime.fromisoformat(ends) <= datetime.now(UTC)
    return not (key.get("disabled") or key.get("rotated_to") or over)


class FakeGateway:
    """Answers what was scripted, as the written API has it; `faults` are where a test or gwctl left it."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.faults: list[str] = []
        self.scripts: dict[tuple[str, str], Script] = {}
        self.foreign: dict[tuple[str, str], Script] = {}
        self.collections: dict[str, Collection] = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/api/v1"

    def on(self, method: str, path: str, script: Script | Any) -> None:
        """Answer this request so; a plain value is the body of a success. Untrue where no daemon answers so."""
        known = isinstance(script, Answer) or callable(script)
        script = script if known else Answer(script)
        if path not in VITALS:
            route = written.route(method, path)
            if isinstance(script, Answer):
                _whole(route, script)
        self.scripts[method, path] = script
        self.foreign.pop((method, path), None)

    def untrue(self, method: str, path: str, script: Script | Any) -> None:
        """Answer this request as no daemon does; a plain value is the body of a 200."""
        known = isinstance(script, Answer) or callable(script)
        self.foreign[method, path] = script if known else Answer(script)

    def lacks(self, method: str, path: str) -> None:
        """Answer this request as a daemon of another version, which has no such route."""
        self.untrue(
            method,
            path,
            error(404, "not_found", "no such endpoint; the API's base path is /api/v1"),
        )

    def collection(self, path: str, *rows: dict[str, Any], **options: Any) -> "Collection":
        self.collections[path] = Collection(path, list(rows), **options)
        for row in rows:
            self.collections[path].whole(row)
        return self.collections[path]

    def sent(self, method: str, path: str) -> Received:
        """The last request of that method and path."""
        return [r for r in self.requests if (r.method, r.path) == (method, path)][-1]

    def writes(self) -> list[tuple[str, str]]:
        """Every request that was not a GET."""
        return [(r.method, r.path) for r in self.requests if r.method != "GET"]

    def answer(self, request: Received) -> Answer:
        """What is sent; a fault is kept, so that the test fails with it, and answered as the gateway's own."""
        foreign = self.foreign.get((request.method, request.path))
        if foreign is not None:
            return foreign(request) if callable(foreign) else foreign
        try:
            return self._true(request)
        except Untrue as fault:
            self.faults.append(str(fault))
            return error(500, "internal_error", str(fault))

    def _true(self, request: Received) -> Answer:
        if request.path in VITALS:
            return self._vital(request)
        route = written.route(request.method, request.path)
        answer = _whole(route, self._scripted(request))
        refused = route.refused(request.query, request.body)
        if refused and answer.status in written.OK:
            raise Untrue(f"gwctl sent what the gateway refuses: {refused}")
        return answer

    def _vital(self, request: Received) -> Answer:
        said = self.scripts.get((request.method, request.path))
        known = VITALS[request.path]
        if not isinstance(said, Answer) or known.get(said.status or 200) != said.raw:
            raise Untrue(f"{request.path} says one of {known}")
        return said

    def _scripted(self, request: Received) -> Answer:
        script = self.scripts.get((request.method, request.path))
        if script is not None:
            return script if isinstance(script, Answer) else script(request)
        for path, collection in self.collections.items():
            if request.path == path or request.path.startswith(f"{path}/"):
                return collection.answer(request, request.path[len(path) + 1 :])
        raise Untrue(f"{request.method} {request.path} was asked, and the test scripts no answer")

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
                self.send_response(answer.status or 200)
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


def _whole(route: written.Route, answer: Answer) -> Answer:
    """The answer with its usual status and all its fields. A raw one is no answer of the API: nothing is said of it."""
    status = answer.status or next(iter(route.successes))
    if answer.raw is not None:
        return Answer(None, answer.status or 200, answer.headers, answer.raw)
    return Answer(route.whole(status, answer.body), status, answer.headers)


@dataclass
class Collection:
    """Records under one path: list with paging, get by id or slug, create, patch, delete."""

    path: str
    rows: list[dict[str, Any]]
    prefix: str = ""

    @property
    def record(self) -> dict[str, Any]:
        return written.route("GET", self.path).record

    def whole(self, row: dict[str, Any]) -> dict[str, Any]:
        filled: dict[str, Any] = written.checked(self.record, row, f"a record of {self.path}")
        return filled

    def answer(self, request: Received, rest: str) -> Answer:
        if not rest:
            return self._list(request) if request.method == "GET" else self._create(request)
        row = next((r for r in self.rows if rest in _names(r)), None)
        if row is None:
            return error(404, "not_found", f"{rest} does not exist")
        if request.method == "PATCH":
            row.update(self._fields(request.body))
        if request.method == "DELETE":
            self.rows.remove(row)
            return Answer({"deleted": True, "id": rest})
        return Answer({"data": row})

    def _list(self, request: Received) -> Answer:
        limit, offset = (int(request.query.get(n, d)) for n, d in (("limit", 50), ("offset", 0)))
        fields = self.record["properties"].keys() - {"limit"}
        filters = {n: v for n, v in request.query.items() if n in fields}
        whole = [self.whole(row) if filters else row for row in self.rows]
        rows = [r for r in whole if all(str(r.get(n)) == v for n, v in filters.items())]
        if "after" in request.query:
            offset = 1 + [str(r.get("id")) for r in rows].index(request.query["after"])
        page = rows[offset : offset + min(limit, 100)]
        listed: dict[str, Any] = {"data": page, "total_count": len(rows)}
        answers = next(iter(written.route("GET", self.path).successes.values()))
        if "next" in written.resolved(answers)["properties"]:
            more = offset + len(page) < len(rows)
            listed |= {
                "next": page[-1]["id"] if page and more else None,
                "previous": page[0]["id"] if page else None,
            }
        return Answer(listed)

    def _create(self, request: Received) -> Answer:
        body = request.body
        answers = written.resolved(next(iter(written.route("POST", self.path).successes.values())))
        once = [name for name in answers["properties"] if name not in ("data", "existed")]
        if body.pop("if_absent", False):
            same = [n for n in ("name", "workspace_id") if n in body]
            for row in self.rows:
                if is_live(row) and all(row.get(n) == body[n] for n in same):
                    return Answer({"data": row, "existed": True}, 200)
        row = {"id": f"{self.prefix}{len(self.rows) + 1}", **self._fields(body)}
        if "id" not in self.record["properties"]:
            del row["id"]
        self.rows.append(row)
        is_signed = body.get("type") not in ("email", "chat")
        secrets = [
            name for name in once if is_signed and "secret" in str(answers["properties"][name])
        ]
        return Answer({**dict.fromkeys(secrets, SECRET), "data": row})

    def _fields(self, body: dict[str, Any]) -> dict[str, Any]:
        """What of a body the record shows; null is the usual value of a field that always holds something."""
        shown = {n: v for n, v in body.items() if n in self.record["properties"]}
        usual = self.whole({})
        return {n: usual[n] if v is None else v for n, v in shown.items()}


def _names(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row.get("id"), row.get("slug"), row.get("user_id"))
