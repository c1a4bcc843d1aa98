"""Pieces of Markdown that several pages need."""

from collections.abc import Iterable, Sequence

MADE = "<!-- Made by `make docs` from the code; changes belong there. -->"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar inside a cell is escaped, also inside code, as the dialect of code hosts wants it."""
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def page(title: str, *parts: str) -> str:
    """A whole page."""
    return "\n\n".join([MADE, f"# {title}", *(part.strip("\n") for part in parts)]) + "\n"
