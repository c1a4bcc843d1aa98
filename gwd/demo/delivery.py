"""Puts an answer on the connection: paced, cut, dripped or stalled as the behaviour says."""

import asyncio
import socket
import struct
from collections.abc import Iterable, Mapping
from typing import NoReturn, cast

import msgspec
from sanic import Request
from sanic.response import HTTPResponse

from gwd.demo.behaviour import BEFORE_HEADERS, Behaviour
from gwd.demo.frames import Frame, to_bytes

_FLUSH_BYTES = 32 * 1024
_READ_BEFORE_RESET_S = 0.05


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Status line and headers of an answer."""

    status: int
    content_type: str
    headers: dict[str, str]


class CutOffError(Exception):
    """The vendor itself ended the answer early. `closed`: the connection is going down with it."""

    def __init__(self, *, closed: bool) -> None:
        super().__init__("cut off")
        self.closed = closed


async def send_stream(
    request: Request,
    head: Head,
    frames: Iterable[Frame],
    behaviour: Behaviour,
    *,
    tokens_per_second: float,
) -> None:
    out = await _opened(request, head, behaviour, length=None)
    if behaviour.first_event_delay_s:
        await out.pause(behaviour.first_event_delay_s)
    number = 0
    for frame in frames:
        await out.before_event(number)
        number += 1
        if number > 1 and behaviour.event_delay_s:
            await out.pause(behaviour.event_delay_s)
        if frame.tokens and tokens_per_second:
            await out.pause(frame.tokens / tokens_per_second)
        await out.write(to_bytes(frame, behaviour, number=number))
    await out.before_event(number)
    await out.end()


async def send_whole(request: Request, head: Head, body: bytes, behaviour: Behaviour) -> None:
    """A body with its length. A cut or a stall after any event falls into the middle of it."""
    out = await _opened(request, head, behaviour, length=len(body))
    if behaviour.first_event_delay_s:
        await out.pause(behaviour.first_event_delay_s)
    middle = len(body) // 2
    await out.before_event(0)
    await out.write(body[:middle])
    if (behaviour.cut and behaviour.cut_after > 0) or (behaviour.stall_after or 0) > 0:
        await out.break_now()
    await out.write(body[middle:])
    await out.end()


async def _opened(
    request: Request, head: Head, behaviour: Behaviour, *, length: int | None
) -> "_Out":
    if behaviour.delay_s:
        await asyncio.sleep(behaviour.delay_s)
    out = _Out(request, behaviour)
    await out.before_event(BEFORE_HEADERS)
    headers: Mapping[str, str] = head.headers
    if length is not None:
        headers = {**headers, "content-length": str(length)}
    out.response = await request.respond(
        status=head.status, headers=dict(headers), content_type=head.content_type
    )
    return out


class _Out:
    """The open answer. Bytes are gathered until something has to be waited for."""

    response: HTTPResponse

    def __init__(self, request: Request, behaviour: Behaviour) -> None:
        self._request = request
        self._behaviour = behaviour
        self._held = bytearray()
        self._head_is_out = False

    async def write(self, data: bytes) -> None:
        self._held += data
        if len(self._held) >= _FLUSH_BYTES or self._behaviour.write_bytes:
            await self.flush()

    async def pause(self, seconds: float) -> None:
        await self.flush()
        await asyncio.sleep(seconds)

    async def flush(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        if not self._head_is_out:
            # An empty chunk is not written, only the head is: the caller sees it before the first event.
            self._head_is_out = True
            await self.response.send(b"")
        size = self._behaviour.write_bytes or max(len(held), 1)
        for start in range(0, len(held), size):
            await self.response.send(held[start : start + size])
            if self._behaviour.write_bytes:
                await asyncio.sleep(self._behaviour.write_delay_s)

    async def before_event(self, sent: int) -> None:
        """Cut or stall here, if this many events were to be sent."""
        behaviour = self._behaviour
        if (behaviour.cut and behaviour.cut_after == sent) or behaviour.stall_after == sent:
            await self.break_now(before_headers=sent == BEFORE_HEADERS)

    async def break_now(self, *, before_headers: bool = False) -> NoReturn:
        if not before_headers:
            await self.flush()
        if not self._behaviour.cut:
            await asyncio.Event().wait()
        if self._behaviour.cut == "end" and not before_headers:
            await self.end()
            raise CutOffError(closed=False)
        await self._close_connection()
        raise CutOffError(closed=True)

    async def _close_connection(self) -> None:
        transport = cast(asyncio.Transport, self._request.transport)
        if self._behaviour.cut != "reset":
            transport.close()
            return
        # A reset may overtake what was written before it, so the reader gets a moment to take that.
        await asyncio.sleep(_READ_BEFORE_RESET_S)
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()

    async def end(self) -> None:
        await self.flush()
        await self.response.send(end_stream=True)
