"""`gwctl usage`: what was used and what it cost, by model, key, user, app or session."""

import csv
from collections.abc import Sequence
from decimal import Decimal
from io import StringIO
from typing import Annotated, Any

from gwctl import text, time_input
from gwctl.commands.ledger import tell_days
from gwctl.errors import usage
from gwctl.records import fetch
from gwctl.session import Session
from gwctl.tables import Column, Record, exact
from gwctl.tree import Noun
from gwctl.usage_fold import fold
from gwctl.values import flag, one_of, opt

METRICS = (
    *("requests", "tokens_prompt", "tokens_completion", "cost"),
    *("cached_tokens", "cache_hit_rate", "cache_discount"),
)
DIMENSIONS = {
    "model": "model",
    "key": "api_key",
    "user": "user",
    "app": "app",
    "session": "session_id",
}

usage_noun = Noun("usage", "What was used and what it cost.")
NOUNS = [usage_noun]

_LAST = opt("--last", "SPAN", "How far back: 24h, 7d (the default), 30d.")
_FROM = opt("--from", "TIME", "From this time on, instead of --last.")
_TO = opt("--to", "TIME", "Up to this time, a day included (UTC); now otherwise.")


@usage_noun.verb(
    "summary",
    "gwctl usage summary --by model --last 7d --plot",
    "gwctl usage summary --by key --from 2026-11-01 --json",
)
def summary(
    session: Session,
    by: Annotated[
        str, opt("--by", "WHAT", "model (the default), key, user, app or session.")
    ] = "model",
    last: Annotated[str, _LAST] = "7d",
    start: Annotated[str | None, _FROM] = None,
    end: Annotated[str | None, _TO] = None,
    plot: Annotated[bool, flag("--plot", "Add a line of cost per day.")] = False,
) -> None:
    """Sum up requests, tokens and cost."""
    chosen = one_of("--by", by, tuple(DIMENSIONS))
    dimension = DIMENSIONS[chosen]
    span = _range(session, last, start, end)
    generations = _generations(session, span)
    rows = fold(generations, [dimension], daily=False)
    rows.sort(key=lambda row: text.decimal(row.get("cost")) or Decimal(0), reverse=True)
    columns = [
        Column(chosen.upper(), lambda row: row.get(dimension) or "(none)", name=True),
        Column("REQUESTS", "requests", "count"),
        Column("TOKENS IN", "tokens_prompt", "count"),
        Column("OUT", "tokens_completion", "count"),
        Column("COST", "cost", "money"),
        Column("CACHED", _cached, "percent"),
    ]
    if plot:
        days = _days(span)
        daily = fold(generations, [dimension], daily=True)
        for row in rows:
            row["cost_per_day"] = _series(daily, dimension, row.get(dimension), days)
        columns.append(Column(f"LAST {len(days)} DAYS", "cost_per_day", "spark"))
    session.out.records(rows, columns, noun="usage")
    if session.out.table and rows:
        saved = sum((row["cache_discount"] for row in rows), Decimal(0))
        cached = f", {text.money(saved)} saved by prompt caches" if saved > 0 else ""
        since = span["from"][:16].replace("T", " ")
        session.out.note(f"total {text.money(total_cost(rows))} since {since}{cached}")


@usage_noun.verb(
    "export",
    "gwctl usage export --csv --last 30d > usage.csv",
    "gwctl usage export --by key,model --csv",
)
def export(
    session: Session,
    csv_: Annotated[bool, flag("--csv", "Comma separated values (the default).")] = False,
    by: Annotated[
        str, opt("--by", "WHAT", "Up to three of model, key, user, app, session.")
    ] = "model,key",
    last: Annotated[str, _LAST] = "7d",
    start: Annotated[str | None, _FROM] = None,
    end: Annotated[str | None, _TO] = None,
) -> None:
    """Write usage per day as CSV, or as JSON with --json."""
    chosen = [one_of("--by", word, tuple(DIMENSIONS)) for word in by.split(",") if word]
    if not 1 <= len(chosen) <= 3:
        raise usage("--by takes one to three words", do="for example --by model,key")
    dimensions = [DIMENSIONS[word] for word in chosen]
    rows = fold(_generations(session, _range(session, last, start, end)), dimensions, daily=True)
    rows.sort(key=lambda row: [str(row.get(name)) for name in ("date__day", *dimensions)])
    if session.out.shape.machine:
        if csv_:
            raise usage("--csv and --json exclude each other", do="give one of them")
        session.out.data(rows)
        return
    session.out.block(comma_separated(rows, ["date__day", *dimensions, *METRICS]))


def comma_separated(rows: list[Any], names: list[str]) -> str:
    """RFC 4180; a text that a spreadsheet would run as a formula gets an apostrophe."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([name.removesuffix("__day") for name in names])
    for row in rows:
        cells = [exact(row.get(name), "text") for name in names]
        writer.writerow(
            [
                f"'{cell}"
                if cell[:1] in ("=", "+", "-", "@") and text.decimal(cell) is None
                else cell
                for cell in cells
            ]
        )
    return out.getvalue()


def _cached(row: Record) -> Decimal | None:
    """How much of the prompts came from the vendor's cache, in percent."""
    whole = row.get("tokens_prompt")
    return Decimal(100) * row["cached_tokens"] / whole if whole else None


def _generations(session: Session, span: dict[str, str]) -> list[Record]:
    """The requests of that time, whatever became of them."""
    rows, _ = fetch(session, "/generations", span, everything=True)
    return rows


def _range(session: Session, last: str, start: str | None, end: str | None) -> dict[str, str]:
    # Times are sent to the second and the end is exclusive: this second's requests are meant too.
    tell_days(session, start, end)
    until_now = time_input.iso(time_input.utc_now() + time_input.span("1s"))
    return {
        "from": time_input.past(start or last),
        "to": time_input.end_of(end) if end else until_now,
    }


def _days(span: dict[str, str]) -> list[str]:
    """The UTC days of the range, the last ones where it touches one more than it is long."""
    first, last = (text.parse_time(span[name]) for name in ("from", "to"))
    assert first is not None
    assert last is not None
    whole = -(-(last - first) // time_input.span("1d"))
    days = []
    while first.date() <= last.date():
        days.append(first.date().isoformat())
        first += time_input.span("1d")
    # Seven days back from noon touch eight dates; the first, half a day, is left out.
    return days[-max(whole, 1) :]


def _series(rows: list[Any], dimension: str, value: Any, days: list[str]) -> list[Decimal]:
    costs: dict[str, Decimal] = {}
    for row in rows:
        if row.get(dimension) == value:
            day = str(row.get("date__day"))[:10]
            costs[day] = costs.get(day, Decimal(0)) + (text.decimal(row.get("cost")) or Decimal(0))
    return [costs.get(day, Decimal(0)) for day in days]


def total_cost(rows: Sequence[Record]) -> Decimal:
    return sum((text.decimal(row.get("cost")) or Decimal(0) for row in rows), Decimal(0))
