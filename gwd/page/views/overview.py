"""The overview: is all well, and what does it cost."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from gwd.core.errors import NotFound
from gwd.page import by_day
from gwd.page.answer import Shown
from gwd.page.ask import Ask
from gwd.page.balance import balance
from gwd.page.by_day import question, rows
from gwd.page.formats import Amount
from gwd.page.request import Field
from gwd.page.table import Act, Page

_MONTH: Final = re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])", re.ASCII)
_MOST_KEYS: Final = 5
_MOST_BUDGETS: Final = 6
_AT_RISK: Final = 80
_SOON_DAYS: Final = 14


def overview(ask: Ask) -> Shown:
    """Four figures, spend by day, the balance, budgets at risk, keys by spend; or how to begin."""
    month = _month(ask)
    first, end = by_day.month_ends(month)
    last = min(end, ask.today)
    spend = by_day.spend_by(ask, first, last, "model", rest="models")
    keys = _names(ask)
    values = {
        "month": month,
        "is_now": month == ask.month,
        "before": by_day.month_before(month),
        "first": first,
        "last": last,
        "end": end,
        "spend": spend,
        "credits": ask("/credits")["data"],
        "hour": _hour(ask),
        "notes": _notes(ask),
        "expected": _expected(spend.total, first, end, ask) if month == ask.month else None,
        "spent_today": spend.totals[-1] if month == ask.month else None,
        "budgets": _budgets_at_risk(ask),
        "scopes": keys | _workspaces(ask) | {ask.visit.caller.organization_id: "all"},
        "keys": _keys_by_spend(ask, first, last, keys),
        "balance": balance(ask, month),
        "endpoints": _endpoints(ask),
    }
    if spend.is_empty and month == ask.month and not _has_requests(ask):
        return Shown(template="overview-empty.html", values=values | _beginning(ask, keys))
    return Shown(template="overview.html", values=values)


def _month(ask: Ask) -> str:
    """The month that is looked at. Raises NotFound for what is none, or has not begun."""
    month = ask.query.text("month") or ask.month
    if _MONTH.fullmatch(month) is None or month > ask.month:
        raise NotFound("there is no such month here")
    return month


def _hour(ask: Ask) -> Any:
    """What requests came to in the last hour."""
    since = (ask.now - timedelta(hours=1)).isoformat()
    asked = {"range": {"from": since}, "metrics": ["requests", "errors", "refusals"]}
    return rows(ask, asked)[0]


def _has_requests(ask: Ask) -> bool:
    return bool(ask("/generations", query={"limit": 1})["data"])


def _expected(spent: Amount, first: date, end: date, ask: Ask) -> Decimal | None:
    """What the month comes to if it goes on as it did, in cents a person can read."""
    begun = datetime.combine(first, time(), UTC)
    gone_s = int((ask.now - begun).total_seconds())
    if gone_s < 86_400:
        return None
    whole_s = ((end - first).days + 1) * 86_400
    return Decimal(spent) * whole_s / gone_s


def _notes(ask: Ask) -> list[dict[str, Any]]:
    """What needs a person: a balance that is low, destinations that were disabled, models that go away."""
    notes: list[dict[str, Any]] = []
    coming = ask.live("/catalog/lifecycle")
    for event in coming["data"] if coming else []:
        days = (datetime.fromisoformat(event["at"]).date() - ask.today).days
        if event["kind"] == "retirement" and days <= _SOON_DAYS and event["requests_last_30d"]:
            notes.append({"kind": "retirement", "event": event, "days": days})
    if ask.may("notifications.read"):
        for each in ask("/notifications/destinations")["data"]:
            if each["disabled_at"] is not None:
                notes.append({"kind": "destination", "destination": each})
    threshold = ask("/organization/settings")["data"]["low_balance_threshold"]
    available = ask("/credits")["data"]["available"]
    if threshold is not None and available < threshold:
        notes.append({"kind": "balance", "available": available, "threshold": threshold})
    return notes


def _names(ask: Ask) -> dict[str, str]:
    query = {"include_disabled": "true", "include_expired": "true", "limit": 100}
    return {key["id"]: key["name"] for key in ask("/keys", query=query)["data"]}


def _workspaces(ask: Ask) -> dict[str, str]:
    return {each["id"]: each["name"] for each in ask("/workspaces")["data"]}


def _budgets_at_risk(ask: Ask) -> list[Any]:
    """Those that are nearly used up or will be before they start anew, the nearest first."""
    found = [
        each
        for each in ask("/budgets", query={"limit": 100})["data"]
        if each["percent_used"] >= _AT_RISK or each["forecast"]["exhausts_at"] is not None
    ]
    return sorted(found, key=lambda each: -each["percent_used"])[:_MOST_BUDGETS]


def _keys_by_spend(ask: Ask, first: date, last: date, names: dict[str, str]) -> list[Any]:
    """The dearest keys with their requests and their spend by day."""
    found = rows(ask, question(first, last, ["cost", "requests"], ["api_key"], by_day=True))
    days = by_day.days_between(first, last)
    cost = by_day.by_name(found, "api_key")
    requests = by_day.by_name(found, "api_key", "requests")
    made: list[dict[str, Any]] = [
        {
            "id": key_id,
            "name": names.get(key_id),
            "cost": sum(by.values()),
            "requests": sum(requests[key_id].values()),
            "by_day": [by.get(day, 0) for day in days],
        }
        for key_id, by in cost.items()
    ]
    return sorted(made, key=lambda each: (-each["cost"], each["id"]))[:_MOST_KEYS]


def _endpoints(ask: Ask) -> Sequence[Any] | None:
    status = ask.live("/operator/status")
    return None if status is None else status["data"]["endpoints"]


def _beginning(ask: Ask, keys: dict[str, str]) -> dict[str, Any]:
    """What is there of what a first request needs."""
    providers = ask("/catalog/providers", query={"limit": 1})
    models = ask("/catalog/models", query={"limit": 1})
    return {
        "providers": providers["total_count"],
        "models": models["total_count"],
        "inference_keys": [name for key_id, name in keys.items() if key_id.startswith("key_")],
    }


PAGES: Final = (
    Page(
        path="/",
        title="Overview",
        view=overview,
        right="credits.read",
        query=(Field("month", 20),),
        live=("/catalog/lifecycle", "/operator/status"),
        nav="Overview",
        icon="overview",
        noun="month",
    ),
)
ACTS: Final[tuple[Act, ...]] = ()
