"""Columns and how their cells read: short on a terminal, exact and tab separated elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from gwctl import jsontext, schema, text
from gwctl.schema import Kind

GAP = 3

Record = Mapping[str, Any]
_GOOD = {"enabled", "active", "healthy", "live", "succeeded", "delivered", "ok", "accepted"}
_BAD = {"disabled", "failed", "refused", "retired", "at limit", "expired", "revoked", "down"}


@dataclass(frozen=True)
class Column:
    """One column: its title, where its value comes from and how it reads."""

    title: str
    pick: str | Callable[[Record], Any]
    shown: Kind | None = None
    """How it reads; what the API says of its field where nothing is said here."""
    name: bool = False
    """What one types next: never cut, never left out."""
    cut: bool = True
    """Whether a text may be cut where the terminal is narrow."""
    leaves: int = 0
    """Of the columns that do not fit, those of the highest number go first, the rightmost of them before others."""

    record: str = ""
    """The record of the API that its field belongs to; `of` says it."""

    @property
    def kind(self) -> Kind:
        if self.shown is None and isinstance(self.pick, str):
            return schema.field(self.record, self.pick).kind
        return self.shown or "text"

    def value(self, record: Record) -> Any:
        return pick(record, self.pick) if isinstance(self.pick, str) else self.pick(record)


def of(record: str, *columns: Column) -> tuple[Column, ...]:
    """Columns of a record of the API."""
    return tuple(replace(column, record=record) for column in columns)


def pick(record: Any, path: str) -> Any:
    """The value at a dotted path; a name that itself holds dots wins."""
    if isinstance(record, Mapping) and path in record:
        return record[path]
    head, _, rest = path.partition(".")
    if not isinstance(record, Mapping) or not rest:
        return None
    return pick(record.get(head), rest)


def cell(value: Any, kind: Kind, now: datetime) -> str:
    """The value as a person reads it."""
    match kind:
        case "money":
            return text.money(value)
        case "price":
            return text.per_million(value)
        case "each":
            return text.exact_money(value)
        case "time":
            return text.ago(value, now)
        case "count":
            return text.count(value)
        case "percent":
            return text.percent(value)
        case "bar":
            return text.bar(value)
        case "ms":
            return "-" if value is None else f"{text.count(value)} ms"
        case "spark":
            return text.sparkline(list(value or ()))
        case "note":
            return _words(value, empty="")
        case "text" | "id" | "state":
            return _words(value, empty="-")


def unambiguous(value: Any, kind: Kind, now: datetime) -> str:
    """The value where before and after are told apart: nothing, "", [], 0 and false each read differently."""
    match value:
        case None:
            return "-"
        case "":
            return '""'
        case [] | ():
            return "[]"
        case dict() if not value:
            return "{}"
        case str() if kind == "time":
            return text.clean_line(value)
        case _:
            return _one(value, kind, now)


def _one(value: Any, kind: Kind, now: datetime) -> str:
    """A cell of a single record: a percentage and a count lose no digit there."""
    number = text.decimal(value)
    if kind in ("percent", "count") and number is not None:
        return f"{text.plain(number)} %" if kind == "percent" else text.plain(number)
    return cell(value, kind, now)


def exact(value: Any, kind: Kind) -> str:
    """The value for a script: nothing rounded, nothing relative, no units."""
    if kind == "spark":
        return ",".join(text.plain(number) for number in value or ())
    return _words(value, empty="")


def _words(value: Any, *, empty: str) -> str:
    match value:
        case None | "" | []:
            return empty
        case bool():
            return "yes" if value else "no"
        case Decimal():
            return text.plain(value)
        case list() if all(isinstance(item, str | int | Decimal) for item in value):
            return ", ".join(_words(item, empty="") for item in value)
        case dict() | list():
            return text.clean_line(jsontext.dumps(value))
        case _:
            return text.clean_line(str(value)) or empty


def fields(record: Record, shape: str, prefix: str = "") -> list[tuple[str, Any, Kind]]:
    """A record as rows of name, value, kind; nested objects get dotted names. `shape` is the API's name of it."""
    rows: list[tuple[str, Any, Kind]] = []
    for name, value in record.items():
        if isinstance(value, Mapping) and value:
            rows.extend(fields(value, schema.field(shape, name).record, f"{prefix}{name}."))
        else:
            rows.append((f"{prefix}{name}", value, schema.field(shape, name).kind))
    return rows


def style(value: str, kind: Kind) -> str:
    """The colour of a state word; empty for everything else."""
    if kind != "state":
        return ""
    if value in _GOOD:
        return "green"
    return "red" if value in _BAD else "yellow"


def tab_separated(
    records: Sequence[Record], columns: Sequence[Column], *, color: bool = False
) -> str:
    """One line per record, cells in the order of the table, no titles."""
    codes = {"green": "\x1b[32m", "red": "\x1b[31m", "yellow": "\x1b[33m"}

    def one(record: Record, column: Column) -> str:
        value = exact(column.value(record), column.kind)
        code = codes.get(style(value, column.kind), "") if color and value else ""
        return f"{code}{value}\x1b[0m" if code else value

    return "".join("\t".join(one(record, c) for c in columns) + "\n" for record in records)


def described(record: Record, shape: str, *, now: datetime) -> str:
    """A record as aligned lines of name and value."""
    rows = [(name, _one(value, kind, now)) for name, value, kind in fields(record, shape)]
    width = max((len(name) for name, _ in rows), default=0)
    return "".join(f"{text.clean_line(name):<{width}}  {value}\n" for name, value in rows)


def described_plain(record: Record, shape: str) -> str:
    """The same for a script: name, tab, exact value."""
    return "".join(
        f"{text.clean_line(name)}\t{exact(value, kind)}\n"
        for name, value, kind in fields(record, shape)
    )
