"""What a charge set off: alerts for thresholds of key and budgets, the low balance, an automatic top-up.

Runs inside the settlement transaction, after the charge was counted; each cause speaks once per period.
"""

from gwd import alerts, budgets, ledger, topup
from gwd.activity.row import GenerationRow
from gwd.alerts import notices
from gwd.core.clock import iso
from gwd.keys import admission as keys
from gwd.keys import thresholds as key_thresholds
from gwd.ledger import low_balance
from gwd.ledger.service import Settlement
from gwd.orgs.settings import settings
from gwd.spend import thresholds
from gwd.store import Connection


def raise_crossed(
    connection: Connection,
    row: GenerationRow,
    settled: Settlement,
    *,
    byok_nano: int,
    app_url: str,
    now_us: int,
) -> None:
    """Raise what this charge crossed and begin a top-up if one is due."""
    _key(connection, row, settled, byok_nano, app_url, now_us)
    _budgets(connection, row, settled, byok_nano, app_url, now_us)
    _balance(connection, settled, app_url, now_us)


def _key(
    connection: Connection,
    row: GenerationRow,
    settled: Settlement,
    byok_nano: int,
    app_url: str,
    now_us: int,
) -> None:
    standing = keys.standing(connection, row.key_id, at_us=settled.at_us)
    if standing is None:
        return
    key, spent_nano = standing
    found = key_thresholds.crossed(
        key,
        spent_nano,
        charged_nano=settled.charged_nano,
        byok_nano=byok_nano,
        at_us=settled.at_us,
    )
    if found is not None:
        _raise_key(connection, found, app_url, now_us)


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


def _budgets(
    connection: Connection,
    row: GenerationRow,
    settled: Settlement,
    byok_nano: int,
    app_url: str,
    now_us: int,
) -> None:
    for found in budgets.crossings(
        connection,
        settled.organization_id,
        row.workspace_id,
        row.family_id,
        charged_nano=settled.charged_nano,
        byok_nano=byok_nano,
        at_us=settled.at_us,
    ):
        raise_budget(connection, found, app_url=app_url, now_us=now_us)


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
            budgets.record(found.status),
            percent=percent,
            crossed=found.crossing.thresholds_crossed,
            limit_nano=budget.limit_nano,
            severity=thresholds.severity(percent, refuses=budget.kind == "hard"),
            app_url=app_url,
        ),
        now_us=now_us,
        once=alerts.Mark(name=found.crossing.mark, value=percent),
    )


def rearm_low_balance(connection: Connection, organization_id: str, *, now_us: int) -> None:
    """Credit was added: a balance clearly above the threshold may be told about again when it falls."""
    threshold_nano = settings(connection, organization_id).settings.low_balance_threshold_nano or 0
    owned_nano = ledger.balance(connection, organization_id, now_us=now_us).owned_nano
    if low_balance.rearms(owned_nano, threshold_nano):
        alerts.clear(connection, low_balance.mark_name(organization_id))


def consider_topup(connection: Connection, organization_id: str, *, now_us: int) -> None:
    """Begin a top-up if the balance as it stands asks for one."""
    owned_nano = ledger.balance(connection, organization_id, now_us=now_us).owned_nano
    topup.consider(connection, organization_id, owned_nano, now_us=now_us)


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
            app_url=app_url,
        ),
        now_us=now_us,
        once=alerts.Mark(name=f"auto_topup:{failed.id}", value=failed.tries),
    )


def _balance(connection: Connection, settled: Settlement, app_url: str, now_us: int) -> None:
    owned_nano = settled.owned_after_nano
    topup.consider(connection, settled.organization_id, owned_nano, now_us=now_us)
    threshold_nano = settings(
        connection, settled.organization_id
    ).settings.low_balance_threshold_nano
    if threshold_nano is None:
        return
    level = low_balance.level(owned_nano, threshold_nano)
    if level == 0:
        return
    alerts.raise_(
        connection,
        settled.organization_id,
        notices.low_balance(
            owned_nano=owned_nano,
            available_nano=settled.balance_after_nano,
            threshold_nano=threshold_nano,
            severity=low_balance.SEVERITY[level],
            topup_enabled=topup.get(connection, settled.organization_id).enabled,
            app_url=app_url,
        ),
        now_us=now_us,
        once=alerts.Mark(name=low_balance.mark_name(settled.organization_id), value=level),
    )
