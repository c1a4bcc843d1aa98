"""Every vendor at its own address: a proxy that ends TLS in its name, notes what arrives, and answers for it.

A node is given this proxy in `[upstream]` and its authority in `ca_file`; nothing else of it changes, so that what
arrives is what the real vendor would get. Answers come from the simulated vendor.
"""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gwd.demo import ModelTraits, SimulatedVendor
from tests.support.certificates import Authority, authority, server_tls

# How the end of a path is called by the simulated vendor; Gemini's paths are the same.
FORMATS = ("/chat/completions", "/responses", "/embeddings", "/messages")
# The simulated vendor takes the credential of any format; which one it is, the tests compare.
CREDENTIALS = {"authorization": "Bearer any", "x-api-key": "any", "x-goog-api-key": "any"}

Refusal = Callable[[dict[str, Any]], str | None]
"""What the vendor says against a body, with status 422; None: nothing."""


@dataclass
class Arrived:
    """One request as the vendor got it. `host` is where its connection was made for."""

    host: str
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Vendors:
    """What the vendors list and refuse, by host with its port where that is not https's, and what they got."""

    proxy: str = ""
    ca_file: Path = Path()
    lists: dict[str, Any] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    arrived: list[Arrived] = field(default_factory=list)


@contextmanager
def answering(folder: Path, models: Sequence[ModelTraits]) -> Iterator[Vendors]:
    """The proxy on a loop and thread of its own."""
    trusted = authority(folder)
    vendors = Vendors(ca_file=trusted.file)
    started, ended = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def run() -> None:
        async with SimulatedVendor(models=models) as simulated:
            front = _Front(vendors, simulated, trusted, folder)
            server = await asyncio.start_server(front.serve, "127.0.0.1", 0)
            vendors.proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            started.set()
            async with server:
                await ended.wait()
            front.cancel()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        yield vendors
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)
        loop.close()


class _Front:
    def __init__(
        self, vendors: Vendors, simulated: SimulatedVendor, trusted: Authority, folder: Path
    ) -> None:
        self._vendors = vendors
        self._simulated = simulated
        self._trusted = trusted
        self._folder = folder
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._connection(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = ""
        while True:
            method, target, headers = _head(await reader.readuntil(b"\r\n\r\n"))
            if method == "CONNECT":
                name, _, port = target.rpartition(":")
                host = name if port == "443" else target
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await writer.drain()
                await writer.start_tls(self._context(name))
                continue
            if "://" in target:  # plain http is asked for by its whole address
                parts = urlsplit(target)
                host, target = parts.netloc, target.partition(parts.netloc)[2]
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            request = Arrived(host, method, target, headers, body)
            self._vendors.arrived.append(request)
            writer.write(await self._answer(request))
            await writer.drain()

    def _context(self, host: str) -> ssl.SSLContext:
        if host not in self._contexts:
            self._contexts[host] = server_tls(self._folder, host=host, by=self._trusted)
        return self._contexts[host]

    async def _answer(self, request: Arrived) -> bytes:
        if request.method == "GET":
            listed = self._vendors.lists.get(request.host)
            return _json(200, listed) if listed is not None else _json(404, {"error": "no list"})
        refuse = self._vendors.refusals.get(request.host)
        refusal = refuse(request.json) if refuse else None
        if refusal is not None:
            return _json(422, {"object": "error", "message": refusal, "type": "invalid_request"})
        return await self._simulated_answer(request)

    async def _simulated_answer(self, request: Arrived) -> bytes:
        path = request.target.partition("?")[0]
        ending = next((each for each in FORMATS if path.endswith(each)), None)
        address = urlsplit(self._simulated.url)
        headers = {
            "host": address.netloc,
            "content-type": "application/json",
            "content-length": str(len(request.body)),
            "connection": "close",
            **CREDENTIALS,
            **{n: v for n, v in request.headers.items() if n.startswith("anthropic-")},
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        target = f"/v1{ending}" if ending else request.target
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(f"POST {target} HTTP/1.1\r\n{lines}\r\n".encode() + request.body)
        answer = await reader.read()
        writer.close()
        return _kept_open(answer)


def _head(raw: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = raw.decode("ascii").split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        assert name.lower() not in headers, f"{name} stands there twice"
        headers[name.lower()] = value
    return method, target, headers


def _json(status: int, body: Any) -> bytes:
    text = json.dumps(body).encode()
    return _whole(status, {"content-type": "application/json"}, text)


def _whole(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} Status\r\n{lines}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _kept_open(answer: bytes) -> bytes:
    """The simulated vendor's answer with its length in front, so that the connection stays."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("ascii").split("\r\n")
    headers = {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines}
    if headers.get("transfer-encoding") == "chunked":
        body = _joined(body)
    kept = {name: headers[name] for name in ("content-type",) if name in headers}
    return _whole(int(first.split(" ")[1]), kept, body)


def _joined(chunks: bytes) -> bytes:
    body = b""
    while chunks:
        size, _, rest = chunks.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            break
        body, chunks = body + rest[:length], rest[length + 2 :]
    return body
