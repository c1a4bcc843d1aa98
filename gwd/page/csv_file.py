"""Tables as CSV: quoted as RFC 4180 has it, and no cell begins as a formula would."""

import csv
import io
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from gwd.page.answer import Download

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\0")


def csv_file(name: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Download:
    """A file of rows; amounts are plain decimals, exact."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\r\n")
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return Download(
        name=name, content_type="text/csv; charset=utf-8", body=made.getvalue().encode()
    )


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return f"'{value}" if value.startswith(_FORMULA) else value
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)
