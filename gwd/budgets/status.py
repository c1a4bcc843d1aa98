"""A budget and where it stands: spend of the current period, reset, forecast."""

from typing import Final, Literal

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


def budget_of(row: Row) -> Budget:
    """A budget from its columns, in the order of the table."""
    return Budget(
        id=row[0],
        organization_id=row[1],
        scope=row[2],
        scope_id=row[3],
        spend_id=row[4],
        interval=row[5],
        kind=row[6],
        limit_nano=row[7],
        include_byok=bool(row[8]),
        alert_thresholds=_thresholds.decode(row[9]),
        created_at_us=row[10],
        updated_at_us=row[11],
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
