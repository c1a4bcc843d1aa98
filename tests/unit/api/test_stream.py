"""The short cut of streamed frames into the connection, against a connection that says exactly when it is full."""

import asyncio
from typing import Any, cast

from sanic import HTTPResponse

from gwd.api.stream import Stream


class Connection:
    """Stands for the transport and, as `send`, for the framework's way to it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.buffered = 0
        self.closing = False
        self.taken = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return self.buffered

    async def send(self, frames: bytes) -> None:
        await self.taken.wait()
        self.written.append(frames)


async def test_frames_go_straight_in_only_while_nothing_waits_before_them() -> None:
    connection = Connection()
    anything = cast("Any", connection)
    stream = Stream(anything, cast("HTTPResponse", anything))
    sending = asyncio.create_task(stream.send(b"first"))
    await asyncio.sleep(0)
    assert not stream.try_write(b"second")  # the first is still in the handler's hands
    connection.taken.set()
    await sending
    assert stream.try_write(b"second")
    assert connection.written == [b"first", b"6\r\nsecond\r\n"]
    connection.buffered = 1
    assert not stream.try_write(b"third")
    connection.buffered = 0
    connection.closing = True
    assert not stream.try_write(b"third")
