"""The vendor's prompt cache: prefixes seen before are read, marked ones are written.

A prefix below `minimum` tokens is never cached. With marks (Messages) the longest known marked prefix is read and
what follows up to the last mark is written; without (OpenAI formats) the known prefix counts as cached in steps of 128.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal

import msgspec

_STEP = 128


class Piece(msgspec.Struct, frozen=True):
    """A part of the prompt in the vendor's order: what it is, its size, and the caller's cache mark on it."""

    key: str
    tokens: int
    mark: Literal["5m", "1h"] | None = None


class Cached(msgspec.Struct, frozen=True, kw_only=True):
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0


class PromptCache:
    def __init__(self, minimum: int) -> None:
        self._minimum = minimum
        self._known: set[bytes] = set()

    def look_up_marked(self, model: str, pieces: Sequence[Piece]) -> Cached:
        read = write_5m = write_1h = 0
        for digest, size, mark in self._prefixes(model, pieces):
            if mark is None:
                continue
            if digest in self._known:
                read, write_5m, write_1h = size, 0, 0
                continue
            self._known.add(digest)
            written = size - read - write_5m - write_1h
            if mark == "1h":
                write_1h += written
            else:
                write_5m += written
        return Cached(read=read, write_5m=write_5m, write_1h=write_1h)

    def look_up(self, model: str, pieces: Sequence[Piece]) -> Cached:
        read = 0
        for digest, size, _ in self._prefixes(model, pieces):
            if digest in self._known:
                read = size // _STEP * _STEP
            self._known.add(digest)
        return Cached(read=read)

    def _prefixes(
        self, model: str, pieces: Sequence[Piece]
    ) -> list[tuple[bytes, int, Literal["5m", "1h"] | None]]:
        """Digest, size and mark of every prefix that is long enough."""
        total = sum(piece.tokens for piece in pieces)
        if total < self._minimum:
            return []
        running = blake2b(model.encode(), digest_size=16)
        size = 0
        found = []
        for piece in pieces:
            running.update(piece.key.encode() + b"\0")
            size += piece.tokens
            if size >= self._minimum:
                found.append((running.digest(), size, piece.mark))
        return found
