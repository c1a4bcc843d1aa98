"""Free disk space, watched: warnings in the log when it gets low, and the reserve that is deleted when it is full."""

import asyncio
import logging
import os
from pathlib import Path
from typing import Final

from gwd.core.vitals import LITTLE_BYTES, TOO_LITTLE_BYTES, Vitals
from gwd.store.ballast import Ballast

WATCH_S: Final = 1.0
MIB: Final = 1024**2

log = logging.getLogger(__name__)


def free_bytes(directory: Path) -> int:
    """What this process may still use of the file system; the kernel answers from memory."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


class DiskWatch:
    """One for the node."""

    def __init__(self, directory: Path, vitals: Vitals, ballast: Ballast) -> None:
        self._directory = directory
        self._vitals = vitals
        self._ballast = ballast
        self._last_state = ""

    def look(self) -> None:
        """Take note of what is free; each change for the worse or better is one line of the log."""
        free = free_bytes(self._directory)
        self._vitals.disk_free_bytes = free
        state = "full" if free < TOO_LITTLE_BYTES else "low" if free < LITTLE_BYTES else ""
        if state == self._last_state:
            return
        self._last_state = state
        match state:
            case "full":
                log.critical(
                    "%d MiB are free in %s: new requests are refused until there are %d MiB; free space",
                    *(free // MIB, self._directory, TOO_LITTLE_BYTES // MIB),
                )
            case "low":
                log.error(
                    "%d MiB are free in %s; below %d MiB new requests are refused; free space",
                    *(free // MIB, self._directory, TOO_LITTLE_BYTES // MIB),
                )
            case _:
                log.warning("the disk has room again: %d MiB are free", free // MIB)

    @property
    def is_ample(self) -> bool:
        """Whether there was room to spare at the last look."""
        return self._vitals.disk_free_bytes >= LITTLE_BYTES

    async def watch(self) -> None:
        """Look, and keep the reserve where there is ample room."""
        self.look()
        if self.is_ample and not self._ballast.is_there:
            await asyncio.to_thread(self._ballast.make)
