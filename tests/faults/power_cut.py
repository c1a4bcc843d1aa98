"""A disk that remembers in which order it was written and synced, and what a power cut at any moment leaves on it."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import apsw
import msgspec

Part = Literal["db", "wal"]
SECTOR_BYTES: Final = 512
_VFS_NAME: Final = "a-disk-that-remembers"


class Write(msgspec.Struct, frozen=True):
    """Bytes at a place of a file."""

    part: Part
    offset: int
    data: bytes


class Truncate(msgspec.Struct, frozen=True):
    part: Part
    size: int


class Sync(msgspec.Struct, frozen=True):
    """Whatever was written to the file before lies on the disk now."""

    part: Part


class Acknowledged(msgspec.Struct, frozen=True):
    """Somebody was told: this generation costs so much."""

    generation_id: str
    cost_nano: int


Event = Write | Truncate | Sync | Acknowledged


class RememberingDisk(apsw.VFS):
    """While registered it is the default. `events` is all that happened, in order, to a database and its log."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.before = apsw.vfs_names()[0]
        super().__init__(_VFS_NAME, self.before, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's word
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _File(self, "db", name, flags)
        if flags[0] & apsw.SQLITE_OPEN_WAL:
            return _File(self, "wal", name, flags)
        return apsw.VFSFile(self.before, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: RememberingDisk, part: Part, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._part: Part = part
        super().__init__(disk.before, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self._disk.events.append(Write(self._part, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        super().xTruncate(size)
        self._disk.events.append(Truncate(self._part, size))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._disk.events.append(Sync(self._part))


class Image(msgspec.Struct):
    """What a cut has left: the files, and what had been acknowledged before it."""

    event: int
    files: dict[Part, bytes]
    acknowledged: list[Acknowledged]

    def put(self, path: Path) -> None:
        """Lay the files out as a database that was just left."""
        path.write_bytes(self.files["db"])
        Path(f"{path}-wal").write_bytes(self.files["wal"])
        Path(f"{path}-shm").unlink(missing_ok=True)


def images(begun: bytes, events: list[Event], count: int, chance: random.Random) -> Iterator[Image]:
    """`count` cuts at random moments, in order, on a database file that began as `begun` without a log.

    What was synced lies on the disk. Of what was written since, each piece is there, absent, or torn between sectors.
    """
    synced: dict[Part, bytearray] = {"db": bytearray(begun), "wal": bytearray()}
    waiting: dict[Part, list[Write | Truncate]] = {"db": [], "wal": []}
    acknowledged: list[Acknowledged] = []
    at = 0
    for cut in sorted(chance.choices(range(len(events) + 1), k=count)):
        for event in events[at:cut]:
            match event:
                case Acknowledged():
                    acknowledged.append(event)
                case Sync(part):
                    for change in waiting[part]:
                        _apply(synced[part], change)
                    waiting[part].clear()
                case _:
                    waiting[event.part].append(event)
        at = cut
        yield Image(
            cut,
            {part: _left(bytes(synced[part]), waiting[part], chance) for part in synced},
            acknowledged.copy(),
        )


def _left(synced: bytes, waiting: list[Write | Truncate], chance: random.Random) -> bytes:
    left = bytearray(synced)
    for change in waiting:
        luck = chance.random()
        if luck < 0.4:
            _apply(left, change)
        elif luck < 0.7 and isinstance(change, Write):
            for offset in range(0, len(change.data), SECTOR_BYTES):
                if chance.random() < 0.5:
                    sector = change.data[offset : offset + SECTOR_BYTES]
                    _apply(left, Write(change.part, change.offset + offset, sector))
    return bytes(left)


def _apply(file: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Truncate):
        del file[change.size :]
        return
    gap = change.offset - len(file)
    if gap > 0:
        file.extend(bytes(gap))
    file[change.offset : change.offset + len(change.data)] = change.data
