"""Clients that take their answers slowly: one that takes next to nothing is cut, whatever it is sent.

A connection is behind while its buffer is over the mark at which nothing more is written into it. Only that time
counts, and what was taken in it: of the buffer and of what the system keeps for the connection, since that gives the
buffer room in large steps only.
"""

import asyncio
import fcntl
import struct
import termios
from collections.abc import Callable
from typing import Any, Final

from gwd.core.counters import Counters

STALLED_S: Final = 30.0
WINDOW_S: Final = 60.0
BYTES_PER_S: Final = 1_024


class Reader:
    """A connection that is or was behind. `left` tells how many bytes it has still to take; `cut` ends it."""

    __slots__ = ("_behind_s", "_left", "_seen_s", "_still_s", "_taken", "cut", "left")

    def __init__(self, left: Callable[[], int], cut: Callable[[], None], now_s: float) -> None:
        self.left = left
        self.cut = cut
        self._left = left()
        self._seen_s = now_s
        self._behind_s = 0.0
        self._still_s = 0.0
        self._taken = 0

    def resume(self, now_s: float) -> None:
        """It is behind again; what was written meanwhile is to be taken too."""
        self._left, self._seen_s = self.left(), now_s

    def look(self, now_s: float) -> None:
        """Count what was taken since the last look, through which it was behind."""
        left, passed_s = self.left(), now_s - self._seen_s
        fresh = max(0, self._left - left)
        self._left, self._seen_s = left, now_s
        self._taken += fresh
        self._behind_s += passed_s
        self._still_s = 0.0 if fresh else self._still_s + passed_s

    def verdict(self) -> str | None:
        """Why it is cut, or None: then a full window begins anew."""
        if self._still_s >= STALLED_S:
            return "stalled_reader"
        if self._behind_s < WINDOW_S:
            return None
        if self._taken < self._behind_s * BYTES_PER_S:
            return "slow_reader"
        self._behind_s, self._taken = 0.0, 0
        return None


class Readers:
    """The readers of one listener that are behind, or were and have not caught up; used from the event loop only."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._behind: dict[object, Reader] = {}
        self._near: dict[object, Reader] = {}

    def fall_behind(
        self, connection: object, left: Callable[[], int], cut: Callable[[], None]
    ) -> None:
        """Nothing more is written to this connection until it has taken most of what it was sent."""
        now_s = asyncio.get_running_loop().time()
        reader = self._near.pop(connection, None)
        if reader is None:
            reader = Reader(left, cut, now_s)
        else:
            reader.resume(now_s)
        self._behind[connection] = reader

    def catch_up(self, connection: object) -> None:
        """It may be written to again; only when it has taken everything is its slowness forgotten."""
        reader = self._behind.pop(connection, None)
        if reader is not None:
            reader.look(asyncio.get_running_loop().time())
            self._near[connection] = reader

    def end(self, connection: object) -> None:
        """The connection is closed."""
        self._behind.pop(connection, None)
        self._near.pop(connection, None)

    async def sweep(self) -> None:
        """Once a second: cut those that take too little."""
        for connection, reader in list(self._near.items()):
            if not reader.left():
                del self._near[connection]
        now_s = asyncio.get_running_loop().time()
        for connection, reader in list(self._behind.items()):
            reader.look(now_s)
            reason = reader.verdict()
            if reason is not None:
                self.end(connection)
                self._counters.connections_cut[reason] += 1
                reader.cut()


def bytes_left(transport: Any) -> int:
    """What a connection has not taken: the buffer, and what the system has sent or will send without being told."""
    if transport is None or transport.is_closing():
        return 0
    waiting: int = transport.get_write_buffer_size()
    socket = transport.get_extra_info("socket")
    try:
        [queued] = struct.unpack("i", fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, b"\0" * 4))
    except (OSError, AttributeError, ValueError):
        return waiting
    return waiting + int(queued)
