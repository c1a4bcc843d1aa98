"""Usage: who and what spends it, by key, model, user and more."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from gwd.core.errors import InvalidValue
from gwd.page import by_day, formats
from gwd.page.answer import Download, Shown
from gwd.page.ask import Ask
from gwd.page.by_day import question, rows
from gwd.page.charts import SERIES, Stacked, topped
from gwd.page.csv_file import csv_file
from gwd.page.formats import Amount
from gwd.page.request import Field
from gwd.page.table import Act, Page
from gwd.page.views.keys import workspaces

_GROUPS: Final = {
    "key": "api_key",
    "model": "model",
    "user": "user",
    "session": "session_id",
    "app": "app",
    "tag": "tag",
    "workspace": "workspace",
    "provider": "provider",
}
_OF_RECORDS: Final = ("user", "session", "app", "tag")
"""What day sums do not know: looked up for a week unless more is asked for."""
_SHOWN: Final = {"spend": "cost", "tokens": "tokens_total", "requests": "requests"}
_METRICS: Final = ("requests", "tokens_prompt", "cached_tokens", "tokens_completion", "cost")
_MOST_ROWS: Final = 100
_MOST_DAYS: Final = 366
_LINKS: Final = ("key", "model", "user", "session", "app", "tag", "workspace")
_FIELDS: Final = (
    *(Field("by", 20), Field("show", 20), Field("from", 20), Field("to", 20), Field("last", 4)),
    *(Field("model", 300), Field("key", 100), Field("workspace", 100)),
)


def usage(ask: Ask) -> Shown:
    """Bars by day, and a row for each key, model or whatever else it is grouped by."""
    first, last = span_of(ask, default=6 if _by(ask) in _OF_RECORDS else None)
    by, show = _by(ask), _show(ask)
    found = _rows(ask, by, first, last)
    total = rows(ask, question(first, last, _METRICS, filters=_filters(ask)))[0]
    names = _names(ask, by)
    values = {
        "by": by,
        "show": show,
        "groups": list(_GROUPS),
        "first": first,
        "last": last,
        "model": ask.query.text("model"),
        "models": _models(ask, first, last),
        "rows": [_row(row, by, names, first, last) for row in found],
        "is_cut": len(found) == _MOST_ROWS,
        "total": total,
        "chart": _chart(ask, by, found, names, first, last),
        "text": _text(show),
        "csv": urlencode({name: ask.query.text(name) for name in ask.query.texts}),
    }
    return Shown(template="usage.html", values=values)


def as_csv(ask: Ask) -> Download:
    """The rows of the table, exact."""
    first, last = span_of(ask, default=6 if _by(ask) in _OF_RECORDS else None)
    by = _by(ask)
    names = _names(ask, by)
    found = _rows(ask, by, first, last)
    field, days = _GROUPS[by], (str(first), str(last))
    return csv_file(
        f"usage-by-{by}-{first}-{last}.csv",
        ("from", "to", by, "name", *_METRICS),
        (
            (*days, row[field], names.get(row[field] or ""), *(row[each] for each in _METRICS))
            for row in found
        ),
    )


def span_of(ask: Ask, *, default: int | None = None) -> tuple[date, date]:
    """The days that are asked about, the last one included: this month, or `default` days before today.

    Raises InvalidValue for what is no day or a time that is too long.
    """
    if days := ask.query.whole("last"):
        return ask.today - timedelta(days=min(days, _MOST_DAYS) - 1), ask.today
    first = date.fromisoformat(f"{ask.month}-01")
    if default is not None:
        first = ask.today - timedelta(days=default)
    first, last = _day(ask, "from", first), _day(ask, "to", ask.today)
    if first > last:
        raise InvalidValue("`from` must not be after `to`", param="from")
    if (last - first).days >= _MOST_DAYS:
        raise InvalidValue(f"at most {_MOST_DAYS} days are shown at once", param="from")
    return first, last


def _day(ask: Ask, name: str, default: date) -> date:
    text = ask.query.text(name)
    if not text:
        return default
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise InvalidValue(f"`{name}` must be a day such as {ask.today}", param=name) from None
    if not 1971 <= found.year <= 2200:
        raise InvalidValue(f"`{name}` must be a day such as {ask.today}", param=name)
    return found


def _by(ask: Ask) -> str:
    by = ask.query.text("by") or "key"
    if by not in _GROUPS:
        raise InvalidValue(f"`by` must be one of {', '.join(_GROUPS)}", param="by")
    return by


def _show(ask: Ask) -> str:
    show = ask.query.text("show") or "spend"
    if show not in _SHOWN:
        raise InvalidValue(f"`show` must be one of {', '.join(_SHOWN)}", param="show")
    return show


def _filters(ask: Ask) -> list[dict[str, Any]]:
    wanted = (("model", "model"), ("key", "api_key"), ("workspace", "workspace"))
    return [
        {"field": field, "operator": "eq", "value": ask.query.text(name)}
        for name, field in wanted
        if ask.query.text(name)
    ]


def _rows(ask: Ask, by: str, first: date, last: date) -> list[dict[str, Any]]:
    """The largest of what is shown."""
    metrics = [_SHOWN[_show(ask)], *_METRICS]
    asked = question(
        first, last, list(dict.fromkeys(metrics)), [_GROUPS[by]], filters=_filters(ask), limit=_MOST_ROWS
    )  # fmt: skip
    return rows(ask, asked)


def _chart(
    ask: Ask, by: str, found: list[dict[str, Any]], names: dict[str, str], first: date, last: date
) -> Stacked:
    """The five largest by day, and what is left of each day."""
    metric, field = _SHOWN[_show(ask)], _GROUPS[by]
    shown = len(found) if len(found) == SERIES + 1 else SERIES
    top = [row[field] for row in found[:shown]]
    of_top = [*_filters(ask), {"field": field, "operator": "in", "value": top}]
    parts = (
        rows(ask, question(first, last, [metric], [field], by_day=True, filters=of_top))
        if top
        else []
    )
    whole = rows(ask, question(first, last, [metric], by_day=True, filters=_filters(ask)))
    amounts: dict[str, dict[date, Amount]] = {_name(value, names): {} for value in top}
    for row in parts:
        amounts[_name(row[field], names)][date.fromisoformat(row["date__day"][:10])] = row[metric]
    totals = {date.fromisoformat(row["date__day"][:10]): row[metric] for row in whole}
    more = "others" if len(found) == _MOST_ROWS else f"{len(found) - len(top)} others"
    return topped(by_day.days_between(first, last), amounts, totals, rest=more)


def _row(
    row: dict[str, Any], by: str, names: dict[str, str], first: date, last: date
) -> dict[str, Any]:
    """A row with its name and its activity."""
    value = row[_GROUPS[by]]
    where = {by: value, "from": first, "to": last}
    link = f"/activity?{urlencode(where)}" if by in _LINKS and value is not None else None
    return row | {"name": _name(value, names), "link": link}


def _name(value: str | None, names: dict[str, str]) -> str:
    return "none" if value is None else names.get(value, value)


def _names(ask: Ask, by: str) -> dict[str, str]:
    """What ids are called: keys that were deleted keep their ids."""
    if by == "workspace":
        return workspaces(ask)
    if by != "key":
        return {}
    every = {"include_disabled": "true", "include_expired": "true"}
    found: dict[str, str] = {}
    for key in ask.all("/keys", query=every):
        is_taken = key["name"] in found.values()
        found[key["id"]] = f"{key['name']} ({key['label'][-4:]})" if is_taken else key["name"]
    return found


def _models(ask: Ask, first: date, last: date) -> list[str]:
    """The models that were used in the time."""
    asked = question(first, last, ["requests"], ["model"], limit=_MOST_ROWS)
    return [row["model"] for row in rows(ask, asked) if row["model"] is not None]


def _text(show: str) -> Callable[[Amount], str]:
    if show == "spend":
        return formats.usd
    return lambda amount: formats.short_count(int(amount)) or ""


PAGES: Final = (
    Page(
        path="/usage",
        title="Usage",
        view=usage,
        right="activity.read",
        query=_FIELDS,
        nav="Usage",
        icon="usage",
    ),
    Page(
        path="/usage/csv",
        title="Usage",
        view=as_csv,
        right="activity.read",
        query=_FIELDS,
        under="/usage",
    ),
)
ACTS: Final[tuple[Act, ...]] = ()
