"""Comma separated values (RFC 4180) that a spreadsheet shows and never runs."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO

from gwctl import text
from gwctl.tables import Record, exact

# What a spreadsheet takes for the beginning of a formula, the wide forms of East Asian keyboards included.
_FORMULA = tuple("=+-@\t\r＝＋－＠")


def lines(rows: Iterable[Record], names: Sequence[str]) -> str:
    """One line per record, its fields in that order; amounts are exact, and a text that begins a formula gets an '."""
    return _written([_safe(exact(row.get(name), "text")) for name in names] for row in rows)


def title(names: Sequence[str]) -> str:
    """The first line."""
    return _written([names])


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) and text.decimal(cell) is None else cell


def _written(cells: Iterable[Sequence[str]]) -> str:
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerows(cells)
    return out.getvalue()
