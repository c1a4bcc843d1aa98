"""The client's side of a streamed answer: chunks into its connection, and an end for a client that takes none."""

import asyncio
from typing import Final

from sanic import HTTPResponse

SEND_STALL_S: Final = 60.0


class Stream:
    """Writes one answer.

    While the connection takes what it is given, frames go into it from the generation's own task (`pour`): waking the
    handler for each of them would cost as much as all the rest. A client that takes nothing of what it is sent is cut
    off; one timer, nothing to do per frame.
    """

    def __init__(self, transport: asyncio.Transport, response: HTTPResponse) -> None:
        self._response = response
        self._transport = transport
        self._sending = False
        self._sent = 0
        self._seen = -1
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(SEND_STALL_S, self._look)

    async def send(self, frames: bytes) -> None:
        """Write, and wait while the client is behind."""
        self._sending = True
        await self._response.send(frames)
        self._sending = False
        self._sent += 1

    def pour(self, frames: bytes) -> bool:
        """Write as the next chunk of a body that `send` has begun; False if anything is still to go before it."""
        transport = self._transport
        if self._sending or transport.is_closing() or transport.get_write_buffer_size():
            return False
        transport.write(b"%x\r\n%b\r\n" % (len(frames), frames))
        return True

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        if self._sending and self._sent == self._seen:
            # Not `close`: that would wait for what the client does not take.
            self._transport.abort()
            return
        self._seen = self._sent
        self._timer = self._loop.call_later(SEND_STALL_S, self._look)
