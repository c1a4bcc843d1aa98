"""The upstream client of the request path: HTTP/1.1 over pooled connections, straight from socket to decoder.

It does one thing: POST a body, or GET without one, and give back status, headers and the body in the pieces the network
delivers. Redirects are answers like any other, compression is never asked for, interim answers are skipped, trailers
are dropped. A head that is none (a status out of 100-599, no status, another protocol) is the vendor's error and ends
the call at once; so does framing without end that carries nothing, since whatever waits here waits until a deadline at
most. A call is never sent twice, with one exception: a connection that had rested and breaks the moment it is used
again, without a byte of an answer, was closed by the vendor for being idle, and the call goes out once more on a fresh
one.
"""

import asyncio
import socket
import ssl
from collections import deque
from functools import lru_cache
from typing import Final, cast
from urllib.parse import urlsplit

import httptools
import msgspec

from gwd.core.target import UpstreamCall
from gwd.upstream.base import (
    KEEPALIVE_S,
    MAX_BODY_BYTES,
    MAX_IN_FLIGHT,
    MAX_PER_ORIGIN,
    Timeouts,
    UpstreamFault,
    UpstreamReply,
    tls_context,
    untrusted,
)
from gwd.upstream.origins import Origin, Origins
from gwd.upstream.proxy import LOGIN_WANTED, Proxy

MAX_HEAD_BYTES: Final = 16 * 1024
HIGH_WATER_BYTES: Final = 512 * 1024
MAX_IDLE_PER_ORIGIN: Final = 512
IDLE_S: Final = 1.0
AT_ONCE_S: Final = 0.1
_SWEEP_S: Final = 10.0
MAX_INTERIM: Final = 32
_INTERIM: Final = range(100, 200)
_STATUS: Final = range(100, 600)


class _Place(msgspec.Struct, frozen=True):
    """Where a URL leads, taken apart once."""

    host: str
    port: int
    is_tls: bool
    origin: Origin
    authority: str
    """As CONNECT names it."""

    head: bytes
    """What stands behind the method, as far as it is the same for every call."""


class HttpClient:
    """One pool for the node. Open it inside the running loop. An empty `proxy` or `ca_file` is none."""

    def __init__(
        self,
        timeouts: Timeouts,
        *,
        proxy: str = "",
        ca_file: str = "",
        max_per_origin: int = MAX_PER_ORIGIN,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._connect_s = timeouts.connect_s
        self._tls = tls_context(ca_file)
        self._proxy = Proxy(proxy, self._tls) if proxy else None
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._origins = Origins(max_per_origin)
        self._places: dict[str, _Place] = {}
        self._idle: dict[Origin, list[_Connection]] = {}
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)

    async def send(self, call: UpstreamCall, timeout_s: float) -> UpstreamReply:
        """Send the call and wait for the status line. Raises UpstreamFault."""
        place = self._place(call.url)
        message = _message(place, call)
        deadline_s = self._loop.time() + timeout_s
        if not self._origins.take(place.origin):
            await self._origins.wait(place.origin, timeout_s)
        try:
            await self._wait_for_a_place(deadline_s - self._loop.time())
        except BaseException:
            self._origins.free(place.origin)
            raise
        try:
            connection = self._kept(place)
            if connection is not None:
                began_s = self._loop.time()
                was_idle = began_s - connection.idle_since_s >= IDLE_S
                reply = connection.start(message)
                try:
                    await reply.head(deadline_s - began_s)
                    return reply if self._proxy is None else self._vendors(reply, place)
                except UpstreamFault:
                    was_quick = self._loop.time() - began_s <= AT_ONCE_S
                    if reply.has_bytes or not (was_idle and was_quick):
                        raise
            connection = await self._connect(place, deadline_s - self._loop.time())
            reply = connection.start(message)
            await reply.head(deadline_s - self._loop.time())
            return reply if self._proxy is None else self._vendors(reply, place)
        except BaseException:
            self._leave(place.origin)
            raise

    async def _wait_for_a_place(self, timeout_s: float) -> None:
        if not self._in_flight.locked():
            await self._in_flight.acquire()
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._in_flight.acquire()
        except TimeoutError:
            raise UpstreamFault(
                "timeout", f"{MAX_IN_FLIGHT} calls to vendors are under way, and none ended in time"
            ) from None

    def _leave(self, origin: Origin) -> None:
        """A call is over; somebody else may be under way in its place."""
        self._in_flight.release()
        self._origins.free(origin)

    async def close(self) -> None:
        self._sweeper.cancel()
        for connections in self._idle.values():
            for connection in list(connections):
                connection.abort()
        await asyncio.sleep(0)

    def ended(self, connection: "_Connection", *, reusable: bool) -> None:
        """A reply is done with its connection."""
        self._leave(connection.origin)
        idle = self._idle.setdefault(connection.origin, [])
        if reusable and len(idle) < MAX_IDLE_PER_ORIGIN:
            connection.idle_since_s = self._loop.time()
            idle.append(connection)
        else:
            connection.abort()

    def lost(self, connection: "_Connection") -> None:
        """A connection is closed, whoever closed it."""
        idle = self._idle.get(connection.origin, ())
        if connection in idle:
            self._idle[connection.origin].remove(connection)

    def _kept(self, place: _Place) -> "_Connection | None":
        idle = self._idle.get(place.origin)
        while idle:
            connection = idle.pop()  # the one used last: the others may reach their idle timeout
            if not connection.is_closing:
                return connection
        return None

    async def _connect(self, place: _Place, timeout_s: float) -> "_Connection":
        connection = _Connection(self, place.origin)
        try:
            async with asyncio.timeout(min(self._connect_s, max(0.0, timeout_s))):
                if self._proxy is None:
                    tls = self._tls if place.is_tls else None
                    await self._loop.create_connection(
                        lambda: connection, place.host, place.port, ssl=tls
                    )
                elif place.is_tls:
                    await self._connect_through(self._proxy, place, connection)
                else:
                    await self._proxy.connect(lambda: connection)
        except TimeoutError:
            way = " through the proxy of [upstream]" if self._proxy is not None else ""
            raise UpstreamFault(
                "timeout", f"the vendor could not be reached in time{way}"
            ) from None
        except ssl.SSLError as error:
            raise untrusted(error) from None
        except socket.gaierror:
            raise UpstreamFault("network", "the vendor's name could not be resolved") from None
        except (OSError, ValueError):
            raise UpstreamFault("network", "the vendor could not be reached") from None
        return connection

    async def _connect_through(
        self, proxy: Proxy, place: _Place, connection: "_Connection"
    ) -> None:
        """TLS to the vendor inside what the proxy joins to it; the certificate has to be the vendor's."""
        transport = await proxy.tunnel(place.authority)
        try:
            secured = await self._loop.start_tls(
                transport, connection, self._tls, server_hostname=place.host
            )
        except BaseException:
            transport.abort()
            raise
        if secured is None:
            raise OSError("the connection ended during the handshake")
        connection.connection_made(secured)

    def _vendors(self, reply: "_Reply", place: _Place) -> "_Reply":
        """The reply, unless it is the proxy's own: no vendor asks for a login at the proxy. Raises UpstreamFault."""
        assert self._proxy is not None
        if place.is_tls or reply.status != LOGIN_WANTED:
            return reply
        reply.drop()
        raise self._proxy.refusal(reply.status)

    def _place(self, url: str) -> _Place:
        place = self._places.get(url)
        if place is None:
            if len(self._places) > 1_000:
                self._places.clear()
            place = self._places[url] = _place_of(url, self._proxy)
        return place

    def _sweep(self) -> None:
        oldest_s = self._loop.time() - KEEPALIVE_S
        for connections in self._idle.values():
            for connection in [c for c in connections if c.idle_since_s < oldest_s]:
                connections.remove(connection)
                connection.abort()
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)


class _Connection(asyncio.Protocol):
    """One socket to one origin; at most one call at a time. It is also the parser's listener."""

    def __init__(self, client: HttpClient, origin: Origin) -> None:
        self.client = client
        self.origin = origin
        self.idle_since_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._deadline_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._reply: _Reply | None = None

    @property
    def is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    @property
    def is_lost(self) -> bool:
        """Whether the socket is gone, and with it everything that could still be told."""
        return self._transport is None

    def wait_until(self, deadline_s: float) -> None:
        """Wake the reply with a timeout then.

        The timer is set anew only if it would ring too late: most waits end long before, and a timer for each of them
        is a tenth of what a stream's event costs.
        """
        self._deadline_s = deadline_s
        if self._timer is None or deadline_s < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(deadline_s, self._ring)

    def start(self, message: bytes) -> "_Reply":
        """Write a request; its answer comes through the reply."""
        reply = self._reply = _Reply(self)
        if self._transport is None or self._transport.is_closing():
            reply.lost()
        else:
            self._transport.write(message)
        return reply

    def release(self, *, whole: bool) -> None:
        """The reply is finished with: keep the connection if its answer was read to the end and it may stay open."""
        self._reply = None
        self.client.ended(self, reusable=whole and not self.is_closing)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def _ring(self) -> None:
        self._timer = None
        if self._reply is None:
            return
        if self._deadline_s <= self._loop.time():
            self._reply.expire()
        else:
            self.wait_until(self._deadline_s)

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        reply = self._reply
        if reply is None:
            self.abort()  # bytes without a call: the connection is not used again
            return
        reply.has_bytes = True
        reply.unsaid += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            reply.fail("the vendor wants to speak another protocol")
        except httptools.HttpParserError:
            reply.fail("the vendor's answer was not HTTP")
        if reply.unsaid > MAX_HEAD_BYTES:
            reply.fail("the vendor's answer has more framing than content", upstream_error=True)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.client.lost(self)
        if self._reply is not None:
            self._reply.lost(was_reset=error is not None)

    # --- called by the parser

    def on_message_begin(self) -> None:
        if self._reply is not None:
            self._reply.begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reply is not None:
            self._reply.add_header(name, value)

    def on_headers_complete(self) -> None:
        if self._reply is not None:
            self._reply.has_head(self._parser.get_status_code())

    def on_body(self, data: bytes) -> None:
        if self._reply is not None:
            self._reply.add(data)

    def on_message_complete(self) -> None:
        if self._reply is not None:
            self._reply.complete(self._parser.should_keep_alive())


@lru_cache(maxsize=256)
def _name_of(header: bytes) -> str:
    """Vendors send the same names in every answer."""
    return header.decode("latin-1").lower()


class _Reply:
    """One answer, filled by its connection and read by dispatch. Header names are lower case.

    `unsaid` counts the bytes that came since the parser last found anything in them: an endless header or chunk
    extension, which it would collect or skip for ever.
    """

    def __init__(self, connection: _Connection) -> None:
        self._loop = asyncio.get_running_loop()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.has_bytes = False
        self.unsaid = 0
        self._connection: _Connection | None = connection
        self._head_size = 0
        self._is_interim = False
        self._interims = 0
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._received = 0
        self._done = False
        self._may_stay = False
        self._paused = False
        self._fault: UpstreamFault | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def head(self, timeout_s: float) -> None:
        """Wait for the status line. Raises UpstreamFault; the connection is cut then."""
        deadline_s = self._loop.time() + timeout_s
        try:
            while not self.status and self._fault is None:
                await self._wait(deadline_s, "the vendor did not answer in time")
            if self._fault is not None:
                raise self._fault
        except BaseException:
            self.drop()
            raise

    async def read(self, timeout_s: float) -> bytes:
        """The next bytes, b"" at the end. Raises UpstreamFault."""
        if not self._pieces:
            deadline_s = self._loop.time() + timeout_s
            while not self._pieces and not self._done and self._fault is None:
                await self._wait(deadline_s, "the vendor stopped sending")
            if not self._pieces:
                if self._fault is not None:
                    raise self._fault
                return b""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        if self._paused and self._connection is not None:
            self._paused = False
            self._connection.resume()
        return data

    async def read_all(self, timeout_s: float) -> bytes:
        """The whole body within the time. Raises UpstreamFault."""
        deadline_s = self._loop.time() + timeout_s
        pieces = []
        while data := await self.read(max(0.0, deadline_s - self._loop.time())):
            pieces.append(data)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Keep the connection if the body was received to its end, else cut it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._paused:
                connection.resume()  # else the next call on it would receive nothing
            connection.release(whole=self._done and self._may_stay and self._fault is None)

    # --- called by the connection

    def begin(self) -> None:
        if self.status:
            self.fail("the vendor answered twice")
        self.headers = {}
        self._is_interim = False

    def add_header(self, name: bytes, value: bytes) -> None:
        self.unsaid = 0
        self._head_size += len(name) + len(value)
        if self._head_size > MAX_HEAD_BYTES:
            self.fail("the vendor's headers are too large")
        elif not self.status:  # what comes behind the body is a trailer
            self.headers[_name_of(name)] = value.decode("latin-1").strip()

    def has_head(self, status: int) -> None:
        if status in _INTERIM:
            self._is_interim = True
            self._interims += 1
            if self._interims > MAX_INTERIM:
                self.fail("the vendor sends interim answers without end")
        elif status not in _STATUS:
            self.fail(f"the vendor's answer has the status {status:03}, which HTTP does not know")
        else:
            self.unsaid = 0
            self.status = status
            self._wake()

    def add(self, data: bytes) -> None:
        self.unsaid = 0
        self._received += len(data)
        self._buffered += len(data)
        if self._received > MAX_BODY_BYTES:
            self.fail("the vendor's answer is too large", upstream_error=True)
            return
        self._pieces.append(data)
        if self._buffered > HIGH_WATER_BYTES and not self._paused and self._connection is not None:
            self._paused = True
            self._connection.pause()
        self._wake()

    def complete(self, may_stay: bool) -> None:  # noqa: FBT001 - the parser's own word
        if self._is_interim:
            return
        self._done, self._may_stay = True, may_stay
        self._wake()

    def expire(self) -> None:
        """Whoever waits has waited long enough."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(TimeoutError())

    def lost(self, *, was_reset: bool = False) -> None:
        """The socket is gone: the end of a body without a length, a fault in any other."""
        if self._done or self._fault is not None:
            return
        has_length = {"content-length", "transfer-encoding"} & self.headers.keys()
        if self.status and not has_length and not was_reset:
            self._done = True
        else:
            self._fault = _broke()
        self._wake()

    def fail(self, message: str, *, upstream_error: bool = False) -> None:
        """Give the answer up; one that is complete already stays what it is. Without a head it was no answer."""
        if self._fault is None and not self._done:
            is_theirs = upstream_error or not self.status
            self._fault = UpstreamFault("upstream_error" if is_theirs else "network", message)
        if self._connection is not None:
            self._connection.abort()
        self._wake()

    def drop(self) -> None:
        """Before the head: the connection is cut, and its place in flight stays with the caller."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    async def _wait(self, deadline_s: float, message: str) -> None:
        """Wait until the connection has received something or is closed."""
        if self._connection is None or self._connection.is_lost:
            self._fault = _broke()
            raise self._fault
        waiter = self._waiter = self._loop.create_future()
        self._connection.wait_until(deadline_s)
        try:
            await waiter
        except TimeoutError:
            self._fault = UpstreamFault("timeout", message)
            raise self._fault from None
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _message(place: _Place, call: UpstreamCall) -> bytes:
    """Head and body in one piece. Raises UpstreamFault for a header that no request can carry."""
    lines = [call.method.encode("ascii"), place.head]
    for name, value in call.headers.items():
        if not (value.isascii() and value.isprintable()):
            raise UpstreamFault(
                "network", f"the header {name} cannot be sent: it is not plain text"
            )
        lines.append(f"{name}: {value}\r\n".encode("ascii"))
    if call.method != "GET":
        lines.append(b"content-length: %d\r\n" % len(call.body))
    lines += (b"\r\n", call.body)
    return b"".join(lines)


def _place_of(url: str, proxy: Proxy | None) -> _Place:
    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    try:
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = parts.port or (443 if is_tls else 80)
    except (UnicodeError, ValueError):
        raise UpstreamFault("network", "the vendor's address is not a valid URL") from None
    bare = f"[{host}]" if ":" in host else host
    shown = bare if parts.port is None else f"{bare}:{parts.port}"
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    if not (host and target.isascii() and target.isprintable() and " " not in target):
        raise UpstreamFault("network", "the vendor's address is not a valid URL")
    login = b""
    if proxy is not None and not is_tls:
        target, login = f"http://{shown}{target}", proxy.authorization
    head = f" {target} HTTP/1.1\r\nhost: {shown}\r\naccept-encoding: identity\r\n"
    origin = host, port, is_tls
    return _Place(host, port, is_tls, origin, f"{bare}:{port}", head.encode("ascii") + login)


def _broke() -> UpstreamFault:
    return UpstreamFault("network", "the connection to the vendor broke")
