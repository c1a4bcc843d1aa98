"""The upstream client of nodes that reach their vendors through a proxy; others use http_client.

The wiring imports it only for them: aiohttp is a tenth of a second and ten megabytes.
"""

import asyncio

import aiohttp
from yarl import URL

from gwd.core.connection_trouble import ssl_error_of
from gwd.core.target import UpstreamCall
from gwd.upstream.base import (
    KEEPALIVE_S,
    MAX_BODY_BYTES,
    MAX_IN_FLIGHT,
    Timeouts,
    UpstreamFault,
    UpstreamReply,
    tls_context,
    untrusted,
)


class ProxiedClient:
    """One pooled session for the node."""

    def __init__(
        self, timeouts: Timeouts, *, proxy: str | None = None, ca_file: str | None = None
    ) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=tls_context(ca_file), keepalive_timeout=KEEPALIVE_S, ttl_dns_cache=60
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeouts.connect_s),
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Content-Type", "Accept"),
            headers={"Accept-Encoding": "identity"},
            trust_env=False,
            read_bufsize=256 * 1024,
        )
        self._proxy = proxy
        self._places = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._urls: dict[str, URL] = {}

    async def send(self, call: UpstreamCall, timeout_s: float) -> UpstreamReply:
        await self._places.acquire()
        response = None
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._session.post(
                    self._url(call.url),
                    data=call.body,
                    headers=call.headers,
                    allow_redirects=False,
                    proxy=self._proxy,
                )
        except TimeoutError:
            raise UpstreamFault("timeout", "the vendor did not answer in time") from None
        except aiohttp.ClientError as error:
            raise _network(error) from None
        except (OSError, ValueError) as error:
            raise UpstreamFault(
                "network", f"the call could not be made: {type(error).__name__}"
            ) from None
        finally:
            if response is None:
                self._places.release()
        return _Reply(response, self._places)

    async def close(self) -> None:
        await self._session.close()

    def _url(self, text: str) -> URL:
        url = self._urls.get(text)
        if url is None:
            if len(self._urls) > 1_000:
                self._urls.clear()
            url = self._urls[text] = URL(text, encoded=True)
        return url


class _Reply:
    def __init__(self, response: aiohttp.ClientResponse, places: asyncio.Semaphore) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._content = response.content
        self._places: asyncio.Semaphore | None = places
        self._received = 0

    async def read(self, timeout_s: float) -> bytes:
        try:
            data = self._content.read_nowait()  # what has arrived already needs no deadline
            if not data and not self._content.at_eof():
                async with asyncio.timeout(timeout_s):
                    data = await self._content.readany()
        except TimeoutError:
            raise UpstreamFault("timeout", "the vendor stopped sending") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _network(error) from None
        self._received += len(data)
        if self._received > MAX_BODY_BYTES:
            raise UpstreamFault("upstream_error", "the vendor's answer is too large")
        return data

    async def read_all(self, timeout_s: float) -> bytes:
        pieces = []
        try:
            async with asyncio.timeout(timeout_s):
                while data := await self._content.readany():
                    pieces.append(data)
                    self._received += len(data)
                    if self._received > MAX_BODY_BYTES:
                        raise UpstreamFault("upstream_error", "the vendor's answer is too large")
        except TimeoutError:
            raise UpstreamFault("timeout", "the vendor did not finish its answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _network(error) from None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        if self._places is None:
            return
        self._places.release()
        self._places = None
        if self._content.at_eof():
            self._response.release()
        else:
            self._response.close()


def _network(error: Exception) -> UpstreamFault:
    # Its own classes inherit from the TLS errors without being filled like them.
    inner: BaseException = error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error
    handshake = ssl_error_of(inner)
    if handshake is not None:
        return untrusted(handshake)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return UpstreamFault("network", "the proxy of [upstream] could not be reached")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return UpstreamFault(
            "network", f"the proxy of [upstream] answered with status {error.status}"
        )
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return UpstreamFault("network", "the vendor's name could not be resolved")
    if isinstance(error, aiohttp.ClientConnectorError):
        return UpstreamFault("network", "the vendor could not be reached")
    return UpstreamFault("network", "the connection to the vendor broke")
