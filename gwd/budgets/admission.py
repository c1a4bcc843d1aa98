"""The hot path of budgets: refuse what a hard one no longer allows, and see which thresholds a charge crossed.

Plain SQL with constant text; the writer remembers the budgets that apply to a key and what was spent of each.
"""

from collections.abc import Sequence
from typing import Final, get_args

import msgspec

from gwd.budgets import shadow
from gwd.budgets.status import Budget, BudgetRow, BudgetStatus, budget_of, spent, status_at
from gwd.core.clock import iso
from gwd.core.errors import BudgetExceeded
from gwd.core.money import usd_json, usd_text
from gwd.core.periods import WINDOWS, period_end_us
from gwd.core.spender import NAMED_SCOPES, Scope, Spender
from gwd.ledger import ledger_time_us
from gwd.spend.thresholds import Crossing, crosses, crossing
from gwd.store import Connection, cached

_SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
_BUDGETS: Final = f"SELECT {', '.join(BudgetRow._fields)} FROM budget WHERE "  # noqa: S608 - the names of its columns
_APPLICABLE: Final = _BUDGETS + "spend_id IN (?1, ?2, ?3) AND organization_id = ?1"
_OF_COUNTER: Final = _BUDGETS + "spend_id = ?"
_LIMITS_NAMES: Final = (
    "SELECT 1 FROM budget WHERE organization_id = ? AND scope IN ('tag', 'user') LIMIT 1"
)


class BudgetCrossing(msgspec.Struct, frozen=True, kw_only=True):
    """A budget whose spending newly reached a threshold, where it stands, and the mark that makes it alert once."""

    status: BudgetStatus
    crossing: Crossing


def check_hard(connection: Connection, spender: Spender, *, now_us: int) -> list[Budget]:
    """Raise BudgetExceeded if a hard budget that the request counts against is reached (spent ≥ limit).

    Of several the organization's comes before the workspace's, the key's, a tag's and the user's, and the broadest
    interval first. Gives back the shadow budgets that are reached: each would have refused the request.
    """
    at_us = ledger_time_us(connection, spender.organization_id, now_us=now_us)
    reached = _reached(connection, spender, at_us)
    if not reached:
        return reached
    refusing = [budget for budget in reached if budget.refuses]
    if refusing:
        raise _exceeded(min(refusing, key=_precedence), at_us)
    return reached


def hard_refusals(connection: Connection, spender: Spender, *, now_us: int) -> list[BudgetExceeded]:
    """The refusal of every hard budget that is reached; the first is the one that `check_hard` raises."""
    at_us = ledger_time_us(connection, spender.organization_id, now_us=now_us)
    reached = _reached(connection, spender, at_us)
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
    spender: Spender,
    generation_id: str,
    *,
    charged_nano: int = 0,
    byok_nano: int = 0,
) -> None:
    """A request has ended: what it cost is added where a shadow budget has counted it.

    Nothing is asked where no shadow budget applies; one that is switched on or deleted has forgotten its requests.
    """
    for budget in _of(connection, spender):
        if budget.shadow:
            shadow.end(connection, generation_id, charged_nano=charged_nano, byok_nano=byok_nano)
            return


def crossed(
    connection: Connection,
    spender: Spender,
    *,
    charged_nano: int,
    byok_nano: int,
    at_us: int,
) -> list[BudgetCrossing]:
    """The budgets that this charge took over a threshold; called after it was counted, in the same transaction."""
    found = []
    for budget in _of(connection, spender):
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


def applicable(connection: Connection, spender: Spender, *, now_us: int) -> list[BudgetStatus]:
    """All budgets that a request counts against, in the order in which they would refuse."""
    at_us = ledger_time_us(connection, spender.organization_id, now_us=now_us)
    found = _of(connection, spender)
    return [status_at(connection, budget, at_us) for budget in sorted(found, key=_precedence)]


def _reached(connection: Connection, spender: Spender, at_us: int) -> list[Budget]:
    return [
        budget
        for budget in _of(connection, spender)
        if budget.kind == "hard"
        and (spent_nano := spent(connection, budget, at_us=at_us)) >= budget.limit_nano
        and (budget.raised_until_us is None or spent_nano >= budget.limit_at(at_us))
    ]


def _of(connection: Connection, spender: Spender) -> Sequence[Budget]:
    """Every budget of a spender. Tags and users are looked for only where the organization limits any."""
    organization_id, workspace_id, family_id = spender[:3]
    found = _applicable(connection, organization_id, workspace_id, family_id)
    if not spender.is_named or not _limits_names(connection, organization_id):
        return found
    named = [_of_counter(connection, counter) for counter in spender.named_counters]
    return [*found, *(budget for budgets in named for budget in budgets)]


@cached("budgets")
def _applicable(
    connection: Connection, organization_id: str, workspace_id: str | None, family_id: str
) -> tuple[Budget, ...]:
    rows = connection.rows(_APPLICABLE, (organization_id, workspace_id, family_id))
    return tuple(map(budget_of, rows))


@cached("named budgets")
def _limits_names(connection: Connection, organization_id: str) -> bool:
    """Whether an organization has a budget of any tag or user."""
    return connection.row(_LIMITS_NAMES, (organization_id,)) is not None


@cached("budgets of a name")
def _of_counter(connection: Connection, spend_id: str) -> tuple[Budget, ...]:
    return tuple(map(budget_of, connection.rows(_OF_COUNTER, (spend_id,))))


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
    return _SCOPES.index(budget.scope), -WINDOWS.index(budget.interval)


def _exceeded(budget: Budget, at_us: int) -> BudgetExceeded:
    resets_at_us = period_end_us(budget.interval, at_us)
    resets_at = None if resets_at_us is None else iso(resets_at_us)
    limit_nano = budget.limit_at(at_us)
    limit = usd_text(limit_nano)
    end = "It does not reset" if resets_at is None else f"It resets at {resets_at}"
    whose = f"this {budget.scope}"
    metadata: dict[str, object] = {
        "budget_scope": budget.scope,
        "budget_interval": budget.interval,
        "budget_limit": usd_json(limit_nano),
        "budget_resets_at": resets_at,
        "budget_id": budget.id,
    }
    if budget.scope in NAMED_SCOPES:
        # Clients know three scopes; what an organization limits by name is a part of the organization.
        whose = f"the {budget.scope} {budget.scope_id}"
        metadata |= {"budget_scope": "organization", "budget_subject": budget.subject}
    return BudgetExceeded(
        f"The {budget.interval} budget of {whose} ({limit} USD) is used up."
        f" {end}; raise the budget to go on.",
        metadata=metadata,
    )
