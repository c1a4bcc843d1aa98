"""The one guarded HTTP client: a new connection for each call, to an address that was judged for this call.

Calls are few and go anywhere, so nothing is pooled: a pooled connection would outlive the judgement of its address.
"""

import asyncio
import functools
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

import httpcore
import httpx
import msgspec

from gwd.core.connection_trouble import is_redirect, redirect_trouble, ssl_error_of, tls_trouble
from gwd.outbound.guard import AddressRefused, Resolve, Route, Rules, resolve, route

TOTAL_TIMEOUT_S: Final = 15.0
CONNECT_TIMEOUT_S: Final = 5.0
READ_LIMIT_BYTES: Final = 16_384
MAX_RETRY_AFTER_S: Final = 3_600


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended: a status, or an error that says why there is none. Bodies are not kept.

    `error` stands beside a status that leads elsewhere. `refused` tells that the guard did not let the call out.
    """

    status: int | None
    error: str | None = None
    refused: bool = False
    retry_after_s: int | None = None
    latency_ms: int = 0

    @property
    def succeeded(self) -> bool:
        """Any 2xx."""
        return self.status is not None and 200 <= self.status < 300


class OutboundClient:
    """Calls addresses that users typed. One for the node; it keeps no connection.

    `tls` replaces the context that trusts the public authorities; those are read when a call first needs them.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        user_agent: str,
        resolver: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.rules = rules
        self._user_agent = user_agent
        self._resolver = resolver
        self._given_tls = tls

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        """POST the bytes as they are; redirects are answers like any other. Never raises for what a call can meet."""
        started_s = time.monotonic()
        try:
            async with asyncio.timeout(TOTAL_TIMEOUT_S):
                path = await route(url, self.rules, self._resolver)
                return await self._post(path, body, headers, started_s)
        except AddressRefused as refused:
            return Answer(status=None, error=str(refused), refused=True)
        except (TimeoutError, httpx.TimeoutException):
            error = f"no answer within {TOTAL_TIMEOUT_S:g} s"
            return Answer(status=None, error=error, latency_ms=_ms_since(started_s))
        except httpx.HTTPError as error:
            return Answer(status=None, error=_broken(error), latency_ms=_ms_since(started_s))

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or httpx.create_ssl_context(trust_env=False)

    async def _post(
        self, path: Route, body: bytes, headers: Mapping[str, str], started_s: float
    ) -> Answer:
        client = httpx.AsyncClient(
            transport=_PinnedTransport(path, self._tls),
            timeout=httpx.Timeout(TOTAL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            follow_redirects=False,
            trust_env=False,
        )
        sent = {"user-agent": self._user_agent, "accept-encoding": "identity", **headers}
        async with client, client.stream("POST", path.url, content=body, headers=sent) as response:
            read = 0
            async for chunk in response.aiter_raw():
                read += len(chunk)
                if read > READ_LIMIT_BYTES:
                    break
            status, location = response.status_code, response.headers.get("location")
            return Answer(
                status=status,
                error=_elsewhere(status, location, str(path.url)) if is_redirect(status) else None,
                retry_after_s=_retry_after(response.headers.get("retry-after")),
                latency_ms=_ms_since(started_s),
            )


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


def _elsewhere(status: int, location: str | None, url: str) -> str:
    told = redirect_trouble(status, location, asked=url)
    return f"the receiver {told}, which is not followed; set the address to where it listens"


def _broken(error: httpx.HTTPError) -> str:
    handshake = ssl_error_of(error)
    if handshake is None:
        return f"the call failed: {type(error).__name__}"
    trust = "it needs one of a public authority"
    return f"the receiver {tls_trouble(handshake, trust=trust)}"


def _retry_after(value: str | None) -> int | None:
    """Whole seconds up to an hour; a date or nonsense is no hint."""
    if value is None or not value.strip().isdecimal() or len(value) > 9:
        return None
    return min(int(value), MAX_RETRY_AFTER_S)


def _ms_since(started_s: float) -> int:
    return int((time.monotonic() - started_s) * 1000)
