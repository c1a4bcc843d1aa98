"""A budget and where it stands: the limit in force, spend of the current period, reset, forecast."""

from typing import Final, Literal, NamedTuple

import msgspec

from gwd.budgets import shadow
from gwd.budgets.forecast import LOOK_BACK_DAYS, Forecast, for_lifetime, in_period
from gwd.budgets.shadow import WouldRefuse
from gwd.core.clock import US_PER_DAY
from gwd.core.periods import Window, day_of, period_end_us, period_start_us
from gwd.core.spender import NAMED_SCOPES, Scope
from gwd.ledger import ledger_time_us
from gwd.spend import between_nano, total_nano
from gwd.store.connection import Connection, Row

Kind = Literal["hard", "soft"]

_thresholds: Final = msgspec.json.Decoder(tuple[int, ...])


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """`spend_id` names the counter: the scope's own id, the family of a key, or that of a tag or user.

    `scope_id` of a tag or user is its name.
    A hard budget that is a `shadow` refuses nothing and counts what it would have refused. `limit_nano` is the limit
    as it was set; one that is raised has `raised_nano` until `raised_until_us`, set by the key `raised_by`.
    """

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
    shadow: bool = False
    raised_nano: int | None = None
    raised_until_us: int | None = None
    raised_by: str | None = None

    @property
    def subject(self) -> str | None:
        """The tag or user that it is for, such as `tag:nightly`; None for the other scopes."""
        return f"{self.scope}:{self.scope_id}" if self.scope in NAMED_SCOPES else None

    @property
    def refuses(self) -> bool:
        """Whether it refuses requests once it is used up."""
        return self.kind == "hard" and not self.shadow

    def is_raised(self, at_us: int) -> bool:
        """Whether a raise holds at a moment of ledger time; it ends with the first moment of `raised_until_us`."""
        return self.raised_until_us is not None and at_us < self.raised_until_us

    def limit_at(self, at_us: int) -> int:
        """The limit in force at a moment of ledger time: a raise never lowers it."""
        if self.raised_nano is None or not self.is_raised(at_us):
            return self.limit_nano
        return max(self.limit_nano, self.raised_nano)


class BudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A budget as it stands at one moment. A lifetime budget has no period: it neither starts nor resets.

    `limit_nano` is the limit in force. `would_refuse` of this period, and of the last one, are those of a shadow
    budget alone.
    """

    budget: Budget
    limit_nano: int
    is_raised: bool
    spent_nano: int
    period_start_us: int | None
    resets_at_us: int | None
    forecast: Forecast
    would_refuse: WouldRefuse | None = None
    would_refuse_before: WouldRefuse | None = None

    @property
    def remaining_nano(self) -> int:
        """What may still be spent; never negative."""
        return max(0, self.limit_nano - self.spent_nano)


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
    shadow: int
    raised_nano: int | None
    raised_until: int | None
    raised_by: str | None


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
        shadow=bool(row.shadow),
        raised_nano=row.raised_nano,
        raised_until_us=row.raised_until,
        raised_by=row.raised_by,
    )


def status_of(connection: Connection, budget: Budget, *, now_us: int) -> BudgetStatus:
    """Where a budget stands now."""
    at_us = ledger_time_us(connection, budget.organization_id, now_us=now_us)
    return status_at(connection, budget, at_us)


def status_at(connection: Connection, budget: Budget, at_us: int) -> BudgetStatus:
    """Where a budget stands at a moment of ledger time."""
    spent_nano, limit_nano = spent(connection, budget, at_us=at_us), budget.limit_at(at_us)
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
            limit_nano,
            recent_nano=recent_nano,
            recent_us=at_us - since_us,
            now_us=at_us,
        )
    else:
        forecast = in_period(spent_nano, limit_nano, start_us=start_us, end_us=end_us, now_us=at_us)
    return BudgetStatus(
        budget=budget,
        limit_nano=limit_nano,
        is_raised=budget.is_raised(at_us),
        spent_nano=spent_nano,
        period_start_us=None if end_us is None else start_us,
        resets_at_us=end_us,
        forecast=forecast,
        would_refuse=shadow.in_period(connection, budget.id, budget.interval, at_us)
        if budget.shadow
        else None,
        would_refuse_before=shadow.in_last_period(connection, budget.id, budget.interval, at_us)
        if budget.shadow
        else None,
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
