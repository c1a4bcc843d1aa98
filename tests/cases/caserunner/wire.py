"""Just enough HTTP/1.1 over asyncio streams, both sides, with nothing hidden or repaired."""

import asyncio
import gzip
import time
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from .stream import EventReader, Frame

NO_BODY_STATUSES = {204, 304}

LeaveWhen = Callable[[list[Frame]], bool]


@dataclass
class Reply:
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    frames: list[Frame] = field(default_factory=list)
    sent_at_s: float = field(default_factory=time.monotonic)
    trouble: str = ""  # the connection broke, timed out, or we left

    @property
    def text(self) -> str:
        body = self.body
        if self.headers.get("content-encoding") == "gzip" and body:
            try:
                body = gzip.decompress(body)
            except (OSError, EOFError, zlib.error):
                return "(broken gzip)"
        return body.decode("utf-8", "replace")


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


async def read_head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    """First line and headers (lower-case names, repeats joined by a comma)."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return first, headers


async def body_pieces(
    reader: asyncio.StreamReader, headers: dict[str, str], *, until_eof: bool
) -> AsyncIterator[bytes]:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        while size := int((await reader.readline()).split(b";")[0], 16):
            piece = await reader.readexactly(size + 2)
            yield piece[:-2]
        while (await reader.readline()).strip():
            pass  # trailers
        return
    left = int(headers["content-length"]) if "content-length" in headers else None
    while left if left is not None else until_eof:
        piece = await reader.read(65536 if left is None else min(left, 65536))
        if not piece:
            if left:
                raise asyncio.IncompleteReadError(piece, left)
            return
        left = None if left is None else left - len(piece)
        yield piece


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection, or None when the other side is done."""
    try:
        first, headers = await read_head(reader)
        method, target, _ = first.split(" ", 2)
        body = b"".join([piece async for piece in body_pieces(reader, headers, until_eof=False)])
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return None
    return Request(method, target, headers, body)


async def send(
    address: tuple[str, int],
    method: str,
    target: str,
    headers: dict[str, str],
    body: bytes = b"",
    *,
    timeout_s: float = 30,
    abort_after_ms: int | None = None,
    leave_when: LeaveWhen | None = None,
) -> Reply:
    """One request on its own connection. `leave_when(frames)` true: the client closes at once."""
    reply = Reply()
    limit_s = timeout_s if abort_after_ms is None else abort_after_ms / 1000
    writer = None
    try:
        async with asyncio.timeout(limit_s):
            reader, writer = await asyncio.open_connection(*address, limit=2**20)
            lines = [f"{method} {target} HTTP/1.1", f"host: {address[0]}:{address[1]}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            if body or method in ("POST", "PATCH", "PUT"):
                lines.append(f"content-length: {len(body)}")
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await _read_reply(reader, reply, method, leave_when)
    except TimeoutError:
        reply.trouble = (
            "left on purpose" if abort_after_ms is not None else f"no end after {limit_s:g} s"
        )
    except (OSError, ValueError, asyncio.IncompleteReadError) as error:
        reply.trouble = f"connection broke: {type(error).__name__} {error}"
    finally:
        if writer is not None:
            writer.close()
    return reply


async def _read_reply(
    reader: asyncio.StreamReader, reply: Reply, method: str, leave_when: LeaveWhen | None
) -> None:
    first, reply.headers = await read_head(reader)
    reply.status = int(first.split(" ")[1])
    if method == "HEAD" or reply.status in NO_BODY_STATUSES:
        return
    events = EventReader()
    async for piece in body_pieces(reader, reply.headers, until_eof=True):
        reply.body += piece
        fresh = events.feed(piece, int((time.monotonic() - reply.sent_at_s) * 1000))
        reply.frames += fresh
        if leave_when is not None and leave_when(fresh):
            reply.trouble = "left on purpose"
            return
