"""A server on the loopback that keeps each call as it came, byte for byte, and answers with what a test says."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

NOTHING = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


def answer(body: bytes, *, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """A whole HTTP answer."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Recorder:
    """`heads` are the calls' heads, `says` gives the answer for a head."""

    def __init__(self, says: Callable[[str], bytes] = lambda head: NOTHING) -> None:
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.says = says
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
                fields = dict(line.split(": ", 1) for line in head.splitlines()[1:-1])
                self.heads.append(head)
                self.bodies.append(await reader.readexactly(int(fields.get("content-length", 0))))
                writer.write(self.says(head))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
