"""Odd but legal answers of a vendor, made by a generator: the same seed makes the same answers.

Legal means that a peer may send it: any status line, any way to state a length or none, chunks of any shape, bodies of
the format, of another one or of none, in pieces of any size and pace, and an end of any kind.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

_TEXTS = ("", "hi", "Grüße 🌊", '"}', "\u2028", "null", "[DONE]", "data: x", "\x00", "a" * 5_000)
_FRAMES: tuple[Any, ...] = (
    {"choices": [{"index": 0, "delta": {"content": "hi"}}]},
    {"choices": [{"index": 0, "delta": {"content": " there"}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c"}]}}]},
    {"error": {"message": "no", "code": 500}},
    {"choices": None},
    {},
    [],
    7,
)
_WHOLE: tuple[Any, ...] = (
    {
        "choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    },
    {"choices": [{"message": {"content": None}}]},
    {"choices": []},
    {"error": {"message": "try again in 2s"}},
    {"message": "Not Found"},
    [],
    None,
)
_KINDS = (
    "application/json",
    "text/event-stream",
    "text/event-stream; charset=utf-8",
    "text/html",
    "",
)
_STATUSES = (
    *(200, 200, 200, 200, 200, 200, 200, 201, 204, 206, 301, 304, 400, 401, 404, 429, 500, 503),
    *(529, 599, 600, 999, 0, 100, 101, 103, 199),
)
_ENDINGS = ("close", "close", "reset", "stay")


class Odd:
    """One answer: its pieces, the pause before each, and how the connection ends."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        rng = self._rng = random.Random(seed)
        body = self._body()
        head, body = self._framed(body)
        wire = head + body
        if rng.random() < 0.1:
            wire = wire[: rng.randrange(len(wire) + 1)]
        self.pieces = self._cut(wire)
        self.pause_s = rng.choice((0.0, 0.0, 0.0, 0.01, 0.2))
        self.ending = rng.choice(_ENDINGS)

    def _body(self) -> bytes:
        rng = self._rng
        match rng.randrange(6):
            case 0 | 1:
                return json.dumps(rng.choice(_WHOLE)).encode()
            case 2 | 3 | 4:
                return b"".join(self._event() for _ in range(rng.randrange(12)))
            case _:
                return rng.randbytes(rng.randrange(300))

    def _event(self) -> bytes:
        rng = self._rng
        end = rng.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r"))
        kind = rng.randrange(8)
        if kind == 0:
            return b": comment" + end + end
        if kind == 1:
            return b"data: [DONE]" + end + end
        if kind == 2:
            return b"event: error" + end + b"data: {}" + end + end
        frame: Any = rng.choice(_FRAMES)
        if kind == 3:
            frame = {"choices": [{"index": 0, "delta": {"content": rng.choice(_TEXTS)}}]}
        text = json.dumps(frame, ensure_ascii=rng.random() < 0.5).encode("utf-8", "replace")
        return b"data:" + rng.choice((b" ", b"")) + text + end + rng.choice((end, end, end, b""))

    def _framed(self, body: bytes) -> tuple[bytes, bytes]:
        rng = self._rng
        version = rng.choice(("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2", "ICY"))
        status = rng.choice(_STATUSES)
        reason = rng.choice(("OK", "", "Ö K", "x" * 300))
        lines = [f"{version} {status:03} {reason}".rstrip(" ") if rng.random() < 0.3 else ""]
        lines[0] = lines[0] or f"{version} {status:03} {reason}"
        kind = rng.choice(_KINDS)
        if kind:
            lines.append(f"content-type: {kind}")
        match rng.randrange(8):
            case 0 | 1 | 2:
                lines.append(f"content-length: {len(body)}")
            case 3 | 4:
                lines.append("transfer-encoding: chunked")
                body = self._chunked(body)
            case 5:
                lines.append(f"content-length: {rng.choice((0, len(body) + 5, len(body) // 2))}")
            case 6:
                lines += [f"content-length: {len(body)}", "transfer-encoding: chunked"]
            case _:
                pass
        if rng.random() < 0.2:
            lines.append(
                rng.choice(("connection: close", "connection: keep-alive", "retry-after: x"))
            )
        if rng.random() < 0.1:
            lines.append("content-encoding: " + rng.choice(("gzip", "br", "identity", "deflate")))
        head = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"
        interims = rng.choice((0, 0, 0, 0, 1, 3, 50))
        return b"HTTP/1.1 100 Continue\r\n\r\n" * interims + head, body

    def _chunked(self, body: bytes) -> bytes:
        rng = self._rng
        chunks = []
        while body:
            size = rng.choice((1, 1, 7, 100, len(body)))
            piece, body = body[:size], body[size:]
            extension = rng.choice((b"", b"", b";a=b", b";" + b"x" * 500))
            length = b"%x" if rng.random() < 0.5 else b"%X"
            chunks.append(b"000" * rng.randrange(2) + length % len(piece) + extension)
            chunks.append(b"\r\n" + piece + b"\r\n")
        last = rng.choice((b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nx: y\r\n\r\n", b"0\r\n", b""))
        return b"".join(chunks) + last

    def _cut(self, wire: bytes) -> list[bytes]:
        size = self._rng.choice((1, 7, 100, len(wire) or 1, len(wire) or 1, len(wire) or 1))
        return [wire[start : start + size] for start in range(0, len(wire), size)][:400]


class OddVendor:
    """Answers the k-th call with the k-th answer of its seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.calls = 0
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OddVendor"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            async with server:
                yield self
                for writer in list(self._open):
                    writer.transport.abort()
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                self.calls += 1
                await self._answer(Odd(self.seed + self.calls), reader, writer)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(
        self, odd: Odd, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for piece in odd.pieces:
            writer.write(piece)
            if odd.pause_s:
                await writer.drain()
                await asyncio.sleep(odd.pause_s)
        await writer.drain()
        if odd.ending == "reset":
            writer.transport.abort()
        elif odd.ending == "stay":
            await reader.read()
