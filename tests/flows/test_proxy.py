"""A node that reaches its vendors through a proxy: whole and streamed answers, and a proxy that is not there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.cases.caserunner.ports import free_port
from tests.flows.frames import frames_of, text_of
from tests.support.node import open_gateway


class Proxy:
    """A plain HTTP proxy for one call per connection; it counts the calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self

    async def _serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        head = await client.readuntil(b"\r\n\r\n")
        method, address, rest = head.split(b" ", 2)
        parts = urlsplit(address.decode())
        self.calls.append(parts.path)
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await client.readexactly(length)
        vendor, upstream = await asyncio.open_connection(parts.hostname, parts.port)
        closing = rest.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        upstream.write(method + b" " + parts.path.encode() + b" " + closing + body)
        while data := await vendor.read(65_536):
            answer.write(data)
            await answer.drain()
        upstream.close()
        answer.close()


async def test_answers_come_through_the_proxy(tmp_path: Path) -> None:
    async with (
        Proxy().running() as proxy,
        open_gateway(tmp_path, environment={"GWD_UPSTREAM_PROXY": proxy.url}) as gateway,
    ):
        whole = await gateway.chat("hello")
        assert whole.status_code == 200
        assert whole.json()["choices"][0]["message"]["content"]
        streamed = await gateway.chat("hello", stream=True)
        assert text_of(frames_of(streamed.text))
        assert proxy.calls == ["/v1/chat/completions"] * 2


async def test_a_proxy_that_is_not_there_is_a_network_failure(tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    async with open_gateway(tmp_path, environment={"GWD_UPSTREAM_PROXY": nobody}) as gateway:
        failed = await gateway.chat("hello")
        assert failed.status_code in (502, 503)
        assert await gateway.balance() == 10
