"""`python -m tools.pages` writes every generated page; with --check it names those that are not fresh, and exits 1."""

import sys
from pathlib import Path

from tools.pages.every import pages

ROOT = Path(__file__).parents[2]


def stale() -> list[str]:
    """The pages that differ from what the code says, and man pages that nothing makes any more."""
    made = pages()
    wrong = [name for name, text in made.items() if _read(ROOT / name) != text]
    return wrong + [name for name in _man_pages() if name not in made]


def write() -> list[str]:
    """Write what is stale; the names of what changed."""
    made = pages()
    changed = stale()
    for name in changed:
        if name in made:
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_text(made[name], "utf-8")
        else:
            (ROOT / name).unlink()
    return changed


def _read(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


def _man_pages() -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/man").glob("*.1"))


def main() -> int:
    """The command."""
    if sys.argv[1:] == ["--check"]:
        wrong = stale()
        for name in wrong:
            print(f"{name} is not fresh: make docs")
        return 1 if wrong else 0
    for name in write():
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
