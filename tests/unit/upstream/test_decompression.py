"""Packed answers: what comes out, and that bytes which hold nothing buy no time."""

import asyncio
import gzip
import zlib

import pytest

from gwd.upstream.base import UpstreamFault
from gwd.upstream.decompression import decompressed

EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"


class Dripping:
    """A reply that gives a piece every `gap_s` seconds, and the fault of its kind when it was not given the time."""

    def __init__(self, *pieces: bytes, gap_s: float = 0.0) -> None:
        self.status = 200
        self.headers = {"content-encoding": "gzip"}
        self._pieces = list(pieces)
        self._gap_s = gap_s

    async def read(self, timeout_s: float) -> bytes:
        await asyncio.sleep(min(self._gap_s, timeout_s))
        if timeout_s < self._gap_s:
            raise UpstreamFault("timeout", "the vendor stopped sending")
        return self._pieces.pop(0) if self._pieces else b""

    async def read_all(self, timeout_s: float) -> bytes:
        return b"".join(self._pieces)

    def close(self) -> None:
        """Nothing is held."""


async def test_pieces_come_out_as_they_went_in() -> None:
    compressed = gzip.compress(b"one two three")
    reply = decompressed(Dripping(*(bytes((byte,)) for byte in compressed)))
    said = b""
    while data := await reply.read(1.0):
        said += data
    assert said == b"one two three"


@pytest.mark.alone
async def test_bytes_that_hold_nothing_buy_no_time() -> None:
    packing = zlib.compressobj(wbits=31)
    began = packing.compress(b"one") + packing.flush(zlib.Z_SYNC_FLUSH)
    reply = decompressed(Dripping(began, *[EMPTY_BLOCK] * 100, gap_s=0.04))
    assert await reply.read(0.1) == b"one"
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(UpstreamFault, match="stopped sending"):
        await reply.read(0.1)
    assert asyncio.get_running_loop().time() - began_s < 0.3
