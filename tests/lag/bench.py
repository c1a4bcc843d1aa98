"""What the lag test needs: the measured node, a vendor that says any bytes, and a stream that is paced."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx

from tests.cases.caserunner.ports import free_port
from tests.support.node import PARAMETERS, PRICES, Gateway, Nodes

PACE_S = 0.02
ADAPTERS = {
    "chat": "openai_chat",
    "messages": "anthropic_messages",
    "responses": "openai_responses",
    "gemini": "gemini",
    "embeddings": "openai_embeddings",
    "paced": "openai_chat",
}
"""The models of the node, each with one endpoint of its format at the vendor of this test."""

_TICK = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"tick "}}]}\n\n'


class RawVendor:
    """Answers every call with `answer` as it is, but those of the paced model: they get a tick every 20 ms."""

    def __init__(self) -> None:
        self.answer: list[bytes] = []
        self.port = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["RawVendor"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**26)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            if head.startswith(b"POST /paced"):
                await self._pace(writer)
            for piece in self.answer:
                writer.write(piece)
                await writer.drain()

    async def _pace(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            writer.write(_TICK)
            await writer.drain()
            await asyncio.sleep(PACE_S)


class MeasuredNode:
    """The node in a process of its own. `gap` tells how long its loop was held up since it was asked last."""

    def __init__(self, process: asyncio.subprocess.Process, gateway: Gateway) -> None:
        self.gateway = gateway
        self._process = process

    async def gap(self) -> tuple[float, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        longest, frames = (await self._process.stdout.readline()).split()
        return float(longest), int(frames)


@asynccontextmanager
async def measured_node(directory: Path, vendor: RawVendor) -> AsyncIterator[MeasuredNode]:
    """A measured node with a model of every format on the vendor."""
    nodes, port = Nodes(directory), free_port()
    management_key = nodes.init("1000000")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.lag.measured_node", str(directory / "node" / "gwd.toml"), str(port)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    running: Any = SimpleNamespace(port=port)
    gateway = Gateway(running, running, management_key)
    try:
        await _until_it_serves(gateway)
        await _fill(gateway, vendor)
        gateway.key, gateway.key_id = await gateway.new_key()
        gateway.client.headers["authorization"] = f"Bearer {gateway.key}"
        gateway.client.timeout = gateway.operator.timeout = httpx.Timeout(60)
        yield MeasuredNode(process, gateway)
    finally:
        await gateway.client.aclose()
        await gateway.operator.aclose()
        process.kill()
        await process.wait()


@asynccontextmanager
async def paced_stream(node: MeasuredNode) -> AsyncIterator[None]:
    """A client that reads the paced stream as long as this is open."""
    body = {
        "model": "demo/paced",
        "stream": True,
        "messages": [{"role": "user", "content": "hello"}],
    }

    async def read() -> None:
        async with node.gateway.client.stream("POST", "/chat/completions", json=body) as reply:
            async for _ in reply.aiter_raw():
                pass

    reading = asyncio.ensure_future(read())
    try:
        yield
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _until_it_serves(gateway: Gateway) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(httpx.TransportError):
                await gateway.operator.get("/auth/key")
                return
            await asyncio.sleep(0.05)


async def _fill(gateway: Gateway, vendor: RawVendor) -> None:
    for name, adapter in ADAPTERS.items():
        path = "/paced" if name == "paced" else ""
        await gateway.add_provider(name, adapter, f"http://127.0.0.1:{vendor.port}{path}")
        is_embedding = name == "embeddings"
        await gateway.manage(
            "POST",
            "/catalog/models",
            {
                "id": f"demo/{name}",
                "name": name,
                "vendor": "Demo",
                "context_length": 50_000_000,
                "max_completion_tokens": 0 if is_embedding else 32_000,
                "supported_parameters": PARAMETERS,
                "input_modalities": ["text"] if is_embedding else ["text", "image", "file"],
                "output_modalities": ["embeddings" if is_embedding else "text"],
                "pricing": PRICES,
            },
        )
        await gateway.add_endpoint(f"demo/{name}", name, "upstream", weight=1)
