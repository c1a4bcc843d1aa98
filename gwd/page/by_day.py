"""Questions to analytics by day of UTC, and their answers as charts take them."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from gwd.page.ask import Ask
from gwd.page.charts import Stacked, stacked
from gwd.page.formats import Amount

Filters = Sequence[Mapping[str, Any]]
NO_NAME = "–"


def days_between(first: date, last: date) -> list[date]:
    return [first + timedelta(days=each) for each in range((last - first).days + 1)]


def month_ends(month: str) -> tuple[date, date]:
    """The first day of a month that is written 2026-11, and the last one."""
    first = date.fromisoformat(f"{month}-01")
    return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def month_before(month: str) -> str:
    return f"{date.fromisoformat(f'{month}-01') - timedelta(days=1):%Y-%m}"


def month_after(month: str) -> str:
    return f"{date.fromisoformat(f'{month}-01') + timedelta(days=31):%Y-%m}"


def question(
    first: date,
    last: date,
    metrics: Sequence[str],
    dimensions: Sequence[str] = (),
    *,
    by_day: bool = False,
    filters: Filters = (),
    limit: int = 10_000,
) -> dict[str, Any]:
    """A body for POST /analytics/query about whole days, the last one included."""
    asked: dict[str, Any] = {
        "range": {"from": f"{first}T00:00:00Z", "to": f"{last + timedelta(days=1)}T00:00:00Z"},
        "metrics": list(metrics),
        "dimensions": list(dimensions),
        "filters": list(filters),
        "limit": limit,
    }
    return asked | ({"granularity": "day"} if by_day else {})


def rows(ask: Ask, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of an answer of analytics."""
    found: list[dict[str, Any]] = ask("/analytics/query", body=asked)["data"]["data"]
    return found


def by_name(
    found: Sequence[Mapping[str, Any]], dimension: str, metric: str = "cost"
) -> dict[str, dict[date, Amount]]:
    """A metric by the values of a dimension and by day."""
    made: dict[str, dict[date, Amount]] = {}
    for row in found:
        name = NO_NAME if row[dimension] is None else str(row[dimension])
        day = date.fromisoformat(row["date__day"][:10])
        made.setdefault(name, {})[day] = row[metric]
    return made


def spend_by(
    ask: Ask, first: date, last: date, dimension: str, *, rest: str, filters: Filters = ()
) -> Stacked:
    """What was charged by day, as a chart."""
    found = rows(ask, question(first, last, ["cost"], [dimension], by_day=True, filters=filters))
    return stacked(days_between(first, last), by_name(found, dimension), rest=rest)
