"""A plain HTTP receiver on the loopback, and resolvers that answer what a test says."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from gwd.outbound import Rules

LOOPBACK = Rules(allow_networks=(ipaddress.ip_network("127.0.0.0/8"),), allow_http=True)
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Listener:
    """A server that notes each request and answers with fixed bytes."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.answer = OK
        self.port = 0
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            self.requests.append(head + await reader.readexactly(length))
            writer.write(self.answer)
            await writer.drain()
            await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.closed.set()


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    made = Listener()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


def answers(*addresses: str) -> Callable[[str, int], Awaitable[list[str]]]:
    """A resolver that says these, one set of answers after the other."""
    left = list(addresses)

    async def resolver(host: str, port: int) -> list[str]:
        return (left.pop(0) if len(left) > 1 else left[0]).split()

    return resolver
