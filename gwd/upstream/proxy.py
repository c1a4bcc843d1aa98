"""The proxy of [upstream]: the way to every vendor of a node that names one.

A vendor with https is reached through CONNECT, with TLS to the vendor inside, checked against the vendor's own name;
one with plain http is asked for by its whole address. The environment's proxies count for nothing. User and password
stand in the proxy's address, go to the proxy alone and are in no message.
"""

import asyncio
import base64
import socket
import ssl
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote, urlsplit

import httptools

from gwd.core.connection_trouble import tls_trouble
from gwd.upstream.base import TRUST, UpstreamFault

MAX_ANSWER_BYTES: Final = 16 * 1024
_NAME: Final = "the proxy of [upstream]"
LOGIN_WANTED: Final = 407


class Proxy:
    """Where it is and how it is asked. Open it inside the running loop."""

    def __init__(self, address: str, tls: ssl.SSLContext) -> None:
        parts = urlsplit(address)
        self._loop = asyncio.get_running_loop()
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = tls if parts.scheme == "https" else None
        self.authorization = b""
        if parts.username is not None or parts.password is not None:
            user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
            basic = base64.b64encode(user.encode())
            self.authorization = b"proxy-authorization: Basic " + basic + b"\r\n"

    async def connect(self, made: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """A connection to the proxy itself. Raises UpstreamFault."""
        try:
            transport, _ = await self._loop.create_connection(
                made, self._host, self._port, ssl=self._tls
            )
        except ssl.SSLError as error:
            raise _fault(tls_trouble(error, trust=TRUST)) from None
        except socket.gaierror:
            raise _fault("has a name that could not be resolved") from None
        except (OSError, ValueError):
            raise _fault("could not be reached") from None
        return transport

    async def tunnel(self, authority: str) -> asyncio.Transport:
        """A connection that the proxy has joined to `host:port`. Raises UpstreamFault."""
        answer = _Answer()
        transport = await self.connect(lambda: answer)
        try:
            place = authority.encode("ascii")
            head = b"CONNECT " + place + b" HTTP/1.1\r\nhost: " + place + b"\r\n"
            transport.write(head + self.authorization + b"\r\n")
            status = await answer.status
            if not 200 <= status < 300:
                raise self.refusal(status)
            if answer.is_talkative:
                raise _fault("sent more than its answer to CONNECT")
        except BaseException:
            transport.abort()
            raise
        return transport

    def refusal(self, status: int) -> UpstreamFault:
        """What a status means with which the proxy itself answers."""
        if status != LOGIN_WANTED:
            return _fault(f"answered with status {status}")
        if self.authorization:
            return _fault(f"does not accept the user and password in its address (status {status})")
        return _fault(
            f"wants a user and password (status {status}): write them into its address as user:password@"
        )


class _Answer(asyncio.Protocol):
    """What the proxy says to CONNECT. It is also the parser's listener."""

    def __init__(self) -> None:
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        # Nobody waits for the answer any more.
        self.status.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.is_talkative = False
        self._received = 0
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail("gave an answer that was not HTTP")
        if self._received > MAX_ANSWER_BYTES:
            self._fail("answers without end")

    def connection_lost(self, error: Exception | None) -> None:
        self._fail("closed the connection without opening the way to the vendor")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if not 100 <= status < 200 and not self.status.done():
            self.status.set_result(status)

    def on_body(self, data: bytes) -> None:
        self.is_talkative = True

    def _fail(self, trouble: str) -> None:
        if not self.status.done():
            self.status.set_exception(_fault(trouble))


def _fault(trouble: str) -> UpstreamFault:
    return UpstreamFault("network", f"{_NAME} {trouble}")
