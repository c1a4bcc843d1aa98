"""The case files of a folder, in the order of their numbers."""

from collections.abc import Iterable
from pathlib import Path

from .assertions import load_json
from .stream import Json

FOLDERS = tuple(Path(__file__).resolve().parents[1] / name for name in ("open", "ours"))


def load_cases(folders: Iterable[Path] | None = None) -> list[Json]:
    """Every case of the folders; default: those of the project."""
    files = [
        file
        for folder in (FOLDERS if folders is None else folders)
        for file in sorted(folder.glob("[0-9]*.json"))
    ]
    return [load_json(file.read_text("utf-8")) for file in files]
