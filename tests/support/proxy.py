"""A real HTTP proxy on the loopback: it joins connections (CONNECT) and passes plain requests on."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Notes the head of each request. `answer` replaces what it says to CONNECT, in these pieces; `login` is what it
    wants as proxy-authorization; `tls` is spoken to the proxy itself."""

    def __init__(
        self,
        *,
        answer: list[bytes] | None = None,
        login: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answer = answer or [b"HTTP/1.1 200 Connection established\r\n\r\n"]
        self.login = login
        self.heads: list[bytes] = []
        self.port = 0
        self.url = ""
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def paths(self) -> list[str]:
        """The paths of the plain requests, the authorities of the others."""
        targets = [head.split(b" ")[1].decode() for head in self.heads]
        return [urlsplit(target).path if "://" in target else target for target in targets]

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        scheme, host = ("https", "localhost") if self._tls else ("http", "127.0.0.1")
        self.url = f"{scheme}://{host}:{self.port}"
        async with server:
            yield self
            for task in self._tasks:
                task.cancel()

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # Where a test ends, an open way is cut: nobody asks for it then.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._one(client, back)
        finally:
            self._tasks.discard(task)
            back.close()

    async def _one(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        head = await client.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if self.login is not None and self.login.encode() not in head:
            back.write(
                b"HTTP/1.1 407 Login\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n"
            )
            await back.drain()
            return
        method, target, rest = head.split(b" ", 2)
        if method == b"CONNECT":
            for piece in self.answer:
                back.write(piece)
                await back.drain()
                await asyncio.sleep(0)
            host, _, port = target.decode().rpartition(":")
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            await asyncio.gather(_pass_on(client, writer), _pass_on(reader, back))
            return
        parts = urlsplit(target.decode())
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await client.readexactly(length)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        closing = rest.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        writer.write(method + b" " + parts.path.encode() + b" " + closing + body)
        await _pass_on(reader, back)
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
