"""The hot path of budgets: refuse what a hard one no longer allows, and see which thresholds a charge crossed.

Plain SQL with constant text; the writer remembers the budgets that apply to a key and what was spent of each.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from gwd.budgets import shadow
from gwd.budgets.status import Budget, BudgetRow, BudgetStatus, budget_of, spent, status_at
from gwd.core.clock import iso
from gwd.core.errors import BudgetExceeded
from gwd.core.money import usd_json, usd_text
from gwd.core.periods import WINDOWS, period_end_us
from gwd.ledger import ledger_time_us
from gwd.spend.thresholds import Crossing, crosses, crossing
from gwd.store import Connection, cached

_SCOPE_ORDER: Final = {"organization": 0, "workspace": 1, "key": 2}
_APPLICABLE: Final = (
    f"SELECT {', '.join(BudgetRow._fields)} FROM budget"  # noqa: S608 - the names of its columns
    " WHERE spend_id IN (?1, ?2, ?3) AND organization_id = ?1"
)


class BudgetCrossing(msgspec.Struct, frozen=True, kw_only=True):
    """A budget whose spending newly reached a threshold, where it stands, and the mark that makes it alert once."""

    status: BudgetStatus
    crossing: Crossing


def check_hard(
    connection: Connection,
    organization_id: str,
    workspace_id: str | None,
    family_id: str,
    *,
    now_us: int,
) -> list[Budget]:
    """Raise BudgetExceeded if a hard budget of the organization, workspace or key is reached (spent ≥ limit).

    Of several the organization's comes before the workspace's before the key's, and the broadest interval first. Gives
    back the shadow budgets that are reached: each would have refused the request.
    """
    at_us = ledger_time_us(connection, organization_id, now_us=now_us)
    reached = _reached(connection, organization_id, workspace_id, family_id, at_us)
    if not reached:
        return reached
    refusing = [budget for budget in reached if budget.refuses]
    if refusing:
        raise _exceeded(min(refusing, key=_precedence), at_us)
    return reached


def hard_refusals(
    connection: Connection,
    organization_id: str,
    workspace_id: str | None,
    family_id: str,
    *,
    now_us: int,
) -> list[BudgetExceeded]:
    """The refusal of every hard budget that is reached; the first is the one that `check_hard` raises."""
    at_us = ledger_time_us(connection, organization_id, now_us=now_us)
    reached = _reached(connection, organization_id, workspace_id, family_id, at_us)
    return [
        _exceeded(budget, at_us) for budget in sorted(reached, key=_precedence) if budget.refuses
    ]


def count_would_refuse(
    connection: Connection, reached: Sequence[Budget], generation_id: str, *, at_us: int
) -> None:
    """Count a request for the shadow budgets that `check_hard` gave back, once it is admitted."""
    shadow.count(
        connection,
        [(budget.id, budget.interval) for budget in reached],
        generation_id,
        at_us=at_us,
    )


def end_would_refuse(
    connection: Connection,
    organization_id: str,
    workspace_id: str | None,
    family_id: str,
    generation_id: str,
    *,
    charged_nano: int = 0,
    byok_nano: int = 0,
) -> None:
    """A request has ended: what it cost is added where a shadow budget has counted it.

    Nothing is asked where no shadow budget applies; one that is switched on or deleted has forgotten its requests.
    """
    for budget in _applicable(connection, organization_id, workspace_id, family_id):
        if budget.shadow:
            shadow.end(connection, generation_id, charged_nano=charged_nano, byok_nano=byok_nano)
            return


def crossed(
    connection: Connection,
    organization_id: str,
    workspace_id: str | None,
    family_id: str,
    *,
    charged_nano: int,
    byok_nano: int,
    at_us: int,
) -> list[BudgetCrossing]:
    """The budgets that this charge took over a threshold; called after it was counted, in the same transaction."""
    found = []
    for budget in _applicable(connection, organization_id, workspace_id, family_id):
        counted_nano = charged_nano + byok_nano if budget.include_byok else charged_nano
        if not counted_nano or not budget.alert_thresholds:
            continue
        after_nano = spent(connection, budget, at_us=at_us)
        limit_nano = budget.limit_nano if budget.raised_until_us is None else budget.limit_at(at_us)
        if not crosses(after_nano - counted_nano, after_nano, limit_nano, budget.alert_thresholds):
            continue
        if over := _crossing(budget, after_nano - counted_nano, after_nano, at_us):
            standing = status_at(connection, budget, at_us)
            found.append(BudgetCrossing(status=standing, crossing=over))
    return found


def standing_crossing(
    connection: Connection, budget: Budget, *, now_us: int
) -> BudgetCrossing | None:
    """What a new or changed budget has already crossed in its period: no later charge would cross it."""
    at_us = ledger_time_us(connection, budget.organization_id, now_us=now_us)
    over = _crossing(budget, 0, spent(connection, budget, at_us=at_us), at_us)
    if over is None:
        return None
    return BudgetCrossing(status=status_at(connection, budget, at_us), crossing=over)


def applicable(
    connection: Connection,
    organization_id: str,
    workspace_id: str | None,
    family_id: str,
    *,
    now_us: int,
) -> list[BudgetStatus]:
    """All budgets that a key's requests count against, in the order in which they would refuse."""
    at_us = ledger_time_us(connection, organization_id, now_us=now_us)
    found = _applicable(connection, organization_id, workspace_id, family_id)
    return [status_at(connection, budget, at_us) for budget in sorted(found, key=_precedence)]


def _reached(
    connection: Connection,
    organization_id: str,
    workspace_id: str | None,
    family_id: str,
    at_us: int,
) -> list[Budget]:
    return [
        budget
        for budget in _applicable(connection, organization_id, workspace_id, family_id)
        if budget.kind == "hard"
        and (spent_nano := spent(connection, budget, at_us=at_us)) >= budget.limit_nano
        and (budget.raised_until_us is None or spent_nano >= budget.limit_at(at_us))
    ]


@cached("budgets")
def _applicable(
    connection: Connection, organization_id: str, workspace_id: str | None, family_id: str
) -> tuple[Budget, ...]:
    rows = connection.rows(_APPLICABLE, (organization_id, workspace_id, family_id))
    return tuple(map(budget_of, rows))


def _crossing(budget: Budget, before_nano: int, after_nano: int, at_us: int) -> Crossing | None:
    """Raised limits and shadows have marks of their own: what the limit as it was set has reached stays told."""
    limit_nano = budget.limit_at(at_us)
    apart = "" if limit_nano == budget.limit_nano else f":{limit_nano}"
    if budget.shadow:
        apart += ":shadow"
    return crossing(
        before_nano,
        after_nano,
        limit_nano,
        budget.alert_thresholds,
        subject=f"budget:{budget.id}{apart}",
        window=budget.interval,
        at_us=at_us,
    )


def _precedence(budget: Budget) -> tuple[int, int]:
    return _SCOPE_ORDER[budget.scope], -WINDOWS.index(budget.interval)


def _exceeded(budget: Budget, at_us: int) -> BudgetExceeded:
    resets_at_us = period_end_us(budget.interval, at_us)
    resets_at = None if resets_at_us is None else iso(resets_at_us)
    limit_nano = budget.limit_at(at_us)
    limit = usd_text(limit_nano)
    end = "It does not reset" if resets_at is None else f"It resets at {resets_at}"
    return BudgetExceeded(
        f"The {budget.interval} budget of this {budget.scope} ({limit} USD) is used up."
        f" {end}; raise the budget to go on.",
        metadata={
            "budget_scope": budget.scope,
            "budget_interval": budget.interval,
            "budget_limit": usd_json(limit_nano),
            "budget_resets_at": resets_at,
            "budget_id": budget.id,
        },
    )
