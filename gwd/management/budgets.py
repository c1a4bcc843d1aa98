"""Budgets where rooms meet: a limit tried on what was spent before, raises that begin and end."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gwd import alerts, budgets
from gwd.activity.past_limit import PastLimit, past_limit
from gwd.alerts import threshold_alerts
from gwd.audit import service as audit
from gwd.budgets import Budget, BudgetScope, WouldRefuseRecord
from gwd.budgets.service import Limit, WithByok
from gwd.core.clock import iso, iso_or_none
from gwd.core.errors import InvalidValue
from gwd.core.fields import Count, Moment, Usd
from gwd.core.money import usd_json
from gwd.core.periods import Window, period_end_us, period_start_us
from gwd.core.spender import Scope
from gwd.ledger import ledger_time_us
from gwd.store import Connection

MAX_PERIODS: Final = 100


class SimulateBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A hard budget that is not made, tried on the requests of its last periods."""

    scope: Annotated[Scope, Meta(description="Whose spending it would limit.")]
    interval: Annotated[
        Window, Meta(description="How often it would start anew, in UTC; `lifetime` never does.")
    ]
    limit: Limit
    scope_id: Annotated[
        str | None,
        Meta(
            description="The workspace, by id or slug, the key, the tag, or the user as requests name them. Null for"
            " the organization itself."
        ),
    ] = None
    include_byok: WithByok = False
    periods: Annotated[
        int,
        Meta(
            description="How many periods to look at, this one included; a lifetime has one.",
            extra_json_schema={"minimum": 1, "maximum": MAX_PERIODS},
        ),
    ] = 6


class SimulatedPeriod(msgspec.Struct, frozen=True, kw_only=True):
    """One period of a budget that was not there."""

    period_start: Annotated[
        Moment | None, Meta(description="When the period began; null for a lifetime.")
    ]
    period_end: Annotated[
        Moment | None, Meta(description="When the next one begins; null for a lifetime.")
    ]
    requests: Annotated[Count, Meta(description="How many admitted requests ended in it.")]
    spend: Annotated[Usd, Meta(description="What they cost, USD, as the budget would count it.")]
    reached_at: Annotated[
        Moment | None, Meta(description="When the limit was reached; null if it was not.")
    ]
    would_refuse: Annotated[
        WouldRefuseRecord, Meta(description="The requests that came in it after that.")
    ]


class SimulationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a hard budget would have refused, had it been there. Nothing was made or changed."""

    scope: Annotated[Scope, Meta(description="Whose spending it would limit.")]
    scope_id: Annotated[
        str, Meta(description="The id of the organization, workspace or key, or the tag or user.")
    ]
    interval: Annotated[Window, Meta(description="How often it would start anew, UTC.")]
    limit: Annotated[Usd, Meta(description="What could be spent in a period, USD.")]
    include_byok: Annotated[
        bool, Meta(description="Whether inference through own provider keys would count.")
    ]
    requests: Annotated[
        Count, Meta(description="How many requests it would have refused in all these periods.")
    ]
    cost: Annotated[Usd, Meta(description="What those cost, USD.")]
    periods: Annotated[
        list[SimulatedPeriod], Meta(description="Each period, this one first, then backwards.")
    ]


def simulate(
    connection: Connection,
    organization_id: str,
    body: SimulateBudget,
    where: BudgetScope,
    *,
    now_us: int,
) -> SimulationRecord:
    """What a budget would have refused in its last periods, from the records. Raises InvalidValue."""
    limit_nano = budgets.limit_of(body.limit, "limit")
    if not 1 <= body.periods <= MAX_PERIODS:
        raise InvalidValue(f"periods must be from 1 to {MAX_PERIODS}", param="periods")
    at_us = ledger_time_us(connection, organization_id, now_us=now_us)
    shown, refused, refused_nano = [], 0, 0
    for start_us, end_us in _periods(body.interval, at_us, body.periods):
        past = past_limit(
            connection,
            organization_id,
            where.scope,
            where.spend_id if where.scope == "key" else where.scope_id,
            limit_nano=limit_nano,
            include_byok=body.include_byok,
            from_us=start_us,
            to_us=at_us + 1 if end_us is None else end_us,
        )
        refused += past.refused
        refused_nano += past.refused_nano
        shown.append(_period(past, start_us, end_us))
    return SimulationRecord(
        scope=where.scope,
        scope_id=where.scope_id,
        interval=body.interval,
        limit=usd_json(limit_nano),
        include_byok=body.include_byok,
        requests=refused,
        cost=usd_json(refused_nano),
        periods=shown,
    )


def raise_limit(
    connection: Connection,
    known: Budget,
    new: budgets.NewRaise,
    *,
    by: str,
    app_url: str,
    now_us: int,
) -> Budget:
    """Raise a limit for a time. What the higher limit has reached already is not told: who raises it knows."""
    at_us = ledger_time_us(connection, known.organization_id, now_us=now_us)
    if known.raised_until_us is not None and not known.is_raised(at_us):
        known = _lapse(connection, known, app_url=app_url, now_us=now_us)
    raised = budgets.raise_limit(connection, known, new, by=by, now_us=now_us, at_us=at_us)
    reached = budgets.standing_crossing(connection, raised, now_us=now_us)
    if reached is not None:
        mark = alerts.Mark(name=reached.crossing.mark, value=reached.crossing.threshold_percent)
        alerts.mark_once(connection, mark, now_us=now_us)
    return raised


def end_lapsed_raises(connection: Connection, *, app_url: str, now_us: int) -> int:
    """Take away the raises that are over, with an audit line each, and tell what their budgets have reached now.

    The limits as they were set hold since then already. Gives back how many there were.
    """
    lapsed = budgets.lapsed_raises(connection, now_us=now_us)
    for budget in lapsed:
        _lapse(connection, budget, app_url=app_url, now_us=now_us)
    return len(lapsed)


def raise_details(budget: Budget) -> dict[str, object]:
    """What an audit line says of a raise."""
    until_us = budget.raised_until_us
    return {
        "limit_nano": budget.limit_nano,
        "raised_nano": budget.raised_nano,
        "until": iso_or_none(until_us),
        "raised_by": budget.raised_by,
    }


def _lapse(connection: Connection, known: Budget, *, app_url: str, now_us: int) -> Budget:
    audit.record(
        connection,
        None,
        "budget.end_raise",
        "budget",
        known.id,
        raise_details(known),
        now_us=now_us,
        organization_id=known.organization_id,
    )
    budget = budgets.end_raise(connection, known, now_us=now_us)
    threshold_alerts.raise_standing_budget(connection, budget, app_url=app_url, now_us=now_us)
    return budget


def _periods(interval: Window, at_us: int, wanted: int) -> list[tuple[int, int | None]]:
    """The period that holds a moment and those before it, as start and end."""
    found: list[tuple[int, int | None]] = []
    while len(found) < wanted:
        start_us = period_start_us(interval, at_us)
        found.append((start_us, period_end_us(interval, at_us)))
        if start_us == 0:
            break
        at_us = start_us - 1
    return found


def _period(past: PastLimit, start_us: int, end_us: int | None) -> SimulatedPeriod:
    return SimulatedPeriod(
        period_start=None if end_us is None else iso(start_us),
        period_end=iso_or_none(end_us),
        requests=past.requests,
        spend=usd_json(past.spent_nano),
        reached_at=iso_or_none(past.reached_at_us),
        would_refuse=WouldRefuseRecord(
            requests=past.refused,
            cost=usd_json(past.refused_nano),
            first_at=iso_or_none(past.first_at_us),
            last_at=iso_or_none(past.last_at_us),
        ),
    )
