"""One POST to a judged address, spoken by httpx. Loaded when a call is first made.

Name and TLS stay those of the URL; the connection goes where the guard has judged, whatever a name resolves to by now.
"""

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
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
    """A client for each call: a pooled connection would outlive the judgement of its address."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls or httpx.create_ssl_context(trust_env=False)

    async def post(
        self, path: Route, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> tuple[int, str | None, str | None]:
        """Status, location and retry-after of the answer. Raises TimeoutError and CallBroken."""
        client = httpx.AsyncClient(
            transport=_PinnedTransport(path, self._tls),
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
            follow_redirects=False,
            trust_env=False,
        )
        try:
            async with (
                client,
                client.stream("POST", path.url, content=body, headers=headers) as response,
            ):
                read = 0
                async for chunk in response.aiter_raw():
                    read += len(chunk)
                    if read > READ_LIMIT_BYTES:
                        break
                said = response.headers
                return response.status_code, said.get("location"), said.get("retry-after")
        except httpx.TimeoutException as error:
            raise TimeoutError from error
        except httpx.HTTPError as error:
            raise CallBroken(_broken(error)) from error


class _PinnedTransport(httpx.AsyncBaseTransport):
    """One request over one connection to a judged address; name and TLS stay those of the URL."""

    def __init__(self, path: Route, tls: ssl.SSLContext) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=1,
            http1=True,
            http2=False,
            network_backend=_PinnedBackend(path),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        assert isinstance(request.stream, httpx.AsyncByteStream)
        try:
            response = await self._pool.handle_async_request(
                httpcore.Request(
                    method=request.method,
                    url=url,
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        except httpcore.TimeoutException as error:
            raise httpx.TimeoutException(str(error), request=request) from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise httpx.TransportError(str(error), request=request) from error
        return httpx.Response(
            status_code=response.status, headers=response.headers, stream=_Body(response)
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.aiter_stream():
                yield chunk
        except httpcore.TimeoutException as error:
            raise httpx.ReadTimeout(str(error)) from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise httpx.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._response.aclose()


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


def _broken(error: httpx.HTTPError) -> str:
    handshake = ssl_error_of(error)
    if handshake is not None:
        trust = "it needs one of a public authority"
        return f"the receiver {tls_trouble(handshake, trust=trust)}"
    kind = type(error.__cause__ or error)
    return _TROUBLE.get(kind, f"the call failed: {kind.__name__}")
