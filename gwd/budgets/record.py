"""The records of budgets, pure: the budget's own, the workspace form, and the one inside a key's self-report."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gwd.budgets.shadow import WouldRefuse
from gwd.budgets.status import BudgetStatus, Kind
from gwd.core.clock import iso, iso_or_none
from gwd.core.fields import Count, Id, Moment, Percent, Usd, WholePercent
from gwd.core.money import usd_json, usd_or_none
from gwd.core.periods import Reset, Window
from gwd.core.spender import Scope


class ForecastRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Where a budget ends if spending goes on as it did."""

    projected_spend: Annotated[
        Usd | None,
        Meta(
            description="USD that will be spent when the period ends; null for a lifetime, which has no end."
        ),
    ]
    exhausts_at: Annotated[
        Moment | None,
        Meta(description="When the budget will be used up; null if it lasts its period."),
    ]


class WouldRefuseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one period that a shadow budget let through, and would have refused."""

    requests: Annotated[
        Count, Meta(description="How many were admitted while the budget was used up.")
    ]
    cost: Annotated[
        Usd,
        Meta(description="What they cost, USD; those under way are added when they end."),
    ]
    first_at: Annotated[
        Moment | None, Meta(description="When the first was admitted; null if there is none.")
    ]
    last_at: Annotated[
        Moment | None, Meta(description="When the last was admitted; null if there is none.")
    ]


class CountedRecord(WouldRefuseRecord, frozen=True, kw_only=True):
    """What a shadow budget would have refused in its period, and in the one before."""

    last_period: Annotated[
        WouldRefuseRecord | None,
        Meta(description="The same of the period before; null for a lifetime."),
    ]


class RaisedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A higher limit that holds for a time."""

    limit: Annotated[Usd, Meta(description="What may be spent in the period meanwhile, USD.")]
    until: Annotated[Moment, Meta(description="From when on `limit` of the budget holds again.")]
    by: Annotated[Id, Meta(description="The management key that raised it.")]


class BudgetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What an organization, workspace, key, tag or user may spend in a window, and where that stands."""

    id: Annotated[Id, Meta(description="`bud_…`")]
    scope: Annotated[Scope, Meta(description="What kind of thing the budget is for.")]
    scope_id: Annotated[
        str,
        Meta(
            description="The id of the organization, workspace or key that it is for, or the tag or user itself."
        ),
    ]
    interval: Annotated[
        Window,
        Meta(description="How often it starts again, UTC; weeks from Monday, a lifetime never."),
    ]
    kind: Annotated[
        Kind, Meta(description="A hard budget refuses once it is reached, a soft one only alerts.")
    ]
    shadow: Annotated[
        bool,
        Meta(description="Whether it only counts what it would refuse, until it is switched on."),
    ]
    limit: Annotated[
        Usd, Meta(description="What may be spent in the period, USD, as it was set for good.")
    ]
    limit_in_force: Annotated[
        Usd, Meta(description="What may be spent now, USD: `limit`, or what it is raised to.")
    ]
    raised: Annotated[
        RaisedRecord | None,
        Meta(description="The raise that holds; null if there is none."),
    ]
    spend: Annotated[Usd, Meta(description="What was spent in the period so far, USD.")]
    remaining: Annotated[
        Usd, Meta(description="What is left of the limit in force, USD, never negative.")
    ]
    would_refuse: Annotated[
        CountedRecord | None,
        Meta(description="What a shadow budget would have refused; null for one that is none."),
    ]
    percent_used: Annotated[
        Percent,
        Meta(
            description="How much of the limit in force is used, rounded down to hundredths; 100 means reached."
        ),
    ]
    period_start: Annotated[
        Moment | None, Meta(description="When the period began; null for a lifetime.")
    ]
    resets_at: Annotated[
        Moment | None, Meta(description="When the next period begins; null for a lifetime.")
    ]
    forecast: Annotated[
        ForecastRecord, Meta(description="Where it ends if spending goes on as it did.")
    ]
    include_byok: Annotated[
        bool,
        Meta(description="Whether inference through own provider keys counts, at its list price."),
    ]
    alert_thresholds: Annotated[
        list[WholePercent],
        Meta(description="At which percentages of the limit an alert is raised."),
    ]
    created_at: Annotated[Moment, Meta(description="When the budget was made.")]
    updated_at: Annotated[Moment, Meta(description="When the budget was last changed.")]


class WorkspaceBudgetRecord(BudgetRecord, frozen=True, kw_only=True):
    """The hard budget of a workspace for one interval, with the names of the workspace form as well."""

    limit_usd: Annotated[Usd, Meta(description="The same as `limit`.")]
    reset_interval: Annotated[
        Reset | None, Meta(description="The same as `interval`; null for a lifetime.")
    ]
    workspace_id: Annotated[Id, Meta(description="The same as `scope_id`.")]
    include_byok_in_budgets: Annotated[bool, Meta(description="The same as `include_byok`.")]


class KeyBudgetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A budget that the requests of a key count against, as the key sees it."""

    budget_id: Annotated[Id, Meta(description="`bud_…`")]
    scope: Annotated[
        Scope,
        Meta(
            description="Whether it is the key's own, its workspace's, all's, a tag's or a user's."
        ),
    ]
    subject: Annotated[
        str | None,
        Meta(description="The tag or user that it is for, such as `tag:nightly`; null for others."),
    ]
    interval: Annotated[Window, Meta(description="How often it starts again, UTC.")]
    kind: Annotated[
        Kind, Meta(description="A hard budget refuses once it is reached, a soft one only alerts.")
    ]
    shadow: Annotated[bool, Meta(description="Whether a hard budget refuses nothing yet.")]
    limit: Annotated[Usd, Meta(description="What may be spent in the period now, USD.")]
    spend: Annotated[Usd, Meta(description="What was spent in the period so far, USD.")]
    remaining: Annotated[Usd, Meta(description="What is left of it, USD, never negative.")]
    resets_at: Annotated[
        Moment | None, Meta(description="When the next period begins; null for a lifetime.")
    ]
    limit_usd: Annotated[Usd, Meta(description="The same as `limit`.")]
    spend_usd: Annotated[Usd, Meta(description="The same as `spend`.")]
    remaining_usd: Annotated[Usd, Meta(description="The same as `remaining`.")]
    reset_interval: Annotated[
        Reset | None, Meta(description="The same as `interval`; null for a lifetime.")
    ]
    include_byok: Annotated[
        bool, Meta(description="Whether inference through own provider keys counts.")
    ]
    guardrail_id: Annotated[
        None, Meta(description="Always null: budgets stand by themselves here.")
    ] = None


def record(status: BudgetStatus) -> BudgetRecord:
    """A budget as it stands."""
    return BudgetRecord(**_shown(status))


def workspace_record(status: BudgetStatus) -> WorkspaceBudgetRecord:
    """The same with the names of the workspace form."""
    budget = status.budget
    return WorkspaceBudgetRecord(
        **_shown(status),
        limit_usd=usd_json(budget.limit_nano),
        reset_interval=_reset_interval(status),
        workspace_id=budget.scope_id,
        include_byok_in_budgets=budget.include_byok,
    )


def key_record(status: BudgetStatus) -> KeyBudgetRecord:
    """One of `budgets` in GET /auth/key."""
    budget = status.budget
    return KeyBudgetRecord(
        budget_id=budget.id,
        scope=budget.scope,
        subject=budget.subject,
        interval=budget.interval,
        kind=budget.kind,
        shadow=budget.shadow,
        limit=usd_json(status.limit_nano),
        spend=usd_json(status.spent_nano),
        remaining=usd_json(status.remaining_nano),
        resets_at=iso_or_none(status.resets_at_us),
        limit_usd=usd_json(status.limit_nano),
        spend_usd=usd_json(status.spent_nano),
        remaining_usd=usd_json(status.remaining_nano),
        reset_interval=_reset_interval(status),
        include_byok=budget.include_byok,
    )


def percent(spent_nano: int, limit_nano: int) -> float:
    """How much of the limit is used, rounded down to hundredths of a percent: 100 means reached."""
    return spent_nano * 10_000 // limit_nano / 100


def _shown(status: BudgetStatus) -> dict[str, Any]:
    budget = status.budget
    return {
        "id": budget.id,
        "scope": budget.scope,
        "scope_id": budget.scope_id,
        "interval": budget.interval,
        "kind": budget.kind,
        "shadow": budget.shadow,
        "limit": usd_json(budget.limit_nano),
        "limit_in_force": usd_json(status.limit_nano),
        "raised": _raised(status),
        "spend": usd_json(status.spent_nano),
        "remaining": usd_json(status.remaining_nano),
        "would_refuse": _counted(status),
        "percent_used": percent(status.spent_nano, status.limit_nano),
        "period_start": iso_or_none(status.period_start_us),
        "resets_at": iso_or_none(status.resets_at_us),
        "forecast": ForecastRecord(
            projected_spend=usd_or_none(status.forecast.projected_nano),
            exhausts_at=iso_or_none(status.forecast.exhausts_at_us),
        ),
        "include_byok": budget.include_byok,
        "alert_thresholds": list(budget.alert_thresholds),
        "created_at": iso(budget.created_at_us),
        "updated_at": iso(budget.updated_at_us),
    }


def _raised(status: BudgetStatus) -> RaisedRecord | None:
    budget = status.budget
    if not status.is_raised or budget.raised_nano is None or budget.raised_until_us is None:
        return None
    return RaisedRecord(
        limit=usd_json(budget.raised_nano),
        until=iso(budget.raised_until_us),
        by=budget.raised_by or "",
    )


def _counted(status: BudgetStatus) -> CountedRecord | None:
    if status.would_refuse is None:
        return None
    before, include_byok = status.would_refuse_before, status.budget.include_byok
    return CountedRecord(
        **_requests(status.would_refuse, include_byok=include_byok),
        last_period=None
        if before is None
        else WouldRefuseRecord(**_requests(before, include_byok=include_byok)),
    )


def _requests(counted: WouldRefuse, *, include_byok: bool) -> dict[str, Any]:
    return {
        "requests": counted.requests,
        "cost": usd_json(counted.cost_nano(include_byok=include_byok)),
        "first_at": iso_or_none(counted.first_at_us),
        "last_at": iso_or_none(counted.last_at_us),
    }


def _reset_interval(status: BudgetStatus) -> Reset | None:
    interval = status.budget.interval
    return None if interval == "lifetime" else interval
