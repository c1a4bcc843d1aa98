"""Memory in use, watched: where it comes near what the node may use, what can be given back is, and the log says so."""

import asyncio
import ctypes
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from gwd.core.vitals import Vitals

MEMORY_WATCH_S: Final = 0.25
GIVE_BACK_S: Final = 5.0
VERY_MUCH_MEMORY: Final = 0.95  # above it connections on which nothing is asked are closed as well
MIB: Final = 1024**2
_PROCESS: Final = Path("/proc/self")
_GROUPS: Final = Path("/sys/fs/cgroup")

log = logging.getLogger(__name__)


def resident_bytes() -> int:
    """What of this process is in memory; 0 where the system does not tell."""
    try:
        pages = (_PROCESS / "statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def allowed_bytes() -> int:
    """What this process may use: the least limit of its control groups, else the machine's memory."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *_limits_of_groups()])


def _limits_of_groups() -> list[int]:
    """Of each group that holds this process, in both forms that the kernel has."""
    try:
        lines = (_PROCESS / "cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, kinds, place = line.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        top = _GROUPS / kinds
        name = "memory.limit_in_bytes" if kinds else "memory.max"
        group = top / place.lstrip("/")
        for folder in (group, *group.parents):
            if not folder.is_relative_to(top):
                break
            with suppress(OSError, ValueError):  # no such file, or the word max
                found.append(int((folder / name).read_text()))
    return found


class MemoryWatch:
    """One for the node. `close_idle` ends the connections on which nothing is asked."""

    def __init__(self, vitals: Vitals, close_idle: Callable[[], None]) -> None:
        self._vitals = vitals
        self._close_idle = close_idle
        self._given_back_s: float | None = None

    async def watch(self) -> None:
        """Look, and give back what the allocator keeps while it is too much."""
        memory, most_bytes = self._vitals.memory, self._vitals.memory_max_bytes
        now_s = asyncio.get_running_loop().time()
        used = resident_bytes()
        if memory.note(used / most_bytes, now_s):
            self._tell(used // MIB, most_bytes // MIB)
        if not memory.is_high:
            return
        if memory.value > VERY_MUCH_MEMORY:
            self._close_idle()
        if self._given_back_s is None or now_s - self._given_back_s >= GIVE_BACK_S:
            self._given_back_s = now_s
            await asyncio.to_thread(_give_back)

    def _tell(self, used_mib: int, most_mib: int) -> None:
        if self._vitals.memory.is_high:
            log.error("%d of %d MiB are in use: new inference is refused", used_mib, most_mib)
        else:
            log.warning("%d of %d MiB are in use: inference is served", used_mib, most_mib)


def _give_back() -> None:
    """The C library keeps freed memory for itself; left alone, a node that is idle again would go on refusing."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
