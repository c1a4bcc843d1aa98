"""`gwctl usage`: what was used and what it cost, by model, key, user, app, session and more."""

import shutil
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from gwctl import chart, comma_separated, record_export, text, time_input
from gwctl.commands.ledger import tell_days
from gwctl.errors import usage
from gwctl.session import Session
from gwctl.tables import Column, Record
from gwctl.tree import Noun
from gwctl.usage_source import per_day
from gwctl.usage_sums import DAY, summed
from gwctl.values import flag, given, one_of, opt

TAG = "tag"
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
    "tag": TAG,
    "provider": "provider",
    "endpoint": "endpoint",
    "dialect": "dialect",
    "workspace": "workspace",
}
REQUEST = "request"
_WORDS = ", ".join(DIMENSIONS)
_SPARK_CELLS = 30

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
    by: Annotated[str, opt("--by", "WHAT", f"One of {_WORDS}, day; model otherwise.")] = "model",
    last: Annotated[str, _LAST] = "7d",
    start: Annotated[str | None, _FROM] = None,
    end: Annotated[str | None, _TO] = None,
    plot: Annotated[bool, flag("--plot", "Draw the cost of each day.")] = False,
) -> None:
    """Sum up requests, tokens and cost."""
    chosen = one_of("--by", by, (*DIMENSIONS, "day"))
    dimension = DIMENSIONS.get(chosen, DAY)
    span = _range(session, last, start, end)
    daily = per_day(session, span, [] if chosen == "day" else [dimension])
    rows = summed(daily, [dimension])
    if chosen == "day":
        rows.sort(key=lambda row: str(row[DAY]))
    else:
        rows.sort(key=lambda row: row["cost"], reverse=True)
    columns = [
        Column(chosen.upper(), lambda row: row.get(dimension) or "(none)", name=True),
        Column("REQUESTS", "requests", "count"),
        Column("TOKENS IN", "tokens_prompt", "count"),
        Column("OUT", "tokens_completion", "count"),
        Column("COST", "cost", "money"),
        Column("CACHED", _cached, "percent"),
    ]
    days = _days(span)
    if plot and chosen != "day":
        for row in rows:
            row["cost_per_day"] = _series(daily, dimension, row.get(dimension), days)
        columns.append(_per_day(session, days))
    session.out.records(rows, columns, noun="usage")
    if session.out.table and rows:
        if plot:
            # A request with two tags is in two of the rows, and in one day.
            _draw(session, per_day(session, span, []) if chosen == TAG else daily, days)
        if chosen == TAG:
            session.out.note("a request with several tags counts in the row of each")
            return
        saved = sum((row["cache_discount"] for row in rows), Decimal(0))
        cached = f", {text.money(saved)} saved by prompt caches" if saved > 0 else ""
        since = span["from"][:16].replace("T", " ")
        session.out.note(f"total {text.money(total_cost(rows))} since {since}{cached}")


def _per_day(session: Session, days: list[str]) -> Column:
    """The cost of each day: drawn for a person, as numbers for a script."""
    out = session.out
    if not out.table:
        return Column(f"LAST {len(days)} DAYS", "cost_per_day", "spark")

    def drawn(row: Record) -> str:
        return chart.sparkline(row["cost_per_day"], _SPARK_CELLS, ascii_only=not out.unicode)

    return Column(f"LAST {len(days)} DAYS", drawn, cut=False)


def _draw(session: Session, daily: list[dict[str, Any]], days: list[str]) -> None:
    """A bar for each day below the table."""
    costs = {row[DAY]: row["cost"] for row in summed(daily, [DAY])}
    width = shutil.get_terminal_size().columns
    rows = [(day, costs.get(day, Decimal(0))) for day in days]
    session.out.block("\n" + chart.bars(rows, width, ascii_only=not session.out.unicode))


@usage_noun.verb(
    "export",
    "gwctl usage export --csv --last 30d > usage.csv",
    "gwctl usage export --by request --from 2026-11-01 --to 2026-11-30 --csv -o november.csv",
)
def export(
    session: Session,
    csv_: Annotated[bool, flag("--csv", "Comma separated values (the default).")] = False,
    target: Annotated[Path | None, record_export.OUTPUT] = None,
    by: Annotated[
        str, opt("--by", "WHAT", f"Up to three of {_WORDS}; or request: every record.")
    ] = "model,key",
    last: Annotated[str, _LAST] = "7d",
    start: Annotated[str | None, _FROM] = None,
    end: Annotated[str | None, _TO] = None,
    after: Annotated[str | None, record_export.AFTER] = None,
) -> None:
    """Write usage per day as CSV, or as JSON with --json or --jsonl.

    With --by request it writes the record of every request, as gwctl activity export does.
    """
    if csv_ and session.out.shape.machine:
        raise usage("--csv and --json exclude each other", do="give one of them")
    if by == REQUEST:
        _export_records(session, target, _range(session, last, start, end), after)
        return
    if after is not None:
        raise usage("--after goes on with an export of records", do="add --by request")
    chosen = [one_of("--by", word, tuple(DIMENSIONS)) for word in by.split(",") if word]
    if not 1 <= len(chosen) <= 3:
        raise usage("--by takes one to three words", do="for example --by model,key")
    dimensions = [DIMENSIONS[word] for word in chosen]
    rows = per_day(session, _range(session, last, start, end), dimensions)
    rows.sort(key=lambda row: [str(row.get(name)) for name in (DAY, *dimensions)])
    names = [DAY, *dimensions, *METRICS]
    with session.out.into(target):
        if session.out.shape.machine:
            session.out.data(rows)
            return
        title = comma_separated.title([name.removesuffix("__day") for name in names])
        session.out.block(title + comma_separated.lines(rows, names))


def _export_records(
    session: Session, target: Path | None, span: dict[str, str], after: str | None
) -> None:
    times = given({"--from": span["from"], "--to": span["to"]})
    command = ["usage", "export", "--by", REQUEST, *times]
    record_export.export(session, record_export.Stretch(span, after=after), target, command)


def _cached(row: Record) -> Decimal | None:
    """How much of the prompts came from the vendor's cache, in percent."""
    whole = row.get("tokens_prompt")
    return Decimal(100) * row["cached_tokens"] / whole if whole else None


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
    while first.date() <= (last - time_input.span("1s")).date():  # the end is exclusive
        days.append(first.date().isoformat())
        first += time_input.span("1d")
    # Seven days back from noon touch eight dates; the first, half a day, is left out.
    return days[-max(whole, 1) :]


def _series(rows: list[Any], dimension: str, value: Any, days: list[str]) -> list[Decimal]:
    costs: dict[str, Decimal] = {}
    for row in rows:
        if row.get(dimension) == value:
            day = str(row[DAY])
            costs[day] = costs.get(day, Decimal(0)) + (text.decimal(row.get("cost")) or Decimal(0))
    return [costs.get(day, Decimal(0)) for day in days]


def total_cost(rows: Sequence[Record]) -> Decimal:
    return sum((text.decimal(row.get("cost")) or Decimal(0) for row in rows), Decimal(0))
