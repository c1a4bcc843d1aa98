"""`gwd backup --follow DIR`: a continuous copy of a node's database and of its revocation log, until it is stopped."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gwd.backups import directory
from gwd.backups.copying import BackupError, sync_file
from gwd.backups.following import Follower
from gwd.backups.making import node_of
from gwd.settings import Settings
from gwd.store.connection import require

LOOK_S: Final = 1.0
LOSS_S: Final = 10.0
"""What is promised at most; a look that comes later than this after the one before is said."""
MARK: Final = "gwd.follow"


def follow(settings: Settings, place: Path, say: Callable[[str], None]) -> None:
    """Follow until SIGTERM or SIGINT. Raises BackupError for a directory that holds something else."""
    place = place.absolute()
    require(settings.database)
    ending: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: ending.append(got))
    _take(settings, place)
    with directory.alone(place):
        follower = Follower(settings.database, place)
        try:
            follower.begin()
            say(_begun(follower, settings, place))
            _until(ending, follower, settings, place, say)
        finally:
            follower.close()


def _until(
    ending: list[int],
    follower: Follower,
    settings: Settings,
    place: Path,
    say: Callable[[str], None],
) -> None:
    """A look a second, and one at the end."""
    log, seen = -1, time.monotonic()
    bases = follower.bases
    while True:
        is_last = bool(ending)
        follower.look()
        log = _copy_log(settings.revocations, place, log)
        os.utime(place / MARK)
        gap_s, seen = time.monotonic() - seen, time.monotonic()
        if gap_s > LOSS_S:
            say(f"behind: {gap_s:.0f} s between two looks")
        if follower.bases > bases:
            bases = follower.bases
            say(_begun(follower, settings, place))
        if is_last:
            return
        time.sleep(LOOK_S)


def _begun(follower: Follower, settings: Settings, place: Path) -> str:
    how = "with a new copy" if follower.bases else "where it ended"
    return f"{place} follows {settings.database}, {how}"


def _take(settings: Settings, place: Path) -> None:
    """The directory is this node's, or nobody's yet."""
    if not place.is_dir():
        raise BackupError(f"{place} is no directory; make it, or name another")
    if place.resolve() == settings.database.parent.resolve():
        raise BackupError(
            f"{place} is the node's own directory; name another, best on another disk"
        )
    node, mark = node_of(settings.database), place / MARK
    if mark.exists():
        if mark.read_text().strip() != node:
            raise BackupError(f"{place} follows another node; name another directory")
        return
    if (place / settings.database.name).exists():
        raise BackupError(
            f"{place} holds a {settings.database.name} that is no continuous copy; name another directory"
        )
    partial = place / f"{MARK}.partial"
    partial.write_text(f"{node}\n")
    sync_file(partial)
    partial.rename(mark)


def _copy_log(log: Path, place: Path, known: int) -> int:
    """The revocation log goes along, whole, where it has changed; its length."""
    length = log.stat().st_size if log.exists() else -1
    if length == known:
        return known
    if length >= 0:
        partial = place / f"{log.name}.partial"
        shutil.copyfile(log, partial)
        partial.chmod(0o600)
        sync_file(partial)
        partial.rename(place / log.name)
    return length
