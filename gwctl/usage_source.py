"""Where the numbers of `gwctl usage` come from: questions to analytics, answered in rows."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from gwctl.client import quote
from gwctl.errors import CommandError
from gwctl.records import PAGE, data, pages
from gwctl.session import Session
from gwctl.spinner import waiting
from gwctl.text import decimal, parse_time
from gwctl.time_input import iso, span
from gwctl.usage_sums import AMOUNTS, COUNTS, DAY, summed

KEY = "api_key"
PATH = "/analytics/query"
_STRETCH = timedelta(days=31)
"""Of a question: a long time is asked for in several, so that none takes long."""
_MOST_ROWS = 10_000


def per_day(
    session: Session, between: Mapping[str, str], dimensions: Sequence[str]
) -> list[dict[str, Any]]:
    """What was used between `from` and `to`: one row per combination of dimensions and UTC day, refusals left out.

    Each row has its dimensions, `date__day`, `requests`, tokens, `cost` and `cache_discount` in USD. Keys have names
    where they are still there.
    """
    start, end = (parse_time(between[name]) for name in ("from", "to"))
    assert start is not None
    assert end is not None
    rows: list[dict[str, Any]] = []
    quiet = session.flags.quiet or session.flags.debug
    with waiting("adding up", show=not quiet):
        while start < end:
            until = min(end, start + _STRETCH)
            rows += _asked(session, start, until, dimensions)
            start = until
    if KEY in dimensions:
        names = _names(session, {row[KEY] for row in rows})
        rows = [{**row, KEY: names[row[KEY]]} for row in rows]
    return summed(rows, [*dimensions, DAY])


def _asked(
    session: Session, start: datetime, end: datetime, dimensions: Sequence[str]
) -> list[dict[str, Any]]:
    """The rows of a stretch; where they are too many for one answer, those of its halves."""
    question = {
        "metrics": [*COUNTS, *AMOUNTS],
        "dimensions": list(dimensions),
        "granularity": "day",
        "range": {"from": iso(start), "to": iso(end)},
        "limit": _MOST_ROWS,
    }
    answer = data(session.api.post(PATH, question))
    middle = start + timedelta(seconds=(end - start) // span("1s") // 2)
    if answer["metadata"]["truncated"] and middle > start:
        return [
            *_asked(session, start, middle, dimensions),
            *_asked(session, middle, end, dimensions),
        ]
    return [_row(row, dimensions) for row in answer["data"] if row["requests"]]


def _row(row: Mapping[str, Any], dimensions: Sequence[str]) -> dict[str, Any]:
    return {
        **{name: row[name] for name in dimensions},
        DAY: str(row[DAY])[:10],
        **{name: row[name] for name in COUNTS},
        **{name: decimal(row[name]) or Decimal(0) for name in AMOUNTS},
    }


def _names(session: Session, ids: Iterable[str]) -> dict[str, str]:
    """What keys are called; the id of one that is gone."""
    names = {key_id: key_id for key_id in ids}
    if len(names) > PAGE:
        all_ = {"include_disabled": "true", "include_expired": "true"}
        for page, _ in pages(session, "/keys", all_):
            names |= {key["id"]: key["name"] for key in page if key["id"] in names}
        return names
    for key_id in names:
        try:
            names[key_id] = data(session.api.get(f"/keys/{quote(key_id)}"))["name"]
        except CommandError as error:
            if error.code != "not_found":
                raise
    return names
