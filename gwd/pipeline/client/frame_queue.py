"""The pipe between a generation's task and the handler that writes to the client: one writer, one reader."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

HIGH_WATER_BYTES: Final = 1024 * 1024
PIECE_BYTES: Final = 256 * 1024
"""What is handed over at once: a connection's buffer takes no more, and copying more would hold others up."""


class FrameQueue:
    """Frames in order. The writer waits only when the client is far behind; after `abandon` its frames are dropped.

    `try_write` is the reader's short cut: it takes frames at once, on the writer's time, or says no. Frames that it did
    not take, and all that follow until they are gone, come out of `next`.
    """

    __slots__ = ("_abandoned", "_closed", "_frames", "_reader", "_room", "_size", "try_write")

    def __init__(self) -> None:
        self.try_write: Callable[[bytes], bool] | None = None
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._closed = False
        self._abandoned = False
        self._reader: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    def push(self, frames: bytes) -> None:
        """Hand frames over without waiting."""
        if self._abandoned or not frames:
            return
        size = len(frames)
        if size > PIECE_BYTES:
            pieces = range(0, size, PIECE_BYTES)
            self._frames += (frames[start : start + PIECE_BYTES] for start in pieces)
        elif self.try_write is not None and not self._frames and self.try_write(frames):
            return
        else:
            self._frames.append(frames)
        self._size += size
        _wake(self._reader)

    @property
    def has_room(self) -> bool:
        """Whether the client is near enough for more."""
        return self._size <= HIGH_WATER_BYTES or self._abandoned

    async def room(self) -> None:
        """Wait until the client has caught up, or has left. `gwd.api.readers` cuts one that reads too slowly."""
        while not self.has_room:
            self._room = asyncio.get_running_loop().create_future()
            try:
                await self._room
            finally:
                self._room = None

    def close(self) -> None:
        """Nothing more comes."""
        self._closed = True
        _wake(self._reader)

    @property
    def empty(self) -> bool:
        """Nothing is left to read, and nothing comes."""
        return self._abandoned or (self._closed and not self._frames)

    def abandon(self) -> None:
        """Nobody reads any more."""
        self._abandoned = True
        self._frames.clear()
        self._size = 0
        _wake(self._room)

    async def next(self) -> bytes | None:
        """The next frames, joined as far as they are small; None after the last."""
        while not self._frames:
            if self._closed:
                return None
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        taken = [self._frames.popleft()]
        size = len(taken[0])
        while self._frames and size + len(self._frames[0]) <= PIECE_BYTES:
            taken.append(self._frames.popleft())
            size += len(taken[-1])
        self._size -= size
        if self.has_room:
            _wake(self._room)
        return taken[0] if len(taken) == 1 else b"".join(taken)


def _wake(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
