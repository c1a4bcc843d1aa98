"""Tables that fit a terminal: what matters is never cut, what does not fit is left out whole and counted.

Widths are counted in cells, as terminals draw: a Chinese character or an emoji takes two, a combining mark none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gwctl.tables import GAP, Column, Record, cell, style

SHORTEST = 12
"""What an id or a text may be cut to before a column is left out."""
_CUT = {"id", "text", "note"}
_CODES = {"green": "\x1b[32m", "red": "\x1b[31m", "yellow": "\x1b[33m"}
_EMPTY = ("", "-")


@dataclass(frozen=True)
class Drawing:
    """The lines of a table, and how many of its columns did not fit."""

    text: str
    left_out: int


@dataclass
class _Drawn:
    """A column with its cells."""

    column: Column
    cells: list[str]
    place: int
    width: int = 0

    @property
    def least(self) -> int:
        """How narrow it may get: numbers, money, times, states and the name one types next keep their width."""
        natural = self.natural
        if self.column.kind not in _CUT or self.column.name or not self.column.cut:
            return natural
        numbers = [cells(value) for value in self.cells if value.replace(",", "").isdigit()]
        return min(natural, max([SHORTEST, cells(self.column.title), *numbers]))

    @property
    def natural(self) -> int:
        return max(cells(value) for value in (self.column.title, *self.cells))

    @property
    def is_empty(self) -> bool:
        return all(value in _EMPTY for value in self.cells)


def cells(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fitted(text: str, width: int) -> str:
    """The text in exactly that many cells, with `…` where something was cut."""
    wide = cells(text)
    if wide <= width:
        return text + " " * (width - wide)
    kept = ""
    for character in text:
        if cells(kept + character) > width - 1:
            break
        kept += character
    return kept + "…" + " " * (width - 1 - cells(kept))


def drawn(
    records: Sequence[Record],
    columns: Sequence[Column],
    *,
    now: datetime,
    width: int | None,
    color: bool,
) -> Drawing:
    """The table for a terminal of that width; without one at its full width."""
    table = [
        _Drawn(column, [cell(column.value(record), column.kind, now) for record in records], place)
        for place, column in enumerate(columns)
    ]
    shown = _chosen(table, width)
    _widen(shown, width)
    lines = [_line([(one, one.column.title) for one in shown], bold=color)]
    for row in range(len(records)):
        lines.append(_line([(one, one.cells[row]) for one in shown], color=color))
    return Drawing("".join(f"{line}\n" for line in lines), len(table) - len(shown))


def _chosen(table: list[_Drawn], width: int | None) -> list[_Drawn]:
    """The columns that fit at their least width: those without any value go first, then the least important."""
    shown = list(table)
    while width is not None and sum(one.least + GAP for one in shown) - GAP > width:
        spare = [one for one in shown if not one.column.name]
        if not spare or len(shown) == 1:
            break
        shown.remove(max(spare, key=lambda one: (one.is_empty, one.column.leaves, one.place)))
    return shown


def _widen(shown: list[_Drawn], width: int | None) -> None:
    """Give each column its full width, or what is left of it after the others have their least."""
    room = None if width is None else width - sum(one.least + GAP for one in shown) + GAP
    for one in shown:
        more = one.natural - one.least
        one.width = one.least + (more if room is None else max(0, min(more, room)))
        if room is not None:
            room -= one.width - one.least


def _line(parts: list[tuple[_Drawn, str]], *, bold: bool = False, color: bool = False) -> str:
    pieces = []
    for place, (one, value) in enumerate(parts):
        text = fitted(value, one.width)
        if place == len(parts) - 1:
            text = text.rstrip()
        code = _CODES.get(style(value, one.column.kind), "") if color else ""
        code = "\x1b[1m" if bold else code
        bare = text.rstrip()
        pieces.append(f"{code}{bare}\x1b[0m{text[len(bare) :]}" if code and bare else text)
    return (" " * GAP).join(pieces).rstrip()
