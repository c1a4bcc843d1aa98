"""Reads a vendor's export line by line into sums by day and model; memory does not grow with the file."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

from gwctl.errors import USAGE, CommandError, usage
from gwctl.files import text_of
from gwctl.vendor_forms import CLASSES, FORMS, Cells, Form, Line, OddCellError

_CODE = "vendor_export"
_HEAD = 4_096
_LINES_ABOVE = 20  # a title may stand above the columns
_MOST_NAMES = 20
_CENT = Decimal("0.01")
_UNIT = re.compile(r"(.*?)\s*\(([^()]*)\)\s*")


@dataclass
class Counted:
    """What lines come to. `requests`, `tokens` and `cost` are None as long as no line says them."""

    lines: int = 0
    requests: int | None = None
    tokens: list[int] | None = None
    cost: Decimal | None = None
    has_uncounted: bool = False
    """Whether it holds what has a cost and no count of tokens."""

    def add(self, line: Line) -> None:
        self.lines += line.cost is not None
        self.has_uncounted |= bool(line.cost) and line.tokens is None
        if line.requests is not None:
            self.requests = (self.requests or 0) + line.requests
        if line.tokens is not None:
            before = self.tokens or [0] * len(CLASSES)
            self.tokens = [one + more for one, more in zip(before, line.tokens, strict=True)]
        if line.cost is not None:
            self.cost = (self.cost or Decimal(0)) + line.cost


@dataclass
class Export:
    """A file that was read. `models`, `tools` and `others` are by day and name; `others` are of foreign keys."""

    path: Path
    form: Form
    models: dict[tuple[date, str], Counted] = field(default_factory=dict)
    tools: dict[tuple[date, str], Counted] = field(default_factory=dict)
    others: dict[tuple[date, str], Counted] = field(default_factory=dict)
    holders: list[str] = field(default_factory=list)
    first: date | None = None
    last: date | None = None
    decimals: int = 0
    names_no_model: bool = False
    says_holders: bool = False
    says_projects: bool = False

    @property
    def has_tokens(self) -> bool:
        return any(each.tokens is not None for each in self.models.values())

    @property
    def has_cost(self) -> bool:
        kept = (*self.models.values(), *self.tools.values())
        return any(each.cost is not None for each in kept)

    @property
    def rounding(self) -> Decimal:
        """How far the amount of a line may lie from what it is of: half of its last digit, and of a cent at most."""
        return min(_CENT, Decimal(1).scaleb(-self.decimals)) / 2


@dataclass(frozen=True)
class Wanted:
    """What of a file counts: days, both included, and the keys and projects that are ours; none named means all."""

    first: date | None = None
    last: date | None = None
    holders: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()

    def holds(self, day: date) -> bool:
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)

    def is_ours(self, line: Line) -> bool:
        return (not self.holders or not self.holders.isdisjoint(line.holders)) and (
            not self.projects or not self.projects.isdisjoint(line.projects)
        )


def read(path: Path, vendor: str, wanted: Wanted) -> Export:
    """Raises a CommandError that names the line, or the columns, for what cannot be read."""
    try:
        with (
            path.open("rb") as file,
            io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as wrapped,
        ):
            return _read(path, file, wrapped, vendor, wanted)
    except OSError as error:
        raise usage(
            f"cannot read {path}: {error.strerror or error}", do="check the path", code=_CODE
        ) from None


def _read(
    path: Path, file: BinaryIO, wrapped: io.TextIOWrapper, vendor: str, wanted: Wanted
) -> Export:
    head = file.read(_HEAD)
    file.seek(0)
    try:
        # A character may be cut at the end of what was looked at.
        text_of(head[: head.rfind(b"\n") + 1] or head[:1], str(path), _CODE)
    except CommandError as error:
        error.exit_code = USAGE
        raise
    lines = _lines(path, wrapped, _delimiter(head))
    form, titles, units = _recognized(path, lines, vendor)
    export = Export(path=path, form=form)
    for number, values in lines:
        cells = Cells(dict(zip(titles, values, strict=False)), units)
        try:
            line = form.read(cells)
        except OddCellError as error:
            raise usage(
                f"{path}, line {number}: {error}",
                do="give the file as the vendor exports it, not saved again by a spreadsheet",
                code=_CODE,
            ) from None
        if line is not None:
            _count(export, line, wanted)
    _check_names(export, wanted)
    return export


def _delimiter(head: bytes) -> str:
    return max(",;\t", key=lambda one: head.count(one.encode()))


def _lines(
    path: Path, wrapped: io.TextIOWrapper, delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(wrapped, delimiter=delimiter)
    try:
        for values in reader:
            if values:
                yield reader.line_num, values
    except csv.Error as error:
        raise usage(
            f"{path}, line {reader.line_num}: {error}",
            do="look there for a quotation mark without its partner",
            code=_CODE,
        ) from None
    except UnicodeDecodeError:
        raise usage(
            f"{path} is not valid UTF-8 after line {reader.line_num}",
            do="save it as UTF-8",
            code=_CODE,
        ) from None


def _recognized(
    path: Path, lines: Iterator[tuple[int, list[str]]], vendor: str
) -> tuple[Form, list[str], dict[str, str]]:
    """The form, the titles of its columns and their units."""
    seen: list[str] = []
    for number, values in lines:
        titles, units = _titles(values)
        fitting = [form for form in FORMS if form.fits(titles)]
        of_vendor = [form for form in fitting if form.vendor == vendor]
        if of_vendor:
            twice = next((title for title in titles if title and titles.count(title) > 1), None)
            if twice is not None:
                raise usage(f"{path} has two columns {twice}", do="keep one of them", code=_CODE)
            return of_vendor[0], titles, units
        if fitting:
            raise usage(
                f"{path} is an export of {fitting[0].vendor}, not of {vendor}",
                do=f"--vendor {fitting[0].vendor}",
                code=_CODE,
            )
        seen = seen or [value.strip() for value in values]
        if number >= _LINES_ABOVE:
            break
    known = "; ".join(f"{form.name}: {form.columns}" for form in FORMS if form.vendor == vendor)
    shown = ", ".join(title[:40] for title in seen[:_MOST_NAMES]) or "none"
    raise CommandError(
        f"{path} is none of the exports of {vendor} that are known",
        exit_code=USAGE,
        code=_CODE,
        why=f"its columns are {shown}",
        do=f"known are {known}",
    )


def _titles(values: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    titles, units = [], {}
    for value in values:
        parted = _UNIT.fullmatch(value)
        bare, unit = (parted[1], parted[2].strip()) if parted else (value, "")
        title = re.sub(r"[^a-z0-9]+", "_", bare.strip().lower()).strip("_")
        titles.append(title)
        units[title] = unit
    return titles, units


def _count(export: Export, line: Line, wanted: Wanted) -> None:
    for name in (*line.holders, *line.projects):
        if name not in export.holders and len(export.holders) < _MOST_NAMES:
            export.holders.append(name)
    export.says_holders |= bool(line.holders)
    export.says_projects |= bool(line.projects)
    if not wanted.holds(line.day):
        return
    export.first = line.day if export.first is None else min(export.first, line.day)
    export.last = line.day if export.last is None else max(export.last, line.day)
    if line.cost is not None:
        exponent = line.cost.as_tuple().exponent
        assert isinstance(exponent, int)  # it is finite
        export.decimals = max(export.decimals, -exponent)
    name = line.tool or line.model
    if not wanted.is_ours(line):
        table = export.others
    elif line.tool:
        table = export.tools
    else:
        table = export.models
        export.names_no_model |= not line.model
    table.setdefault((line.day, name), Counted()).add(line)


def _check_names(export: Export, wanted: Wanted) -> None:
    for names, says, option, what in (
        (wanted.holders, export.says_holders, "--key-name", "keys"),
        (wanted.projects, export.says_projects, "--project", "projects"),
    ):
        if names and not says:
            raise usage(
                f"{export.path} names no {what}, so {option} cannot tell which are ours",
                do=f"export it grouped by them, or leave {option} out",
                code=_CODE,
            )
