"""A disk under SQLite that a test can fill or break: the system's files with a hand on every write and sync."""

import threading
from typing import Any

import apsw

MAIN_NAME = "a-disk-of-the-test"


class Disk(apsw.VFS):
    """While registered it is the default. `free` is by how many bytes files may still grow, None for any."""

    def __init__(self) -> None:
        self.free: int | None = None
        self.broken = False
        self.writes = 0
        self._lock = threading.Lock()
        self._before = apsw.vfs_names()[0]
        super().__init__(MAIN_NAME, self._before, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> "_File":  # noqa: N802 - SQLite's word
        return _File(self, name, flags)

    def take(self, growth: int) -> None:
        """Before a write that makes a file longer by so much."""
        with self._lock:
            self.writes += 1
            if self.broken:
                raise apsw.IOError("the test broke the disk")
            if self.free is not None:
                if growth > self.free:
                    raise apsw.FullError("the test filled the disk")
                self.free -= growth

    def sync(self) -> None:
        if self.broken:
            raise apsw.IOError("the test broke the disk")

    def remove(self) -> None:
        self.unregister()


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__(disk._before, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._disk.take(max(0, offset + len(data) - self.xFileSize()))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.sync()
        super().xSync(flags)
