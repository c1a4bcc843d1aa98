"""Reserved disk space: a file that is deleted on a full disk, so that requests under way can be settled."""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

SIZE_BYTES: Final = 64 * 1024**2

log = logging.getLogger(__name__)


class Ballast:
    """`make` runs where there is ample room, `drop` on the writer's thread when there is none."""

    def __init__(self, path: Path, size_bytes: int = SIZE_BYTES) -> None:
        self._path = path
        self._size_bytes = size_bytes
        self.is_there = False

    def make(self) -> None:
        """Allocate the space: deleting a sparse file would free nothing."""
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size_bytes)
            finally:
                os.close(descriptor)
        except OSError as error:
            log.warning("%s cannot be reserved: %s", self._path, error)
            self._remove()
        self.is_there = (
            True  # tried is enough: a file system without reservations is not asked every second
        )

    def drop(self) -> bool:
        """Give the space back; False when there is none to give."""
        had, self.is_there = self.is_there and self._path.exists(), False
        if had:
            self._remove()
            log.error("the disk is full: %s was given up to settle what is under way", self._path)
        return had

    def close(self) -> None:
        """A stopped node needs no reserve."""
        self.is_there = False
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            self._path.unlink()
