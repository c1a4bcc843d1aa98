"""One POST to a judged address, spoken by httpcore. Loaded when a call is first made.

Name and TLS stay those of the URL; the connection goes where the guard has judged, whatever a name resolves to by now.
"""

import ssl
from collections.abc import Iterable, Mapping
from typing import Any, Final

import anyio
import anyio.lowlevel
import httpcore
import httpx

from gwd.core.connection_trouble import ssl_error_of, tls_trouble
from gwd.outbound.client import CallBroken
from gwd.outbound.guard import Route

CONNECT_TIMEOUT_S: Final = 5.0
READ_LIMIT_BYTES: Final = 16_384
_TROUBLE: Final[dict[type[BaseException], str]] = {
    httpcore.ConnectError: "no connection to the receiver could be made; it may be down, or a firewall may refuse us",
    httpcore.ReadError: "the receiver closed the connection before its answer was complete",
    httpcore.WriteError: "the receiver closed the connection before it had taken the message",
    httpcore.RemoteProtocolError: "the receiver closed the connection without an answer, or its answer is no HTTP",
}


def load() -> None:
    """Load what the first connection would load on its loop. For a thread without one."""
    anyio.run(anyio.lowlevel.checkpoint)


class Exchange:
    """A connection for each call: one that is kept would outlive the judgement of its address."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls or httpx.create_ssl_context(trust_env=False)

    async def post(
        self, path: Route, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> tuple[int, str | None, str | None]:
        """Status, location and retry-after of the answer. Raises TimeoutError and CallBroken."""
        url = httpx.URL(path.url)
        connection = httpcore.AsyncHTTPConnection(
            origin=httpcore.Origin(url.raw_scheme, url.raw_host, path.port),
            ssl_context=self._tls,
            network_backend=_PinnedBackend(path),
        )
        waits = {"connect": CONNECT_TIMEOUT_S, "read": timeout_s, "write": timeout_s}
        try:
            async with (
                connection,
                connection.stream(
                    b"POST",
                    httpcore.URL(
                        scheme=url.raw_scheme,
                        host=url.raw_host,
                        port=url.port,
                        target=url.raw_path,
                    ),
                    headers=[(b"host", url.netloc), *_encoded(headers)],
                    content=body,
                    extensions={"timeout": waits},
                ) as response,
            ):
                read = 0
                async for chunk in response.aiter_stream():
                    read += len(chunk)
                    if read > READ_LIMIT_BYTES:
                        break
                said = {name.lower(): value.decode("latin-1") for name, value in response.headers}
                return response.status, said.get(b"location"), said.get(b"retry-after")
        except httpcore.TimeoutException as error:
            raise TimeoutError from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise CallBroken(_broken(error)) from error


class _PinnedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the judged addresses whatever name it is given, one after the other until one answers."""

    def __init__(self, path: Route) -> None:
        self._path = path
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception | None = None
        for address in self._path.addresses:
            try:
                return await self._network.connect_tcp(
                    address, self._path.port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        assert failure is not None
        raise failure

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]


def _broken(error: Exception) -> str:
    handshake = ssl_error_of(error)
    if handshake is not None:
        trust = "it needs one of a public authority"
        return f"the receiver {tls_trouble(handshake, trust=trust)}"
    return _TROUBLE.get(type(error), f"the call failed: {type(error).__name__}")
