"""Packed answers: never asked for, but a proxy on the way may pack all the same.

They are unpacked in bounded steps as they arrive. A few packed bytes may hold gigabytes: an answer that grows beyond
what text can is broken off long before it is unpacked.
"""

import asyncio
import zlib
from typing import Final

from gwd.upstream.base import MAX_BODY_BYTES, UpstreamFault, UpstreamReply

MAX_GROWTH: Final = 100
FREE_BYTES: Final = 1024 * 1024
"""So much may come out whatever went in."""

_STEP_BYTES: Final = 256 * 1024
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, as the bytes say


def decompressed(reply: UpstreamReply) -> UpstreamReply:
    """The reply itself, or one that unpacks it. Raises UpstreamFault for a packing nobody asked for or knows."""
    encoding = reply.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return reply
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _DecompressedReply(reply)
    raise UpstreamFault("upstream_error", "the vendor's answer is packed in an unknown way")


class _DecompressedReply:
    """The reply whose bytes come out unpacked."""

    def __init__(self, reply: UpstreamReply) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self._reply = reply
        self._stream = zlib.decompressobj(_ANY_HEADER)
        self._rest = b""
        self._taken = 0
        self._given = 0

    async def read(self, timeout_s: float) -> bytes:
        # Packing has bytes that say nothing: a sender of only those is as silent as one that sends none.
        now_s = asyncio.get_running_loop().time
        deadline_s = now_s() + timeout_s
        while data := self._rest or await self._reply.read(max(0.0, deadline_s - now_s())):
            if fresh := self._step(data):
                return fresh
        self._check_end()
        return b""

    async def read_all(self, timeout_s: float) -> bytes:
        now_s = asyncio.get_running_loop().time
        deadline_s = now_s() + timeout_s
        pieces = []
        while data := await self.read(max(0.0, deadline_s - now_s())):
            pieces.append(data)
            await asyncio.sleep(0)  # one read of the network may hold hundreds of steps
        return b"".join(pieces)

    def close(self) -> None:
        self._reply.close()

    def _step(self, data: bytes) -> bytes:
        """The next bytes that `data` holds; what is left of it waits in `_rest`."""
        if self._stream.eof:
            self._rest = b""
            return b""
        if data is not self._rest:
            self._taken += len(data)
        try:
            fresh = self._stream.decompress(data, _STEP_BYTES)
        except zlib.error:
            raise UpstreamFault(
                "upstream_error", "the vendor's answer cannot be unpacked"
            ) from None
        self._rest = self._stream.unconsumed_tail
        self._given += len(fresh)
        if self._given > min(MAX_BODY_BYTES, FREE_BYTES + MAX_GROWTH * self._taken):
            raise UpstreamFault("upstream_error", "the vendor's answer is too large")
        return fresh

    def _check_end(self) -> None:
        if self._taken and not self._stream.eof:
            raise UpstreamFault("upstream_error", "the vendor's packed answer broke off")
