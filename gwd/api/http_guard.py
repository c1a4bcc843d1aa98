"""The HTTP front: one strict reading of every request's head, absolute deadlines, and caps on connections.

The framework accepts malformed heads, and its timers start anew with every byte. Here the raw head is judged once,
before the framework parses it; a head has ten seconds from the connection (or, on one that is reused, from its first
byte); a body has to keep up a least rate (gwd.api.body_intake), and so has a client that takes its answer
(gwd.api.readers); an address can hold only so many connections; and values that are no UTF-8 are made text before
anybody reads them. It is a protocol of its own rather than listeners to the framework's signals, because those cost
every request, and the framework rewrites itself to do without them when nobody listens.
"""

import asyncio
import re
from typing import Any, Final

from sanic.compat import Header
from sanic.exceptions import BadRequest, PayloadTooLarge, RequestTimeout, SanicException
from sanic.http import Http, Stage
from sanic.server import HttpProtocol

from gwd.api import proxy_protocol
from gwd.api.body_intake import BodyIntake, IncomingBody
from gwd.api.inference_response import InferenceResponse
from gwd.api.proxies import Proxies, one_client
from gwd.api.proxy_protocol import NoIntroductionError
from gwd.api.readers import Readers, bytes_left
from gwd.core.counters import Counters

HEAD_S: Final = 10.0
HEAD_MAX_BYTES: Final = 8_192
HEAD_MAX_LINES: Final = 100
IDLE_S: Final = 1.0
LINGER_S: Final = 2.0
"""How long what comes of a body that was refused is read and dropped before its connection is closed."""
RESERVE: Final = 64
"""Connections beyond the cap, for management and health; each ends with its answer."""

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_START: Final = _TOKEN + rb"{1,32}+ /(?!/)[\x21\x22\x24-\x7e]{0,2047}+ HTTP/1\.[01]"
_FIELD: Final = _TOKEN + rb"++:[\t\x20-\x7e\x80-\xff]*+"
_HEAD: Final = re.compile(_START + rb"(?:\r\n" + _FIELD + rb")*+")
_START_LINE: Final = re.compile(_START)
_FIELD_LINE: Final = re.compile(_FIELD)
_FRAMING: Final = re.compile(
    rb"\n(host|content-length|transfer-encoding|content-type|authorization|x-api-key|x-goog-api-key):([^\r]*)"
)
_HOST: Final = re.compile(
    rb"[\t ]*+(?:[a-z0-9._-]{1,253}+|\[[0-9a-f:.]{2,45}+\])(?::[0-9]{1,5}+)?[\t ]*+"
)
_LENGTH: Final = re.compile(rb"[\t ]*+[0-9]{1,12}+[\t ]*+")
_BARE: Final = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)|\x00")

_BUSY: Final = (
    b'{"error":{"type":"overloaded_error","code":"overloaded","message":"too many connections are open;'
    b' close some or try again"}}'
)
_BUSY_ANSWER: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(_BUSY), _BUSY)
)


_NOT_INTRODUCED: Final = (
    b'{"error":{"type":"invalid_request_error","code":"invalid_request","message":"the connection does not begin with a'
    b' PROXY protocol header; have the proxy send one, or set [server] proxy_protocol = false"}}'
)
_NOT_INTRODUCED_ANSWER: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_NOT_INTRODUCED), _NOT_INTRODUCED)
)
NO_PROXIES: Final = Proxies((), "x-forwarded-for")


class BadHead(BadRequest):
    """The head is not strict HTTP; `reason` names the rule in the metrics."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class HeadTooLarge(PayloadTooLarge):
    """The head is longer than any client of ours needs."""

    reason: Final = "size"


def check_head(head: bytes) -> None:
    """Judge a head (without the empty line at its end). Raises BadHead and HeadTooLarge."""
    if len(head) > HEAD_MAX_BYTES or head.count(b"\n") > HEAD_MAX_LINES:
        raise HeadTooLarge(
            f"a request has at most {HEAD_MAX_LINES} header lines and {HEAD_MAX_BYTES} bytes before its body"
        )
    if _HEAD.fullmatch(head) is None:
        raise _misshapen(head)
    found = _FRAMING.findall(head.lower())
    fields = dict(found)
    if len(fields) != len(found):
        raise _repeated(found)
    if b"host" not in fields or _HOST.fullmatch(fields[b"host"]) is None:
        raise BadHead("host", "send one Host header: host or host:port")
    if b"transfer-encoding" in fields:
        raise BadHead(
            "transfer_encoding",
            "send the body with Content-Length; Transfer-Encoding is not taken",
        )
    if b"content-length" in fields and _LENGTH.fullmatch(fields[b"content-length"]) is None:
        raise BadHead("content_length", "Content-Length must be a whole number of bytes in digits")


class Front:
    """The connections of one listener and what is known of them; used from the event loop only.

    `cap` is for all connections, `cap_per_address` for those of one address. Loopback addresses and those of trusted
    `proxies` are not counted by address: they speak for many clients. 0 is no cap. `reserve` more may come that are
    refused inference. `prefix` is a path that a proxy leaves in front of ours.
    """

    def __init__(
        self,
        counters: Counters,
        *,
        cap: int,
        cap_per_address: int,
        proxies: Proxies = NO_PROXIES,
        prefix: str = "",
    ) -> None:
        self.counters = counters
        self.proxies = proxies
        self.prefix = prefix.encode()
        self.cap = cap
        self.reserve = RESERVE
        self.cap_per_address = cap_per_address
        self.open = 0
        self.is_leaving = False
        """Whether another process takes the next connections: those that are open end with their next answer."""
        self.body_intake = BodyIntake(counters)
        self.readers = Readers(counters)
        self._by_address: dict[str, int] = {}

    def admit(self, address: str, *, is_trusted: bool = False) -> bool:
        """Count a new connection, or refuse it."""
        address = one_client(address)
        if self.cap and self.open >= self.cap + self.reserve:
            self.counters.connections_cut["too_many"] += 1
            return False
        if self.cap_per_address and not is_trusted and not _is_loopback(address):
            of_address = self._by_address.get(address, 0)
            if of_address >= self.cap_per_address:
                self.counters.connections_cut["too_many_of_address"] += 1
                return False
            self._by_address[address] = of_address + 1
        self.open += 1
        self.counters.connections += 1
        return True

    @property
    def is_in_reserve(self) -> bool:
        """Whether the connection that was admitted last is one of the reserve."""
        return bool(self.cap) and self.open > self.cap

    def leave(self, address: str) -> None:
        """A counted connection has ended."""
        address = one_client(address)
        self.open -= 1
        self.counters.connections -= 1
        left = self._by_address.get(address, 0) - 1
        if left > 0:
            self._by_address[address] = left
        else:
            self._by_address.pop(address, None)


class GuardedHttp(Http):
    """The framework's reader of requests behind the check of their heads."""

    __slots__ = ()
    protocol: "GuardedProtocol"

    async def http1_request_header(self) -> None:
        protocol = self.protocol
        end = self.recv_buffer.find(b"\r\n\r\n")
        if end < 0:
            end = await self._rest_of_head()
        if protocol.head_timer is not None:
            protocol.head_timer.cancel()
            protocol.head_timer = None
        head = bytes(self.recv_buffer[:end])
        try:
            check_head(head)
        except (BadHead, HeadTooLarge) as error:
            protocol.front.counters.heads_refused[error.reason] += 1
            raise
        if protocol.front.prefix:
            self._drop_prefix(head, protocol.front.prefix)
        await super().http1_request_header()  # type: ignore[no-untyped-call]
        if not head.isascii():
            self.request.headers = _as_text(self.request.headers)
        if self.request_bytes_left and self.request_bytes_left > len(self.recv_buffer):
            protocol.await_body(len(self.recv_buffer), self.request_bytes_left)

    async def http1_response_header(self, data: bytes, end_stream: bool) -> None:  # noqa: FBT001
        """The head of a response, and the first of its body. Those of inference are written as they are."""
        response = self.response
        if self.protocol.front.is_leaving or self.protocol.in_reserve:
            self.keep_alive = False
        if not isinstance(response, InferenceResponse) or self.head_only or self.expecting_continue:
            await super().http1_response_header(data, end_stream)
            return
        if not data and response.body:
            data, end_stream = response.body, True
        self.response_size = len(data)
        connection = "keep-alive" if self.keep_alive else "close"
        if end_stream:
            self.response_func = None  # type: ignore[assignment]
            head = response.head(f"content-length: {len(data)}\r\nconnection: {connection}\r\n")
        else:
            self.response_func = self.http1_response_chunked
            head = response.head(f"transfer-encoding: chunked\r\nconnection: {connection}\r\n")
            data = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        await self._send(head + data)
        self.stage = Stage.IDLE if end_stream else Stage.RESPONSE

    def _drop_prefix(self, head: bytes, prefix: bytes) -> None:
        """What a proxy left in front of our paths is no part of them."""
        begin = head.index(b" ") + 1
        end = begin + len(prefix)
        if not head.startswith(prefix, begin) or head[end : end + 1] not in (b"/", b"?", b" "):
            return
        self.recv_buffer[begin:end] = b"" if head[end : end + 1] == b"/" else b"/"

    async def _rest_of_head(self) -> int:
        """Wait for the end of the head, not longer than its deadline, nor for what can only be refused."""
        protocol, buffer = self.protocol, self.recv_buffer
        if protocol.head_timer is None:
            protocol.arm_head_timer()
        seen = 0
        while True:
            end: int = buffer.find(b"\r\n\r\n", max(0, seen - 3))
            if end >= 0:
                return end
            if len(buffer) > HEAD_MAX_BYTES or _BARE.search(buffer, max(0, seen - 1)) is not None:
                return len(buffer)
            seen = len(buffer)
            await self._receive_more()


class GuardedProtocol(HttpProtocol):
    """One connection. The application carries its listener's Front as `ctx.front`."""

    HTTP_CLASS = GuardedHttp
    __slots__ = (
        "address",
        "drops_body",
        "front",
        "head_timer",
        "in_reserve",
        "incoming",
        "is_counted",
        "is_trusted",
        "linger_timer",
        "peer",
    )

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.front: Front = self.app.ctx.front
        self.peer = ""
        self.address = ""
        self.is_trusted = False
        self.is_counted = False
        self.in_reserve = False
        self.drops_body = False
        self.head_timer: asyncio.TimerHandle | None = None
        self.linger_timer: asyncio.TimerHandle | None = None
        self.incoming: IncomingBody | None = None

    def connection_made(self, transport: Any) -> None:
        peer = transport.get_extra_info("peername")
        self.peer = self.address = peer[0] if isinstance(peer, tuple) else ""
        self.is_trusted = self.front.proxies.trusts(self.peer)
        self.is_counted = self.front.admit(self.peer, is_trusted=self.is_trusted)
        if not self.is_counted:
            transport.write(_BUSY_ANSWER)
            transport.close()
            return
        super().connection_made(transport)  # type: ignore[no-untyped-call]
        self.in_reserve = self.front.is_in_reserve
        self.arm_head_timer()

    def data_received(self, data: bytes) -> None:
        if self.is_counted and self.linger_timer is None:
            super().data_received(data)
            incoming = self.incoming
            if incoming is not None:
                self.front.body_intake.grow(incoming, len(data))
                if incoming.left <= 0:
                    self.incoming = None

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.is_counted:
            return
        self.is_counted = False
        self.front.leave(self.peer)
        self.front.readers.end(self)
        if self.incoming is not None:
            self.front.body_intake.end(self.incoming)
        for timer in (self.head_timer, self.linger_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)  # type: ignore[no-untyped-call]

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[no-untyped-call]
        if self.transport is not None:
            self.front.readers.fall_behind(self, self._left, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()  # type: ignore[no-untyped-call]
        self.front.readers.catch_up(self)

    def check_timeouts(self) -> None:
        """A client that still takes its answer is not idle; one that takes too little is cut for that."""
        if not self._can_write.is_set():
            self._time = self.loop.time()
        super().check_timeouts()  # type: ignore[no-untyped-call]

    def close(self, timeout: float | None = None) -> None:
        """Closed at once, a connection on which a body comes would be reset before its client has read the answer."""
        is_served = self._task is None
        if is_served and self._has_more_to_come() and self.linger_timer is None:
            self.linger_timer = self.loop.call_later(LINGER_S, self.close)
            self.recv_buffer.clear()
            assert self.transport is not None
            self.transport.resume_reading()
            return
        super().close(timeout)

    def _has_more_to_come(self) -> bool:
        if self.transport is None or self.transport.is_closing():
            return False
        return self.drops_body or self.incoming is not None

    def client_of(self, headers: Header) -> str:
        """The address of whoever sent these headers, by the word of a trusted proxy where one passed them on."""
        if not self.is_trusted:
            return self.address
        return self.front.proxies.client(self.address, headers)

    def close_if_idle(self) -> bool:
        """Whether it was closed. One that was used just now is not idle: its client may be asking again."""
        if self.recv_buffer or self.loop.time() - self._time < IDLE_S:
            return False
        return bool(super().close_if_idle())

    def _left(self) -> int:
        return bytes_left(self.transport)

    def arm_head_timer(self) -> None:
        """From now on the head has its ten seconds."""
        self.head_timer = self.loop.call_later(HEAD_S, self._end_slow_head)

    def await_body(self, here: int, length: int) -> None:
        """A body of `length` bytes follows of which `here` are in the buffer."""
        self.incoming = IncomingBody(here, length - here, self.loop.time(), self._end_body)
        self.front.body_intake.begin(self.incoming)

    def _end_body(self, error: SanicException) -> None:
        """Answer with the error if nothing was answered yet, and close without waiting for the rest."""
        self.incoming = None
        self.drops_body = True
        if self.http is not None:
            self.http.request_body = None
        self._cancel(error)

    def _end_slow_head(self) -> None:
        self.head_timer = None
        self.front.counters.connections_cut["slow_head"] += 1
        http = self.http
        if http is not None and http.stage is Stage.REQUEST:
            self._cancel(RequestTimeout("the head of the request did not arrive in time"))
        else:
            self.close()  # a connection on which nothing was sent

    def _cancel(self, error: SanicException) -> None:
        if self.http is not None:
            self.http.exception = error
        if self._task is not None:
            self._task.cancel()


class IntroducedProtocol(GuardedProtocol):
    """One connection of a listener to which trusted proxies introduce theirs with a PROXY protocol header."""

    __slots__ = ("_introduction", "_waits")

    def connection_made(self, transport: Any) -> None:
        self._introduction = b""
        super().connection_made(transport)
        self._waits = self.is_trusted

    def data_received(self, data: bytes) -> None:
        if self._waits:
            data = self._introduced(data)
        if data:
            super().data_received(data)

    def _introduced(self, data: bytes) -> bytes:
        """What follows the header; whom it names is the peer from then on."""
        if not self.is_counted:
            return b""
        self._introduction += data
        try:
            found = proxy_protocol.read(self._introduction)
        except NoIntroductionError:
            self.front.counters.heads_refused["proxy_protocol"] += 1
            if self.transport is not None:
                self.transport.write(_NOT_INTRODUCED_ANSWER)
            self.close()
            return b""
        if found is None:
            return b""
        data, self._introduction, self._waits = self._introduction[found.length :], b"", False
        if found.address is not None:
            self.address = found.address
            self.is_trusted = self.front.proxies.trusts(found.address)
        return data


def _as_text(headers: Header) -> Header:
    """Values without the lone surrogates that bytes of no UTF-8 become: nothing could encode those again."""
    return Header((name, _text(value)) for name, value in headers.items())


def _text(value: str) -> str:
    raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")  # the charset of header values in older HTTP


def _is_loopback(address: str) -> bool:
    """Also of what comes over a Unix socket, which has no address."""
    return address in ("::1", "") or address.startswith(("127.", "::ffff:127."))


def _misshapen(head: bytes) -> BadHead:
    """Which rule the head breaks; only refused heads are looked at so closely."""
    bare = _BARE.search(head)
    if bare is not None:
        return BadHead("framing", "header lines end with CRLF and hold no other CR, LF or NUL")
    start, *fields = head.split(b"\r\n")
    if _START_LINE.fullmatch(start) is None:
        return BadHead(
            "start_line",
            "the first line must be METHOD /path HTTP/1.1, the path with one leading slash, without `#` (write %23)"
            " and at most 2,048 bytes",
        )
    for field in fields:
        if _FIELD_LINE.fullmatch(field) is None:
            name = field.partition(b":")[0][:40].decode("ascii", "replace").strip()
            return BadHead("field", f"header line `{name}` is not `name: value` on one line")
    raise AssertionError("a head whose lines are all right is right")


def _repeated(found: list[tuple[bytes, bytes]]) -> BadHead:
    names = [name for name, _ in found]
    twice = next(name for name in names if names.count(name) > 1)
    return BadHead("repeated", f"header {twice.decode()} is given more than once")
