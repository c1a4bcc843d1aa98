"""Fake vendors: strict about method and path, they record every call and play the scripted answer."""

import asyncio
import gzip
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .assertions import BadCase, compact_json, load_json_or_none
from .wire import Request, read_request

PATHS = {
    "openai": re.compile(r"/v1/(chat/completions|embeddings)"),
    "anthropic": re.compile(r"/v1/messages"),
    "gemini": re.compile(r"/v1beta/models/([^/:]+):(generateContent|streamGenerateContent)"),
    "responses": re.compile(r"/v1/responses"),
}
# What each vendor's own SDK takes as its base address.
BASE_PATHS = {"openai": "/v1", "anthropic": "", "gemini": "/v1beta", "responses": "/v1"}
BETWEEN_WRITES_S = 0.0005
LOOK_EVERY_S = 0.02  # how often a pause looks whether the caller is still there


Json = dict[str, Any]
Listener = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class PeerLeft(Exception):
    """The caller closed the connection before the answer was complete."""


class Vendors:
    """One listener per endpoint name and vendor kind; `play` starts a new exchange."""

    def __init__(self) -> None:
        self.calls: list[Json] = []
        self._kind: str | None = None
        self._script: list[Json] = []
        self._servers: list[asyncio.Server] = []
        self._ports: dict[tuple[str, str], int] = {}

    async def start(self, names: list[str]) -> None:
        for name in names:
            for kind in PATHS:
                server = await asyncio.start_server(
                    self._listener(name, kind), "127.0.0.1", 0, limit=2**20
                )
                self._servers.append(server)
                self._ports[name, kind] = server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        for server in self._servers:
            server.close()

    def url(self, name: str, kind: str) -> str:
        return f"http://127.0.0.1:{self._ports[name, kind]}"

    def base_url(self, name: str, kind: str) -> str:
        return self.url(name, kind) + BASE_PATHS[kind]

    def play(self, kind: str, answers: list[Json] | Json | None) -> None:
        """The k-th call gets the k-th answer, the last one repeats. Only this kind answers."""
        self._kind = kind
        self._script = answers if isinstance(answers, list) else [answers] if answers else []
        self.calls = []

    def seen(self, attempt: int | None = None) -> Json:
        """The root object of upstream_request assertions."""
        number = len(self.calls) if attempt is None else attempt
        call = self.calls[number - 1] if 0 < number <= len(self.calls) else {}
        return {
            **call,
            "count": len(self.calls),
            "models_called": [_model_called(call) for call in self.calls],
        }

    def _listener(self, name: str, kind: str) -> Listener:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while (request := await read_request(reader)) is not None:
                    call = _recorded(name, kind, request)
                    if not await self._answer_one(call, reader, writer):
                        break
            except (ConnectionError, asyncio.CancelledError):
                pass
            finally:
                writer.close()

        return connected

    async def _answer_one(
        self, call: Json, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Record and answer; true when the connection can be used again."""
        self.calls.append(call)
        answer = self._choose(call, len(self.calls))
        try:
            return await _play(answer, reader, writer)
        except (PeerLeft, ConnectionError):
            call["aborted"] = True
            return False

    def _choose(self, call: Json, number: int) -> Json:
        kind = call["kind"]
        path = PATHS[kind].fullmatch(call["path"])
        if kind != self._kind or not self._script:
            return _refusal(404, f"the {kind} vendor has no part in this exchange")
        if call["method"] != "POST" or path is None:
            return _refusal(404, f"no such route: {call['method']} {call['path']}")
        if not isinstance(call["body"], dict):
            return _refusal(400, "the body is not a JSON object")
        if (
            kind == "gemini"
            and path[2] == "streamGenerateContent"
            and call["query"].get("alt") != "sse"
        ):
            return _refusal(404, "streams are served with alt=sse only")
        return self._script[min(number, len(self._script)) - 1]


def _recorded(name: str, kind: str, request: Request) -> Json:
    url = urlsplit(request.target)
    return {
        "method": request.method,
        "path": url.path,
        "query": dict(parse_qsl(url.query)),
        "headers": request.headers,
        "body": load_json_or_none(request.body.decode("utf-8", "replace")),
        "endpoint": name,
        "kind": kind,
        "aborted": False,
    }


def _refusal(status: int, message: str) -> Json:
    error = {"message": f"fake vendor: {message}", "type": "invalid_request_error", "code": status}
    return {"status": status, "body": {"error": error}}


def _model_called(call: Json) -> Any:
    in_path = PATHS["gemini"].fullmatch(call["path"])
    body = call["body"] if isinstance(call["body"], dict) else {}
    return in_path[1] if in_path else body.get("model")


async def _play(answer: Json, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Write the answer; true when the connection can be used again."""
    if "fault" in answer:
        if answer["fault"] != "disconnect_before_headers":
            raise BadCase(f"unknown fault {answer['fault']!r}")
        return False
    await _pause(answer.get("hold_ms", 0), reader)
    streamed = "sse" in answer
    head, pieces = _scripted(answer, streamed=streamed)
    await _write(head, reader, writer)
    for delay_ms, data in pieces:
        await _pause(delay_ms, reader)
        size = answer.get("write_bytes") or len(data) or 1
        for start in range(0, len(data), size):
            await _write(data[start : start + size], reader, writer)
            if size < len(data):
                await asyncio.sleep(BETWEEN_WRITES_S)
    if answer.get("end") == "reset":
        writer.transport.abort()
    return not streamed


def _scripted(answer: Json, *, streamed: bool) -> tuple[bytes, list[tuple[float, bytes]]]:
    """Status line with headers, and (delay_ms, bytes) for what follows."""
    if streamed:
        pieces = [(item.get("delay_ms", 0), _event(item)) for item in answer["sse"]]
    else:
        raw = compact_json(answer["body"]) if "body" in answer else answer.get("raw", "")
        pieces = [(0, raw.encode())]
    headers = {"content-type": "text/event-stream" if streamed else "application/json"}
    headers |= {name.lower(): value for name, value in (answer.get("headers") or {}).items()}
    if answer.get("encode") == "gzip":
        headers["content-encoding"] = "gzip"
        pieces = [(0, gzip.compress(b"".join(data for _, data in pieces)))]
    # A stream ends with its connection; a whole answer tells its length and keeps the connection.
    if streamed:
        headers["connection"] = "close"
    else:
        headers["content-length"] = str(sum(len(data) for _, data in pieces))
    lines = [f"HTTP/1.1 {answer.get('status', 200)} Scripted"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode(), pieces


def _event(item: Json) -> bytes:
    if "text" in item:
        return str(item["text"]).encode()
    if "comment" in item:
        return f":{item['comment']}\n\n".encode()
    data = item["data"] if isinstance(item["data"], str) else compact_json(item["data"])
    event = f"event: {item['event']}\n" if "event" in item else ""
    return f"{event}data: {data}\n\n".encode()


async def _pause(delay_ms: float, reader: asyncio.StreamReader) -> None:
    until = time.monotonic() + delay_ms / 1000
    while (left_s := until - time.monotonic()) > 0:
        await asyncio.sleep(min(left_s, LOOK_EVERY_S))
        _check_peer(reader)


async def _write(data: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    _check_peer(reader)
    writer.write(data)
    await writer.drain()


def _check_peer(reader: asyncio.StreamReader) -> None:
    if reader.at_eof() or reader.exception() is not None:
        raise PeerLeft
