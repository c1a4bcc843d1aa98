"""Names that resolve to what a test says, asked through the running loop as the system's resolver is."""

import asyncio
import socket
from typing import Any

import pytest


class Names:
    """`addresses` of each name; an empty list is a name that does not resolve. Other names are the system's."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}
        self.asked: list[str] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "Names":
        """In the running loop, until the test ends."""
        loop = asyncio.get_running_loop()
        system = loop.getaddrinfo

        async def getaddrinfo(host: Any, port: Any, **hints: Any) -> Any:
            known = self.addresses.get(host) if isinstance(host, str) else None
            if known is None:
                return await system(host, port, **hints)
            self.asked.append(host)
            if not known:
                raise socket.gaierror(socket.EAI_NONAME, "no such name")
            return [
                (
                    socket.AF_INET6 if ":" in each else socket.AF_INET,
                    socket.SOCK_STREAM,
                    socket.IPPROTO_TCP,
                    "",
                    (each, port),
                )
                for each in known
            ]

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo, raising=False)
        return self
