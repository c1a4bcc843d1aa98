"""What was taken away, in a file beside the database: a restored copy does not know it, and learns it from here.

One JSON object a line, the first names the node. A line is on the disk before its transaction is committed; one that
was cut off at the end, by a kill or a full disk, belongs to a transaction that nobody heard of. It holds no secret.
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

FORMAT: Final = 1


class RevocationLogError(RuntimeError):
    """The file is of another node or damaged; the text says what to do."""


class Revocation(msgspec.Struct, frozen=True, kw_only=True):
    """Something of the node's that changed: what, of which row, to which value. `seq` counts up without end."""

    seq: int
    at_us: int
    what: str
    id: str
    value: int | str | None = None


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    format: int


class RevocationLog:
    """One for the node; `open` reads it, then one thread at a time appends to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last_seq = 0
        self._file = -1

    def open(self, node: str) -> list[Revocation]:
        """All lines, the oldest first; makes the file if there is none. Raises RevocationLogError."""
        content = self.path.read_bytes() if self.path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        found = self._read(whole, node)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if len(whole) < len(content):
            os.ftruncate(self._file, len(whole))
        if not whole:
            self._append(msgspec.json.encode(_Head(node=node, format=FORMAT)) + b"\n")
            _sync(self.path.parent)
        self.last_seq = found[-1].seq if found else 0
        return found

    def append(self, revocations: Sequence[Revocation]) -> None:
        """Write them down for good. Raises OSError, and then none of them is there."""
        self._append(b"".join(msgspec.json.encode(each) + b"\n" for each in revocations))
        self.last_seq = revocations[-1].seq

    def keep(self, node: str, revocations: Sequence[Revocation]) -> None:
        """Only these stay: the file is written anew and takes the place of the old one."""
        partial = self.path.with_name(f"{self.path.name}.partial")
        partial.unlink(missing_ok=True)
        new = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.close(self._file)
        self._file = new
        head = msgspec.json.encode(_Head(node=node, format=FORMAT)) + b"\n"
        self._append(head + b"".join(msgspec.json.encode(each) + b"\n" for each in revocations))
        partial.rename(self.path)
        _sync(self.path.parent)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _read(self, whole: bytes, node: str) -> list[Revocation]:
        lines = whole.splitlines()
        if not lines:
            return []
        head = self._decoded(lines[0], 1, _Head)
        if head.node != node:
            raise RevocationLogError(
                f"{self.path} is the revocation log of another node ({head.node}); put back the one of {node}, or move"
                " this one away if there is none"
            )
        if head.format != FORMAT:
            raise RevocationLogError(
                f"{self.path} was written by another version of gwd; install that version"
            )
        return [
            self._decoded(line, number, Revocation)
            for number, line in enumerate(lines[1:], start=2)
        ]

    def _decoded(self, line: bytes, number: int, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(line, type=kind)
        except msgspec.DecodeError as error:
            raise RevocationLogError(
                f"line {number} of {self.path} is damaged ({error}); remove it, and revoke again what it may have said:"
                " the audit trail has it"
            ) from None

    def _append(self, data: bytes) -> None:
        length = os.fstat(self._file).st_size
        try:
            if os.write(self._file, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, length)
            raise


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
