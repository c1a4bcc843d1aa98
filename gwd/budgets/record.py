"""The JSON records of budgets, pure: the budget's own, the workspace form, and the one inside a key's self-report."""

from typing import Any

import msgspec

from gwd.budgets.status import BudgetStatus
from gwd.core.clock import iso
from gwd.core.money import usd_json


def record(status: BudgetStatus) -> dict[str, Any]:
    """GET /budgets/{id}."""
    budget = status.budget
    return {
        "id": budget.id,
        "scope": budget.scope,
        "scope_id": budget.scope_id,
        "interval": budget.interval,
        "kind": budget.kind,
        "limit": usd_json(budget.limit_nano),
        "spend": usd_json(status.spent_nano),
        "remaining": usd_json(status.remaining_nano),
        "percent_used": percent(status.spent_nano, budget.limit_nano),
        "period_start": _iso(status.period_start_us),
        "resets_at": _iso(status.resets_at_us),
        "forecast": {
            "projected_spend": _usd(status.forecast.projected_nano),
            "exhausts_at": _iso(status.forecast.exhausts_at_us),
        },
        "include_byok": budget.include_byok,
        "alert_thresholds": list(budget.alert_thresholds),
        "created_at": iso(budget.created_at_us),
        "updated_at": iso(budget.updated_at_us),
    }


def workspace_record(status: BudgetStatus) -> dict[str, Any]:
    """The same with the names of the workspace form (`reset_interval` is null for lifetime)."""
    budget = status.budget
    return {
        **record(status),
        "limit_usd": usd_json(budget.limit_nano),
        "reset_interval": _reset_interval(status),
        "workspace_id": budget.scope_id,
        "include_byok_in_budgets": budget.include_byok,
    }


def key_record(status: BudgetStatus) -> dict[str, Any]:
    """One of `budgets` in GET /auth/key."""
    budget = status.budget
    return {
        "budget_id": budget.id,
        "scope": budget.scope,
        "interval": budget.interval,
        "kind": budget.kind,
        "limit": usd_json(budget.limit_nano),
        "spend": usd_json(status.spent_nano),
        "remaining": usd_json(status.remaining_nano),
        "resets_at": _iso(status.resets_at_us),
        "limit_usd": usd_json(budget.limit_nano),
        "spend_usd": usd_json(status.spent_nano),
        "remaining_usd": usd_json(status.remaining_nano),
        "reset_interval": _reset_interval(status),
        "include_byok": budget.include_byok,
        "guardrail_id": None,
    }


def percent(spent_nano: int, limit_nano: int) -> float:
    """How much of the limit is used, rounded down to hundredths of a percent: 100 means reached."""
    return spent_nano * 10_000 // limit_nano / 100


def _reset_interval(status: BudgetStatus) -> str | None:
    return None if status.budget.interval == "lifetime" else status.budget.interval


def _usd(nano: int | None) -> msgspec.Raw | None:
    return None if nano is None else usd_json(nano)


def _iso(at_us: int | None) -> str | None:
    return None if at_us is None else iso(at_us)
