"""The client's side of a streamed answer: chunks into its connection."""

import asyncio

from sanic import HTTPResponse


class Stream:
    """Writes one answer.

    While the connection takes what it is given, frames go into it from the generation's own task (`try_write`): waking
    the handler for each of them would cost as much as all the rest.
    """

    def __init__(self, transport: asyncio.Transport, response: HTTPResponse) -> None:
        self._response = response
        self._transport = transport
        self._sending = False

    async def send(self, frames: bytes) -> None:
        """Write, and wait while the client is behind."""
        self._sending = True
        await self._response.send(frames)
        self._sending = False

    def try_write(self, frames: bytes) -> bool:
        """Write as the next chunk of a body that `send` has begun; False if anything is still to go before it."""
        transport = self._transport
        if self._sending or transport.is_closing() or transport.get_write_buffer_size():
            return False
        transport.write(b"%x\r\n%b\r\n" % (len(frames), frames))
        return True
