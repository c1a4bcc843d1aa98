"""Activity: what happened, request by request, and one request explained."""

from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from gwd.core.errors import NotFound
from gwd.page.answer import Download, Shown
from gwd.page.ask import Ask
from gwd.page.csv_file import csv_file
from gwd.page.request import Field
from gwd.page.table import Act, Page
from gwd.page.views.keys import workspaces
from gwd.page.views.usage import span_of

_A_PAGE: Final = 50
_MOST_LINES: Final = 10_000
_A_WEEK: Final = 7
_FILTERS: Final = {
    "key": "key_id",
    "model": "model",
    "status": "status",
    "user": "user",
    "session": "session_id",
    "app": "app",
    "tag": "tag",
    "workspace": "workspace_id",
}
_OF_ALL_TIME: Final = ("key", "model")
"""Filters that are quick however long ago it was; any other looks at a week unless it is told more."""
_STATUSES: Final = ("succeeded", "incomplete", "failed", "cancelled", "refused")
_IDS: Final = ("gen-", "msg_", "resp_")
_FIELDS: Final = (
    *(Field(name, 300) for name in _FILTERS),
    *(Field("q", 300), Field("from", 20), Field("to", 20), Field("last", 4)),
    *(Field("before", 100), Field("after", 100)),
)
_COLUMNS: Final = (
    *(
        "settled_at",
        "id",
        "status",
        "model",
        "requested_model",
        "provider_name",
        "key_id",
        "key_name",
    ),
    *(
        "workspace_id",
        "external_user",
        "session_id",
        "title",
        "dialect",
        "streamed",
        "tokens_prompt",
    ),
    *("native_tokens_cached", "tokens_completion", "total_cost", "latency", "attempts", "is_byok"),
)

_encoder: Final = msgspec.json.Encoder(decimal_format="number")


def activity(ask: Ask) -> Shown:
    """The list, newest first."""
    return Shown(template="activity.html", values=_list(ask) | {"receipt": None})


def receipt(ask: Ask) -> Shown:
    """One request with the list beside it."""
    record = ask("/generation", query={"id": ask.path["generation"]})["data"]
    values = _list(ask) | {"receipt": record, "classes": _classes(record), "times": _times(record)}
    return Shown(template="activity.html", values=values, title="Receipt")


def as_json(ask: Ask) -> Download:
    """The record of one request, as the API has it."""
    record = ask("/generation", query={"id": ask.path["generation"]})
    body = msgspec.json.format(_encoder.encode(record))
    return Download(name=f"{record['data']['id']}.json", content_type="application/json", body=body)


def as_csv(ask: Ask) -> Download:
    """What is filtered, at most ten thousand lines."""
    wanted = _wanted(ask)
    lines: list[Any] = []
    while len(lines) < _MOST_LINES:
        found = ask("/generations", query=wanted | {"limit": 100, "count": "false"})
        lines += found["data"]
        if found["next"] is None:
            break
        wanted = wanted | {"after": found["next"]}
    rows = ([line[name] for name in _COLUMNS] for line in lines)
    return csv_file(f"activity-{ask.today}.csv", _COLUMNS, rows)


def _list(ask: Ask) -> dict[str, Any]:
    found = _found(ask)
    kept = {
        name: ask.query.text(name)
        for name in ask.query.texts
        if name not in ("after", "before", "did", "live") and ask.query.text(name)
    }
    return {
        "days": _by_day(found["data"]),
        "next": found["next"],
        "newer": found["previous"] if ask.query.text("after") else None,
        "kept": kept,
        "query": urlencode(kept),
        "keys": _keys(ask),
        "models": _models(ask),
        "statuses": _STATUSES,
        "filters": {name: ask.query.text(name) for name in (*_FILTERS, "q", "from", "to")},
        "workspaces": workspaces(ask),
        "limited_to": None if _has_time(ask) or _is_quick(ask) else _A_WEEK,
    }


def _found(ask: Ask) -> dict[str, Any]:
    """A page of the list. `q` is an id, a user, an app or a session, whichever there is."""
    text, wanted = ask.query.text("q"), _wanted(ask)
    asked = wanted | {"limit": _A_PAGE, "count": "false"}
    if text.startswith(_IDS):
        try:
            one = ask("/generation", query={"id": text})["data"]
        except NotFound:
            return {"data": [], "next": None, "previous": None}
        return {"data": [one], "next": None, "previous": None}
    if not text:
        return _page(ask, asked)
    found: dict[str, Any] = {}
    for name in ("user", "app", "session_id"):
        found = _page(ask, {name: text} | asked)
        if found["data"]:
            break
    return found


def _page(ask: Ask, asked: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = ask("/generations", query=asked)
    return found


def _wanted(ask: Ask) -> dict[str, Any]:
    """The filters as GET /generations takes them."""
    wanted: dict[str, Any] = {
        field: ask.query.or_none(name) for name, field in _FILTERS.items() if ask.query.text(name)
    }
    for name in ("after", "before"):
        if ask.query.text(name):
            wanted[name] = ask.query.text(name)
    if _has_time(ask):
        first, last = span_of(ask)
        wanted["from"] = f"{first}T00:00:00Z"
        wanted["to"] = f"{last + timedelta(days=1)}T00:00:00Z"
    elif not _is_quick(ask):
        wanted["from"] = f"{ask.today - timedelta(days=_A_WEEK - 1)}T00:00:00Z"
    return wanted


def _has_time(ask: Ask) -> bool:
    return any(ask.query.text(name) for name in ("from", "to", "last"))


def _is_quick(ask: Ask) -> bool:
    slow = [name for name in (*_FILTERS, "q") if name not in _OF_ALL_TIME]
    return not any(ask.query.text(name) for name in slow)


def _by_day(records: list[Any]) -> list[tuple[date, list[Any]]]:
    """By the day on which they ended, as they are in the list."""

    def day(record: Any) -> date:
        return datetime.fromisoformat(record["settled_at"]).date()

    return [(each, list(group)) for each, group in groupby(records, key=day)]


def _keys(ask: Ask) -> dict[str, str]:
    query = {"include_disabled": "true", "include_expired": "true", "limit": 100}
    return {
        key["id"]: key["name"]
        for key in ask("/keys", query=query)["data"]
        if key["type"] == "inference"
    }


def _models(ask: Ask) -> list[str]:
    return [each["id"] for each in ask("/catalog/models", query={"limit": 100})["data"]]


def _classes(record: Any) -> list[tuple[str, int | None, Any, Any]]:
    """(class, tokens, USD per million, USD) of what it cost."""
    cost = record["cost"]
    rates = (record["gateway_metadata"] or {}).get("pricing") or {}
    prompt = (
        record["tokens_prompt"]
        - record["native_tokens_cached"]
        - record["native_tokens_cache_write"]
    )
    output = record["tokens_completion"] - record["native_tokens_reasoning"]
    classes = [
        ("Prompt", prompt, rates.get("prompt_per_million"), cost["prompt"]),
        ("Cache read", record["native_tokens_cached"], rates.get("cache_read_per_million"), cost["cache_read"]),
        ("Cache write", record["native_tokens_cache_write"], rates.get("cache_write_per_million"), cost["cache_write"]),
        ("Completion", output, rates.get("completion_per_million"), cost["completion"]),
        ("Reasoning", record["native_tokens_reasoning"], rates.get("reasoning_per_million"), cost["reasoning"]),
        ("Request fee", None, None, cost["request_fee"]),
        ("Web searches", record["web_searches"], None, cost["web_search"]),
        ("Platform fee", None, None, cost["platform_fee"]),
    ]  # fmt: skip
    return [each for each in classes if each[3] or each[0] in ("Prompt", "Completion") or each[1]]


def _times(record: Any) -> list[tuple[str, str, Any]]:
    """(colour, what, milliseconds) of the time it took, one after the other."""
    timing = (record["gateway_metadata"] or {}).get("timing_ms")
    if timing is None:
        first = record["ttft"] or 0
        return [
            ("c1", "To first token", first),
            ("c2", "Generation", record["generation_time"]),
            ("c0", "Else", max(0, record["latency"] - first - record["generation_time"])),
        ]
    before = timing["routing"] + timing["fallback"]
    return [
        ("c0", "Routing", timing["routing"]),
        ("c3", "Failed attempts", timing["fallback"]),
        ("c1", "To first token", max(0, timing["ttft"] - before)),
        ("c2", "Generation", timing["generation"]),
    ]


PAGES: Final = (
    Page(
        path="/activity",
        title="Activity",
        view=activity,
        right="activity.read",
        query=_FIELDS,
        nav="Activity",
        icon="activity",
    ),
    Page(
        path="/activity/csv",
        title="Activity",
        view=as_csv,
        right="activity.read",
        query=_FIELDS,
        under="/activity",
    ),
    Page(
        path="/activity/<generation>",
        title="Receipt",
        view=receipt,
        right="activity.read",
        query=_FIELDS,
        under="/activity",
        noun="request",
    ),
    Page(
        path="/activity/<generation>/json",
        title="Receipt",
        view=as_json,
        right="activity.read",
        under="/activity",
        noun="request",
    ),
)
ACTS: Final[tuple[Act, ...]] = ()
