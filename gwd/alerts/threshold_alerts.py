"""What a charge set off: alerts for thresholds of key and budgets, the low balance, an automatic top-up.

Runs inside the settlement transaction, after the charge was counted; each cause raises its alert once per period. A
cause is judged first, which changes nothing; only what there is to tell is written, in a savepoint: no alert can undo a
charge.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from gwd import alerts, budgets, ledger, topup
from gwd.activity.row import GenerationRow
from gwd.alerts import notices
from gwd.core.clock import iso
from gwd.core.spender import NAMED_SCOPES, Spender
from gwd.keys import admission as keys
from gwd.keys import thresholds as key_thresholds
from gwd.ledger import low_balance
from gwd.ledger.service import Settlement
from gwd.orgs import organizations, workspaces
from gwd.orgs.settings import is_deleted, settings
from gwd.spend import thresholds
from gwd.store import Connection

PendingAlert = Callable[[], object]


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """A charge that was just made: its record, whose it is, how the ledger stands after it, and when that is."""

    row: GenerationRow
    spender: Spender
    settled: Settlement
    byok_nano: int
    app_url: str
    now_us: int


def raise_crossed(connection: Connection, charge: Charge) -> None:
    """Raise what this charge crossed and begin a top-up if one is due; what fails is left out, logged and counted.

    An organization that was deleted meanwhile gets no alerts: it has no members left.
    """
    if is_deleted(connection, charge.settled.organization_id):
        return
    for what, judge in _CAUSES:
        try:
            pending = judge(connection, charge)
        except Exception as error:  # noqa: BLE001 - the charge stands whatever is wrong with an alert
            connection.tolerate(what, error)
            continue
        for alert in pending:
            connection.in_savepoint(what, alert)


def _key(connection: Connection, charge: Charge) -> list[PendingAlert]:
    settled = charge.settled
    standing = keys.standing(connection, charge.row.key_id, at_us=settled.at_us)
    if standing is None:
        return []
    key, spent_nano = standing
    found = key_thresholds.crossed(
        key,
        spent_nano,
        charged_nano=settled.charged_nano,
        byok_nano=charge.byok_nano,
        at_us=settled.at_us,
    )
    if found is None:
        return []
    return [partial(_raise_key, connection, found, charge.app_url, charge.now_us)]


def _raise_key(
    connection: Connection, found: key_thresholds.KeyCrossing, app_url: str, now_us: int
) -> None:
    percent = found.crossing.threshold_percent
    alerts.raise_(
        connection,
        found.key.organization_id,
        notices.key_limit(
            key_thresholds.alert_data(found),
            name=found.key.name,
            limit_nano=found.limit_nano,
            severity=thresholds.severity(percent, refuses=True),
            app_url=app_url,
        ),
        now_us=now_us,
        once=alerts.Mark(name=found.crossing.mark, value=percent),
    )


def _budgets(connection: Connection, charge: Charge) -> list[PendingAlert]:
    crossed = budgets.crossed(
        connection,
        charge.spender,
        charged_nano=charge.settled.charged_nano,
        byok_nano=charge.byok_nano,
        at_us=charge.settled.at_us,
    )
    return [
        partial(raise_budget, connection, found, app_url=charge.app_url, now_us=charge.now_us)
        for found in crossed
    ]


def raise_changed_key(
    connection: Connection, before: keys.KeyState, *, app_url: str, now_us: int
) -> None:
    """A key was changed: a lower limit may be over a threshold that no charge will cross any more."""
    at_us = ledger.ledger_time_us(connection, before.organization_id, now_us=now_us)
    standing = keys.standing(connection, before.id, at_us=at_us)
    if standing is None:
        return
    key, spent_nano = standing
    spent_before_nano = keys.limit_spend_nano(connection, before, at_us=at_us)
    found = key_thresholds.moved(before, spent_before_nano, key, spent_nano, at_us=at_us)
    if found is not None:
        _raise_key(connection, found, app_url, now_us)


def raise_budget(
    connection: Connection, found: budgets.BudgetCrossing, *, app_url: str, now_us: int
) -> None:
    """One alert for the highest threshold a budget has crossed; once per period and threshold."""
    percent, budget = found.crossing.threshold_percent, found.status.budget
    alerts.raise_(
        connection,
        budget.organization_id,
        notices.budget_threshold(
            msgspec.structs.asdict(budgets.record(found.status)),
            scope_name=_scope_name(connection, budget.scope, budget.scope_id),
            percent=percent,
            crossed=found.crossing.thresholds_crossed,
            limit_nano=found.status.limit_nano,
            severity=thresholds.severity(percent, refuses=budget.refuses),
            app_url=app_url,
        ),
        now_us=now_us,
        once=alerts.Mark(name=found.crossing.mark, value=percent),
    )


def raise_standing_budget(
    connection: Connection, budget: budgets.Budget, *, app_url: str, now_us: int
) -> None:
    """A budget was made or changed, or its raise has ended: what it has reached already no later charge will cross."""
    crossed = budgets.standing_crossing(connection, budget, now_us=now_us)
    if crossed is not None:
        raise_budget(connection, crossed, app_url=app_url, now_us=now_us)


def rearm_low_balance(connection: Connection, organization_id: str, *, now_us: int) -> None:
    """Credit was added: a balance clearly above the threshold may be told about again when it falls."""
    threshold_nano = settings(connection, organization_id).settings.low_balance_threshold_nano or 0
    owned_nano = ledger.balance(connection, organization_id, now_us=now_us).owned_nano
    if low_balance.rearms(owned_nano, threshold_nano):
        alerts.clear(connection, low_balance.mark_name(organization_id))


def consider_topup(
    connection: Connection,
    organization_id: str,
    *,
    app_url: str,
    now_us: int,
    due_us: int | None = None,
) -> None:
    """Begin a top-up if the balance as it stands asks for one, or tell what stops it."""
    if is_deleted(connection, organization_id):
        return
    owned_nano = ledger.balance(
        connection, organization_id, now_us=now_us, due_us=due_us
    ).owned_nano
    for alert in _pending_topup(
        connection, organization_id, owned_nano, app_url=app_url, now_us=now_us
    ):
        connection.in_savepoint("beginning a top-up", alert)


def report_failed_topup(
    connection: Connection, failed: topup.FailedAttempt, *, app_url: str, now_us: int
) -> None:
    """The payment hook did not confirm: say so at every try, with the time of the next."""
    next_us = failed.next_attempt_at_us
    alerts.raise_(
        connection,
        failed.organization_id,
        notices.auto_topup_failed(
            amount_nano=failed.amount_nano,
            threshold_nano=topup.get(connection, failed.organization_id).threshold_nano,
            balance_nano=ledger.balance(
                connection, failed.organization_id, now_us=now_us
            ).owned_nano,
            attempt=failed.tries,
            reason=failed.reason,
            next_attempt_at=None if next_us is None else iso(next_us),
            organization=_organization_name(connection, failed.organization_id),
            app_url=app_url,
        ),
        now_us=now_us,
        once=alerts.Mark(name=f"auto_topup:{failed.id}", value=failed.tries),
    )


def _top_up(connection: Connection, charge: Charge) -> list[PendingAlert]:
    return _pending_topup(
        connection,
        charge.settled.organization_id,
        charge.settled.owned_after_nano,
        app_url=charge.app_url,
        now_us=charge.now_us,
    )


def _pending_topup(
    connection: Connection, organization_id: str, owned_nano: int, *, app_url: str, now_us: int
) -> list[PendingAlert]:
    wanted = topup.due(connection, organization_id, owned_nano, now_us=now_us)
    if wanted is None:
        return []
    if isinstance(wanted, int):
        return [partial(topup.begin, connection, organization_id, wanted, now_us=now_us)]
    if alerts.is_raised(connection, alerts.Mark(name=wanted.mark)):
        return []
    return [partial(_raise_capped, connection, wanted, owned_nano, app_url, now_us)]


def _raise_capped(
    connection: Connection, capped: topup.CappedTopUp, owned_nano: int, app_url: str, now_us: int
) -> None:
    topup.note_capped(connection, capped, now_us=now_us)
    alerts.raise_(
        connection,
        capped.organization_id,
        notices.auto_topup_stopped(
            amount_nano=capped.amount_nano,
            threshold_nano=capped.threshold_nano,
            balance_nano=owned_nano,
            reason=capped.reason,
            next_attempt_at=iso(capped.ends_us),
            organization=_organization_name(connection, capped.organization_id),
            app_url=app_url,
        ),
        now_us=now_us,
        once=alerts.Mark(name=capped.mark),
    )


def _low_balance(connection: Connection, charge: Charge) -> list[PendingAlert]:
    held = settings(connection, charge.settled.organization_id).settings
    threshold_nano = held.low_balance_threshold_nano
    if threshold_nano is None:
        return []
    level = low_balance.level(charge.settled.owned_after_nano, threshold_nano)
    mark = alerts.Mark(name=low_balance.mark_name(charge.settled.organization_id), value=level)
    if level == 0 or alerts.is_raised(connection, mark):
        return []
    return [partial(_raise_low_balance, connection, charge, threshold_nano, level, mark)]


def _raise_low_balance(
    connection: Connection,
    charge: Charge,
    threshold_nano: int,
    level: low_balance.Level,
    mark: alerts.Mark,
) -> None:
    settled = charge.settled
    alerts.raise_(
        connection,
        settled.organization_id,
        notices.low_balance(
            owned_nano=settled.owned_after_nano,
            available_nano=settled.balance_after_nano,
            threshold_nano=threshold_nano,
            severity=low_balance.SEVERITY[level],
            topup_enabled=topup.get(connection, settled.organization_id).enabled,
            organization=_organization_name(connection, settled.organization_id),
            app_url=charge.app_url,
        ),
        now_us=charge.now_us,
        once=mark,
    )


def _organization_name(connection: Connection, organization_id: str) -> str:
    return organizations.name_of(connection, organization_id) or organization_id


def _scope_name(connection: Connection, scope: str, scope_id: str) -> str:
    """What people call what a budget is for; a tag or user is its own name."""
    if scope in NAMED_SCOPES:
        return scope_id
    name_of = {
        "organization": organizations.name_of,
        "workspace": workspaces.name_of,
        "key": keys.name_of,
    }[scope]
    return name_of(connection, scope_id) or scope_id


_CAUSES: Final[tuple[tuple[str, Callable[[Connection, Charge], list[PendingAlert]]], ...]] = (
    ("the alert about a key's limit", _key),
    ("the alert about a budget", _budgets),
    ("beginning a top-up", _top_up),
    ("the alert about a low balance", _low_balance),
)
