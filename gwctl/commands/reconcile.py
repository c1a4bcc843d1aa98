"""`gwctl reconcile`: a vendor's export beside the gateway's own count, and the cause of each difference."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from gwctl import reconciliation, text, time_input
from gwctl.catalog import PROVIDERS
from gwctl.errors import NOT_ALLOWED, CommandError, usage
from gwctl.reconciliation import CAUSES, EXPLAINED, Covered, Row
from gwctl.records import data, fetch
from gwctl.session import Session
from gwctl.tables import Column
from gwctl.tree import Noun
from gwctl.values import flag, one_of, opt
from gwctl.vendor_export import Export, Wanted, read
from gwctl.vendor_forms import CLASSES, HOSTS, VENDORS

_DAYS_A_QUESTION = 31
_MOST_DAYS = 366
_DIGITS = 100  # exports have amounts of thirty decimals
_MOST_NAMED = 5

top = Noun("", "Vendors' bills.")
NOUNS = [top]

_COLUMNS = (
    Column("DAY", "day", name=True),
    Column("MODEL", "model", name=True),
    Column("TOKENS THEIRS", lambda row: _tokens(row["vendor"]), "count", leaves=2),
    Column("TOKENS OURS", lambda row: _tokens(row["ours"]), "count", leaves=2),
    Column("COST THEIRS", "vendor.cost", "money"),
    Column("COST OURS", "ours.cost", "money"),
    Column("DIFFERENCE", "difference.cost", "money"),
    Column("CAUSE", lambda row: CAUSES[row["cause"]], "state", cut=False),
    Column("NOTE", lambda row: "; ".join(row["notes"]), "note", leaves=3),
)


@top.verb(
    "reconcile",
    "gwctl reconcile --vendor openai --csv usage.csv --csv cost.csv --only-differences",
    "gwctl reconcile --vendor anthropic --csv cost.csv --key-name gateway --from 2026-11-01 --json",
)
def reconcile(
    session: Session,
    files: Annotated[
        list[Path],
        opt("--csv", "FILE", "An export of the vendor; repeatable: usage beside cost, or months."),
    ],
    vendor: Annotated[str, opt("--vendor", "VENDOR", f"One of {', '.join(VENDORS)}.")],
    start: Annotated[str | None, opt("--from", "DAY", "From this day on (UTC).")] = None,
    end: Annotated[str | None, opt("--to", "DAY", "Up to this day, which is included.")] = None,
    key_names: Annotated[
        list[str] | None,
        opt("--key-name", "NAME", "Ours are this key's lines, by id or name; repeatable."),
    ] = None,
    projects: Annotated[
        list[str] | None,
        opt("--project", "NAME", "Ours are this project's or workspace's lines; repeatable."),
    ] = None,
    providers: Annotated[
        list[str] | None,
        opt("--provider", "SLUG", "Which providers are the vendor; else those at its address."),
    ] = None,
    names: Annotated[
        list[str] | None,
        opt("--model", "THEIRS=OURS", "What the export calls an upstream model; repeatable."),
    ] = None,
    byok: Annotated[
        bool, flag("--byok", "The organization's own vendor keys, not the node's (operator).")
    ] = False,
    only_differences: Annotated[
        bool, flag("--only-differences", "Only what is not explained by rounding, days or keys.")
    ] = False,
) -> None:
    """Lay a vendor's export beside the gateway's count.

    By day and model: tokens and cost at list price, on both sides, and why they differ. Exit 1 when a difference is
    left that neither rounding, nor the edge of a day, nor other keys explain.
    """
    chosen = one_of("--vendor", vendor, VENDORS)
    wanted = Wanted(
        first=_day("--from", start),
        last=_day("--to", end),
        holders=frozenset(key_names or ()),
        projects=frozenset(projects or ()),
    )
    renamed = _renamed(names or ())
    with localcontext() as context:
        context.prec = _DIGITS
        exports = [read(path, chosen, wanted) for path in files]
        first, last = _stretch(exports, wanted)
        ours = _ours(session, _providers(session, chosen, providers), first, last, byok=byok)
        covered = Covered(
            tokens=_covered([each for each in exports if each.has_tokens], wanted),
            cost=_covered([each for each in exports if each.has_cost], wanted),
        )
        rows = reconciliation.compared(exports, ours, covered, renamed)
        _show(session, rows, exports, only_differences=only_differences)
    left = [row for row in rows if row.cause not in EXPLAINED]
    if left:
        raise CommandError(
            f"{text.counted(len(left), 'difference')} to look into",
            code="vendor_differs",
            do="gwctl help reconcile; docs/money.md says what each cause means",
        )


def _day(option: str, written: str | None) -> date | None:
    if written is None:
        return None
    return date.fromisoformat(time_input.past(written)[:10])


def _renamed(given: Sequence[str]) -> dict[str, str]:
    renamed = {}
    for each in given:
        theirs, equals, ours = each.rpartition("=")
        if not (theirs.strip() and equals and ours.strip()):
            raise usage(f"--model {each!r} names no two models", do="--model THEIRS=OURS")
        renamed[theirs.strip()] = ours.strip()
    return renamed


def _stretch(exports: Sequence[Export], wanted: Wanted) -> tuple[date, date]:
    """The days to ask the gateway about, both included."""
    firsts = [each.first for each in exports if each.first is not None]
    lasts = [each.last for each in exports if each.last is not None]
    first = wanted.first or min(firsts, default=None)
    last = wanted.last or max(lasts, default=None)
    if first is None or last is None:
        raise usage(
            "the exports have no line of usage"
            + (" in these days" if wanted.first or wanted.last else ""),
            do="export other days, or name days with --from and --to",
            code="vendor_export",
        )
    if last < first:
        raise usage(f"--to {last} is before --from {first}", do="give the earlier day as --from")
    if (last - first).days >= _MOST_DAYS or last == date.max:
        raise usage(
            f"from {first} to {last} are more than {_MOST_DAYS} days",
            do="take a part of them with --from and --to",
        )
    return first, last


def _covered(exports: Sequence[Export], wanted: Wanted) -> tuple[date, date] | None:
    if not exports:
        return None
    return _stretch(exports, wanted)


def _providers(session: Session, vendor: str, named: Sequence[str] | None) -> frozenset[str]:
    """The slugs of the providers that are the vendor's own endpoints."""
    known, _ = fetch(session, PROVIDERS.path, everything=True)
    slugs = [str(each["slug"]) for each in known]
    if named:
        unknown = next((slug for slug in named if slug not in slugs), None)
        if unknown is not None:
            raise usage(f"no provider is called {unknown}", do=f"one of {', '.join(slugs)}")
        return frozenset(named)
    host = HOSTS[vendor]
    found = frozenset(
        str(each["slug"]) for each in known if _is_at(str(each.get("base_url") or ""), host)
    )
    if not found:
        raise usage(
            f"no provider of this gateway is at {host}",
            do=f"name them with --provider: {', '.join(slugs) or 'there are none'}",
        )
    return found


def _is_at(address: str, host: str) -> bool:
    there = (urlsplit(address).hostname or "").lower()
    return there == host or there.endswith(f".{host}")


def _ours(
    session: Session, providers: frozenset[str], first: date, last: date, *, byok: bool
) -> Iterator[dict[str, Any]]:
    """The gateway's sums of these providers, asked for by the month."""
    while first <= last:
        end = min(first + timedelta(days=_DAYS_A_QUESTION), last + timedelta(days=1))
        query = {"from": f"{first}T00:00:00Z", "to": f"{end}T00:00:00Z", "all": not byok}
        try:
            answered = data(session.api.get("/vendor-usage", query))
        except CommandError as error:
            if error.exit_code == NOT_ALLOWED and not byok:
                error.do = "use an operator's key, or --byok for the organization's own vendor keys"
            raise
        yield from (
            sums
            for sums in answered["rows"]
            if sums["provider"] in providers and sums["byok"] == byok
        )
        first = end


def _show(
    session: Session, rows: Sequence[Row], exports: Sequence[Export], *, only_differences: bool
) -> None:
    shown = [row for row in rows if not only_differences or row.cause not in EXPLAINED]
    out = session.out
    records = [row.record() for row in shown]
    if out.shape.machine:
        out.data(_whole(rows, records, exports))
        return
    if not out.shape.quiet:
        out.records(records, _COLUMNS, noun="difference" if only_differences else "usage")
    for note in _summary(rows, exports):
        out.note(note)


def _whole(
    rows: Sequence[Row], records: list[dict[str, Any]], exports: Sequence[Export]
) -> dict[str, Any]:
    return {
        "exports": [
            {"file": str(each.path), "vendor": each.form.vendor, "form": each.form.name}
            for each in exports
        ],
        "rows": records,
        "totals": {
            "vendor": {**_total_tokens(rows, theirs=True), "cost": _total(rows, theirs=True)},
            "ours": {**_total_tokens(rows, theirs=False), "cost": _total(rows, theirs=False)},
        },
        "causes": [
            {"cause": cause, "rows": len(own), "cost": _difference(own)}
            for cause, own in _by_cause(rows)
        ],
        "explained": all(row.cause in EXPLAINED for row in rows),
    }


def _summary(rows: Sequence[Row], exports: Sequence[Export]) -> Iterator[str]:
    forms = ", ".join(f"{each.form.name} ({each.path})" for each in exports)
    yield f"read: {forms}; days are those of UTC"
    theirs, ours = _total(rows, theirs=True), _total(rows, theirs=False)
    if theirs is not None and ours is not None:
        apart = text.exact_money(theirs - ours)
        yield f"vendor {text.exact_money(theirs)}, gateway {text.exact_money(ours)} at list price, difference {apart}"
    for cause, own in _by_cause(rows):
        cost = _difference(own)
        amount = "" if cost is None else f", {text.exact_money(cost)}"
        yield f"{CAUSES[cause]}: {text.counted(len(own), 'row')}{amount}"
    unsent = [row for row in rows if row.cause == "missing_here" and not row.ours.requests]
    unknown = list(dict.fromkeys(row.model for row in unsent))
    if unknown:
        yield f"not sent from here: {_some(unknown)}; --model THEIRS=OURS where only the name differs"
    keys = list(dict.fromkeys(name for each in exports for name in each.holders))
    if len(keys) > 1 and any(
        row.cause in ("missing_here", "both_missing", "unexplained") for row in rows
    ):
        yield f"the export names {_some(keys)}: --key-name and --project say which are ours"
    for export in exports:
        if export.form.zone != "UTC":
            yield f"{export.path} has days of {export.form.zone}: the first and the last day are not whole"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _by_cause(rows: Sequence[Row]) -> list[tuple[reconciliation.Cause, list[Row]]]:
    grouped = [(cause, [row for row in rows if row.cause == cause]) for cause in CAUSES]
    return [(cause, own) for cause, own in grouped if own]


def _difference(rows: Sequence[Row]) -> Decimal | None:
    costs = [row.cost for row in rows if row.cost is not None]
    return sum(costs, Decimal(0)) if costs else None


def _total(rows: Sequence[Row], *, theirs: bool) -> Decimal | None:
    """Of the rows whose cost both sides know."""
    costs = [
        cost
        for row in rows
        if row.cost is not None and (cost := (row.theirs if theirs else row.ours).cost) is not None
    ]
    return sum(costs, Decimal(0)) if costs else None


def _total_tokens(rows: Sequence[Row], *, theirs: bool) -> dict[str, int | None]:
    """By class, of the rows whose tokens both sides know."""
    known = [
        (row.theirs if theirs else row.ours).record() for row in rows if row.tokens is not None
    ]
    return {name: sum(each[name] for each in known) if known else None for name in CLASSES}


def _tokens(side: dict[str, Any]) -> int | None:
    counts = [side[name] for name in CLASSES]
    return None if None in counts else sum(counts)
