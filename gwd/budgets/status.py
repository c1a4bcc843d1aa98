"""A budget and where it stands: spend of the current period, reset, forecast."""

from typing import Final, Literal, NamedTuple

import msgspec

from gwd.budgets.forecast import LOOK_BACK_DAYS, Forecast, for_lifetime, in_period
from gwd.core.clock import US_PER_DAY
from gwd.core.periods import Window, day_of, period_end_us, period_start_us
from gwd.ledger import ledger_time_us
from gwd.spend import between_nano, total_nano
from gwd.store.connection import Connection, Row

Scope = Literal["organization", "workspace", "key"]
Kind = Literal["hard", "soft"]

_thresholds: Final = msgspec.json.Decoder(tuple[int, ...])


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """`spend_id` names the counter: the scope's own id, or the family of a key."""

    id: str
    organization_id: str
    scope: Scope
    scope_id: str
    spend_id: str
    interval: Window
    kind: Kind
    limit_nano: int
    include_byok: bool
    alert_thresholds: tuple[int, ...]
    created_at_us: int
    updated_at_us: int


class BudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A budget as it stands at one moment. A lifetime budget has no period: it neither starts nor resets."""

    budget: Budget
    spent_nano: int
    period_start_us: int | None
    resets_at_us: int | None
    forecast: Forecast

    @property
    def remaining_nano(self) -> int:
        """What may still be spent; never negative."""
        return max(0, self.budget.limit_nano - self.spent_nano)


class BudgetRow(NamedTuple):
    """The columns of a budget as they are stored, in the order of the table."""

    id: str
    organization_id: str
    scope: Scope
    scope_id: str
    spend_id: str
    interval: Window
    kind: Kind
    limit_nano: int
    include_byok: int
    alert_thresholds: str
    created_at: int
    updated_at: int


def budget_of(columns: Row) -> Budget:
    """A budget from its columns, in the order of the table."""
    row = BudgetRow._make(columns)
    return Budget(
        id=row.id,
        organization_id=row.organization_id,
        scope=row.scope,
        scope_id=row.scope_id,
        spend_id=row.spend_id,
        interval=row.interval,
        kind=row.kind,
        limit_nano=row.limit_nano,
        include_byok=bool(row.include_byok),
        alert_thresholds=_thresholds.decode(row.alert_thresholds),
        created_at_us=row.created_at,
        updated_at_us=row.updated_at,
    )


def status_of(connection: Connection, budget: Budget, *, now_us: int) -> BudgetStatus:
    """Where a budget stands now."""
    at_us = ledger_time_us(connection, budget.organization_id, now_us=now_us)
    return status_at(connection, budget, at_us)


def status_at(connection: Connection, budget: Budget, at_us: int) -> BudgetStatus:
    """Where a budget stands at a moment of ledger time."""
    spent_nano = spent(connection, budget, at_us=at_us)
    end_us = period_end_us(budget.interval, at_us)
    start_us = period_start_us(budget.interval, at_us)
    if end_us is None:
        since_us = (day_of(at_us) - LOOK_BACK_DAYS + 1) * US_PER_DAY
        recent_nano = between_nano(
            connection,
            budget.spend_id,
            from_us=since_us,
            to_us=at_us,
            include_byok=budget.include_byok,
        )
        forecast = for_lifetime(
            spent_nano,
            budget.limit_nano,
            recent_nano=recent_nano,
            recent_us=at_us - since_us,
            now_us=at_us,
        )
    else:
        forecast = in_period(
            spent_nano, budget.limit_nano, start_us=start_us, end_us=end_us, now_us=at_us
        )
    return BudgetStatus(
        budget=budget,
        spent_nano=spent_nano,
        period_start_us=None if end_us is None else start_us,
        resets_at_us=end_us,
        forecast=forecast,
    )


def spent(connection: Connection, budget: Budget, *, at_us: int) -> int:
    """What counts against the budget in its period that holds `at_us`, in nano-USD."""
    return total_nano(
        connection,
        budget.spend_id,
        budget.interval,
        at_us=at_us,
        include_byok=budget.include_byok,
    )
