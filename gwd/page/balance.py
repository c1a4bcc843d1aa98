"""The balance over a month and when it is used up: from the statement, the bookings and what was charged by day."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from gwd.core.errors import GatewayError
from gwd.page import by_day
from gwd.page.ask import Ask
from gwd.page.by_day import question, rows
from gwd.page.formats import Amount

MOVES: Final = ("purchase", "grant", "refund", "expiry", "adjustment")
"""The types of ledger entries that are no request's."""
_WEEK: Final = 7
_MOST_DAYS: Final = 366


def balance(ask: Ask, month: str) -> dict[str, Any] | None:
    """The balance over the month and when it is used up; None where the caller may not see the ledger."""
    if not ask.may("ledger.read") or ask.visit.caller.workspace_id is not None:
        return None
    first, _ = by_day.month_ends(month)
    try:
        statement = ask("/statements/<month>", month=month)["data"]
    except GatewayError as error:
        return {"problem": error.message}
    available, a_day = ask("/credits")["data"]["available"], _a_day(ask)
    lasts = int(available / a_day) if a_day > 0 and available > 0 else 0
    return {
        "points": _points(ask, first, statement),
        "a_day": a_day,
        "topup": ask("/credits/auto-topup")["data"],
        "available": available,
        "ends": ask.today + timedelta(days=lasts) if lasts <= _MOST_DAYS else None,
    }


def _points(ask: Ask, first: date, statement: dict[str, Any]) -> list[tuple[datetime, Amount]]:
    """What was owned at the end of each day and at each booking, from the opening balance on."""
    charged = {
        date.fromisoformat(row["date__day"][:10]): row["cost"]
        for row in rows(ask, question(first, ask.today, ["cost"], by_day=True))
    }
    owned: Amount = statement["opening_balance"]
    points = [(datetime.combine(first, time(), UTC), owned)]
    booked = _booked(ask, first)
    for day in by_day.days_between(first, ask.today):
        for at, amount in (each for each in booked if each[0].date() == day):
            points.append((at, owned))
            owned += amount
            points.append((at, owned))
        owned -= charged.get(day, 0)
        points.append((min(datetime.combine(day + timedelta(days=1), time(), UTC), ask.now), owned))
    return points


def _booked(ask: Ask, first: date) -> list[tuple[datetime, Amount]]:
    """Purchases and the like since a day, oldest first."""
    found = [
        (datetime.fromisoformat(entry["created_at"]), entry["amount"])
        for kind in MOVES
        for entry in ask(
            "/credits/ledger", query={"type": kind, "from": f"{first}T00:00:00Z", "limit": 100}
        )["data"]
    ]
    return sorted(found, key=lambda each: each[0])


def _a_day(ask: Ask) -> Decimal:
    """What was charged on one of the last seven whole days, on average."""
    asked = question(ask.today - timedelta(days=_WEEK), ask.today - timedelta(days=1), ["cost"])
    return Decimal(rows(ask, asked)[0]["cost"]) / _WEEK
