"""Folders that are made once and copied for every test: making a node costs more than most tests do."""

import shutil
import tempfile
from collections.abc import Hashable
from pathlib import Path
from typing import Any

_kept: dict[Hashable, tuple[Path, Any]] = {}
_place: list[Path] = []


def keep_in(place: Path) -> None:
    """Where the folders lie. Outside a run of tests there is no such place, and nothing is kept."""
    _place[:] = [place]
    _kept.clear()


def room() -> Path | None:
    """A place to make one in; None where nothing is kept."""
    return Path(tempfile.mkdtemp(dir=_place[0])) if _place else None


def keep(name: Hashable, folder: Path, value: Any) -> None:
    """The folder is finished: nobody writes to it any more. `value` is what one has to know about it."""
    _kept[name] = folder, value


def is_kept(name: Hashable) -> bool:
    return name in _kept


def copy(name: Hashable, target: Path) -> Any:
    """Copy what the folder holds to `target`; what one has to know about it."""
    folder, value = _kept[name]
    unused = shutil.ignore_patterns("*.lock")
    shutil.copytree(folder, target, ignore=unused, dirs_exist_ok=True)
    return value
