"""Lays a vendor's count beside ours, by day and model, and names the cause of each difference.

Pure arithmetic: what was read of exports and what the gateway answered go in, rows come out. Amounts are exact as long
as the caller's decimal context carries their digits.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal

from gwctl.vendor_export import Counted, Export
from gwctl.vendor_forms import CLASSES

Cause = Literal[
    "none",
    "rounding",
    "days",
    "other_keys",
    "missing_here",
    "missing_there",
    "both_missing",
    "classes",
    "price",
    "vendor_tools",
    "unexplained",
]
EXPLAINED: tuple[Cause, ...] = ("none", "rounding", "days", "other_keys")
"""Causes that leave nothing to be looked into."""

CAUSES: Mapping[Cause, str] = {
    "none": "equal",
    "rounding": "rounding",
    "days": "another day",
    "other_keys": "other keys",
    "missing_here": "missing here",
    "missing_there": "missing there",
    "both_missing": "both missing some",
    "classes": "token classes",
    "price": "price",
    "vendor_tools": "vendor-run tools",
    "unexplained": "unexplained",
}
_SUSPECTS = ("missing_here", "missing_there", "both_missing", "unexplained")
"""What may be a request that was counted on the day before or after."""

TOOLS = "(vendor-run tools)"
ALL = "(all models)"
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}|(?<!\d)\d{8}(?!\d)")
_NO_NAME = ("latest", "preview", "exp")
_ZERO = Decimal(0)

Key = tuple[str, ...]


def words(model: str) -> Key:
    """A model's name without its date, in no order: `Claude Haiku 4.5` is claude-haiku-4-5-20251001."""
    bare = _DATED.sub(" ", model.lower().rpartition("/")[2])
    if bare.startswith("gemini"):
        bare = re.sub(r"-(?:\d{2}-\d{2,4}|\d{3})$", "", bare)
    found = re.findall(r"[a-z]+|\d+", bare)
    dropped = _NO_NAME if bare.startswith("gemini") else _NO_NAME[:1]
    return tuple(sorted(word for word in found if word not in dropped))


@dataclass
class Side:
    """One side's count of a day and model. None is what it does not say."""

    name: str = ""
    requests: int | None = None
    tokens: list[int] | None = None
    cost: Decimal | None = None
    lines: int = 0
    has_uncounted: bool = False
    errors: int = 0
    insured: int = 0
    rounding: Decimal = _ZERO

    def record(self) -> dict[str, Any]:
        return {"requests": self.requests, **_by_class(self.tokens), "cost": self.cost}


@dataclass
class Row:
    """A day and model on both sides. `limit` is how far the costs may lie apart by rounding alone."""

    day: date
    model: str
    theirs: Side
    ours: Side
    limit: Decimal
    cause: Cause = "none"
    notes: list[str] = field(default_factory=list)

    @property
    def tokens(self) -> list[int] | None:
        """Theirs less ours by class, where both are known."""
        if self.theirs.tokens is None or self.ours.tokens is None or self.theirs.has_uncounted:
            return None
        return [a - b for a, b in zip(self.theirs.tokens, self.ours.tokens, strict=True)]

    @property
    def requests(self) -> int | None:
        """Theirs less ours, where both are known."""
        if self.theirs.requests is None or self.ours.requests is None:
            return None
        return self.theirs.requests - self.ours.requests

    @property
    def cost(self) -> Decimal | None:
        """Theirs less ours, where both are known."""
        if self.theirs.cost is None or self.ours.cost is None:
            return None
        return self.theirs.cost - self.ours.cost

    def record(self) -> dict[str, Any]:
        return {
            "day": self.day.isoformat(),
            "model": self.model,
            "vendor": self.theirs.record(),
            "ours": {
                **self.ours.record(),
                "errors": self.ours.errors,
                "insured": self.ours.insured,
            },
            "difference": {
                "requests": self.requests,
                **_by_class(self.tokens),
                "cost": self.cost,
            },
            "rounding_limit": self.limit,
            "cause": self.cause,
            "notes": self.notes,
        }


def _by_class(tokens: Sequence[int] | None) -> dict[str, int | None]:
    if tokens is None:
        return dict.fromkeys(CLASSES)
    return dict(zip(CLASSES, tokens, strict=True))


@dataclass(frozen=True)
class Covered:
    """The days of which the exports say tokens, and cost; both ends are included."""

    tokens: tuple[date, date] | None
    cost: tuple[date, date] | None


def compared(
    exports: Sequence[Export],
    answered: Iterable[Mapping[str, Any]],
    covered: Covered,
    renamed: Mapping[str, str],
) -> list[Row]:
    """Rows by day and model. `answered` are the gateway's sums, `renamed` says what a vendor's name is here."""
    as_one = any(export.names_no_model for export in exports)
    theirs = _theirs(exports, renamed, as_one=as_one)
    ours = _ours(answered, as_one=as_one)
    precision = max((export.rounding for export in exports if export.has_cost), default=_ZERO)
    known = {key: side.name for sides in (theirs, ours) for (_, key), side in sides.items()}
    rows = []
    for place in sorted({*theirs, *ours}):
        day, key = place
        there, here = theirs.get(place, Side()), ours.get(place, Side())
        is_tools = key == (TOOLS,)
        _complete(there, day, covered, is_tools=is_tools)
        if here.tokens is None and not is_tools:
            here.requests, here.tokens = 0, [0] * len(CLASSES)
        here.cost = here.cost or _ZERO
        row = Row(
            day=day,
            model=known[key],
            theirs=there,
            ours=here,
            limit=here.rounding + there.lines * precision,
        )
        row.cause = _tools_cause(row) if is_tools else _cause(row)
        rows.append(row)
    _find_moved(rows)
    for row in rows:
        row.notes += _notes(row)
    rows += _others(exports)
    rows.sort(key=lambda row: (row.day, row.model))
    return [row for row in rows if row.theirs.tokens is not None or row.theirs.cost is not None]


def _theirs(
    exports: Sequence[Export], renamed: Mapping[str, str], *, as_one: bool
) -> dict[tuple[date, Key], Side]:
    sides: dict[tuple[date, Key], Side] = {}
    for export in exports:
        for (day, name), counted in export.models.items():
            key = (ALL,) if as_one else words(renamed.get(name, name))
            side = sides.setdefault((day, key), Side(name=ALL if as_one else name))
            _add(side, counted)
            side.has_uncounted |= counted.has_uncounted and export.has_tokens
        for (day, _), counted in export.tools.items():
            name = ALL if as_one else TOOLS
            _add(sides.setdefault((day, (name,)), Side(name=name)), counted)
    return sides


def _add(side: Side, counted: Counted) -> None:
    side.lines += counted.lines
    if counted.requests is not None:
        side.requests = (side.requests or 0) + counted.requests
    if counted.tokens is not None:
        side.tokens = _plus(side.tokens, counted.tokens)
    if counted.cost is not None:
        side.cost = (side.cost or _ZERO) + counted.cost


def _plus(some: Sequence[int] | None, more: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(some or [0] * len(CLASSES), more, strict=True)]


def _ours(answered: Iterable[Mapping[str, Any]], *, as_one: bool) -> dict[tuple[date, Key], Side]:
    """Sums of /vendor-usage by day and upstream model; searches that the vendor ran stand apart, as in its bill."""
    sides: dict[tuple[date, Key], Side] = {}
    for sums in answered:
        day = date.fromisoformat(str(sums["day"])[:10])
        name = str(sums["upstream_model"] or str(sums["model"]).rpartition("/")[2])
        key = (ALL,) if as_one else words(name)
        side = sides.setdefault((day, key), Side(name=ALL if as_one else name))
        side.requests = (side.requests or 0) + int(sums["requests"])
        output = sums["tokens_output"] + sums["tokens_reasoning"]
        side.tokens = _plus(side.tokens, [*(int(sums[name]) for name in CLASSES[:-1]), int(output)])
        side.cost = (side.cost or _ZERO) + Decimal(sums["cost"])
        side.rounding += Decimal(sums["rounding"])
        side.errors += int(sums["errors"])
        side.insured += int(sums["insured"])
        if searches := Decimal(sums["cost_web_search"]):
            name = ALL if as_one else TOOLS
            tools = sides.setdefault((day, (name,)), Side(name=name))
            tools.cost = (tools.cost or _ZERO) + searches
    return sides


def _complete(there: Side, day: date, covered: Covered, *, is_tools: bool) -> None:
    """A day that an export covers and where it has no line is a day without traffic."""
    if there.tokens is None and not is_tools and _within(day, covered.tokens):
        there.tokens = [0] * len(CLASSES)
        there.requests = 0 if there.requests is None else there.requests
    if there.cost is None and _within(day, covered.cost):
        there.cost = _ZERO


def _within(day: date, days: tuple[date, date] | None) -> bool:
    return days is not None and days[0] <= day <= days[1]


def _cause(row: Row) -> Cause:
    tokens, cost = row.tokens, row.cost
    if tokens is None:
        return _cause_of_cost(row)
    if not any(tokens):
        if not cost:
            return "none"
        return "rounding" if abs(cost) <= row.limit else "price"
    if sum(tokens[:-1]) == 0 and tokens[-1] == 0:
        return "classes"
    if min(tokens) >= 0:
        return "missing_here"
    return "missing_there" if max(tokens) <= 0 else "both_missing"


def _cause_of_cost(row: Row) -> Cause:
    """Without tokens: whether one side has nothing at all is all that can be told of a larger difference."""
    cost = row.cost
    if not cost:
        return "none"
    if abs(cost) <= row.limit:
        return "rounding"
    if not row.ours.requests:
        return "missing_here"
    return "unexplained" if row.theirs.cost else "missing_there"


def _tools_cause(row: Row) -> Cause:
    if not row.cost:
        return "none"
    return "rounding" if abs(row.cost) <= row.limit else "vendor_tools"


def _notes(row: Row) -> list[str]:
    """What helps to find the requests, a sentence each."""
    ours, cost = row.ours, row.theirs.cost
    match row.cause:
        case "missing_here" if not ours.requests:
            return ["nothing was sent to it from here"]
        case "missing_here" | "both_missing" if ours.errors:
            return [f"{ours.errors} of ours failed or broke off, which the vendor may have counted"]
        case "missing_there" if ours.insured:
            return [f"{ours.insured} of ours had no output and were charged to nobody"]
        case "classes":
            return ["as many tokens, in other classes"]
        case "price" if cost is not None and ours.cost:
            percent = (100 * cost / ours.cost).quantize(Decimal("0.01")).normalize()
            return [f"equal tokens; theirs is {percent:f} % of ours"]
        case "unexplained":
            return ["give the usage export as well: it tells traffic from prices"]
        case _:
            return []


def _find_moved(rows: Iterable[Row]) -> None:
    """Differences of neighbouring days that cancel out: requests counted on one day there and on another here."""
    by_model: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.day):
        by_model.setdefault(row.model, []).append(row)
    for own in by_model.values():
        start = 0
        while start < len(own):
            end = _cancelled(own, start)
            for row in own[start:end]:
                row.cause = "days"
            start = max(end, start + 1)


def _cancelled(rows: Sequence[Row], start: int) -> int:
    """Where the stretch ends whose differences come to nothing; `start` where there is none."""
    tokens, cost, limit = [0] * len(CLASSES), _ZERO, _ZERO
    for at in range(start, len(rows)):
        row = rows[at]
        follows = at == start or row.day - rows[at - 1].day == timedelta(days=1)
        if row.cause not in _SUSPECTS or not follows:
            return start
        tokens = _plus(tokens, row.tokens or [0] * len(CLASSES))
        cost += row.cost or _ZERO
        limit += row.limit
        if at > start and not any(tokens) and abs(cost) <= limit:
            return at + 1
    return start


def _others(exports: Sequence[Export]) -> list[Row]:
    """What the exports count of keys that are not ours; it has no counterpart here."""
    sides: dict[tuple[date, str], Side] = {}
    for export in exports:
        for (day, name), counted in export.others.items():
            _add(sides.setdefault((day, name), Side(name=name)), counted)
    return [
        Row(
            day=day,
            model=name or ALL,
            theirs=side,
            ours=Side(requests=0, tokens=[0] * len(CLASSES), cost=_ZERO),
            limit=_ZERO,
            cause="other_keys",
        )
        for (day, name), side in sides.items()
    ]
