"""Books recomputed by a process of their own, at low priority: nobody who is served waits for it."""

import asyncio
import sys
from typing import Final

import msgspec

from gwd.ledger.audit import Verification
from gwd.proof.head import Head

LONGEST_S: Final = 6 * 3_600.0

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Verification)


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """Which books, of which file: one organization's, or all. `head` is one that this node signed."""

    path: str
    organization_id: str | None = None
    head: Head | None = None


class Prover:
    """One for a database: one proof at a time, whoever asks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._turn = asyncio.Lock()

    async def verify(
        self, organization_id: str | None = None, *, head: Head | None = None
    ) -> Verification:
        """What `proof.verify` finds. Raises RuntimeError when it does not get to its end."""
        books = Books(path=self._path, organization_id=organization_id, head=head)
        async with self._turn:
            return await _verified(books)


async def _verified(books: Books) -> Verification:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gwd.proof"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LONGEST_S):
            out, complaint = await process.communicate(_encoder.encode(books))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"the ledger could not be verified: {complaint.decode()[-1_000:]}")
    return _decoder.decode(out)
