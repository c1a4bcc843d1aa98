"""The alerts, worded: pure functions from numbers and names to what people read."""

from typing import Any, Final, Literal

from gwd.alerts.service import NewAlert
from gwd.core import links
from gwd.core.clock import iso
from gwd.core.errors import FaultReason
from gwd.core.money import usd_json, usd_text

Level = Literal["info", "warning", "critical"]


def key_limit(
    data: dict[str, Any], *, name: str, limit_nano: int, severity: Level, app_url: str
) -> NewAlert:
    """A key's spending reached a threshold of its limit; `data` is that of alert.key_limit."""
    percent = data["threshold_percent"]
    return NewAlert(
        category="key_limit",
        type="alert.key_limit",
        severity=severity,
        title=f"Key {name} has used {percent} % of its limit",
        message=f"The key {name} has used {percent} % or more of its limit of {usd_text(limit_nano)} USD."
        f"{_reset(data['resets_at'])}",
        url=links.key(app_url, data["key_id"]),
        data=data,
        thresholds_crossed=tuple(data["thresholds_crossed"]),
    )


def budget_threshold(
    budget: dict[str, Any],
    *,
    scope_name: str,
    percent: int,
    crossed: tuple[int, ...],
    limit_nano: int,
    severity: Level,
    app_url: str,
) -> NewAlert:
    """A budget's spending reached a threshold; `budget` is its record."""
    scope = f"{budget['scope']} {scope_name}"
    kind = "shadow" if budget["shadow"] else budget["kind"]
    end = "requests are refused" if budget["kind"] == "hard" else "requests go on"
    if budget["shadow"]:
        end = "requests would be refused, if it were switched on"
    return NewAlert(
        category="budget_threshold",
        type="alert.budget_threshold",
        severity=severity,
        title=f"The {budget['interval']} budget of {scope} is at {percent} %",
        message=f"{percent} % or more of the {budget['interval']} {kind} budget of {scope},"
        f" {usd_text(limit_nano)} USD, is used; at 100 % {end}.{_reset(budget['resets_at'])}",
        url=links.budget(app_url, budget["id"]),
        data={
            "budget_id": budget["id"],
            "scope": budget["scope"],
            "scope_id": budget["scope_id"],
            "scope_name": scope_name,
            "interval": budget["interval"],
            "kind": budget["kind"],
            "shadow": budget["shadow"],
            "threshold_percent": percent,
            "thresholds_crossed": list(crossed),
            "limit": budget["limit_in_force"],
            "spend": budget["spend"],
            "percent_used": budget["percent_used"],
            "remaining": budget["remaining"],
            "resets_at": budget["resets_at"],
            "forecast": budget["forecast"],
        },
        thresholds_crossed=crossed,
    )


def low_balance(
    *,
    owned_nano: int,
    available_nano: int,
    threshold_nano: int,
    severity: Level,
    topup_enabled: bool,
    organization: str,
    app_url: str,
) -> NewAlert:
    """The balance fell below the threshold, or is used up."""
    what = "is used up" if owned_nano <= 0 else f"is below {usd_text(threshold_nano)} USD"
    return NewAlert(
        category="low_balance",
        type="alert.low_balance",
        severity=severity,
        title=f"The balance of {organization} {what}",
        message=f"The balance of {organization} is {usd_text(owned_nano)} USD."
        " Add credits before requests are refused.",
        url=links.credits(app_url),
        data={
            "balance": usd_json(owned_nano),
            "available": usd_json(available_nano),
            "threshold": usd_json(threshold_nano),
            "currency": "USD",
            "auto_topup_enabled": topup_enabled,
        },
    )


def auto_topup_failed(
    *,
    amount_nano: int,
    threshold_nano: int | None,
    balance_nano: int,
    attempt: int,
    reason: str,
    next_attempt_at: str | None,
    organization: str,
    app_url: str,
) -> NewAlert:
    """The payment hook did not take a top-up."""
    return NewAlert(
        category="auto_topup",
        type="alert.auto_topup_failed",
        severity="critical",
        title=f"An automatic top-up of {organization} failed",
        message=f"The payment hook did not confirm {usd_text(amount_nano)} USD: {reason}",
        url=links.credits(app_url),
        data={
            "amount": usd_json(amount_nano),
            "threshold": None if threshold_nano is None else usd_json(threshold_nano),
            "balance": usd_json(balance_nano),
            "attempt": attempt,
            "reason": reason,
            "next_attempt_at": next_attempt_at,
        },
    )


def auto_topup_stopped(
    *,
    amount_nano: int,
    threshold_nano: int,
    balance_nano: int,
    reason: str,
    next_attempt_at: str,
    organization: str,
    app_url: str,
) -> NewAlert:
    """Credit is low, and the monthly cap leaves no room for a top-up: none was attempted."""
    return NewAlert(
        category="auto_topup",
        type="alert.auto_topup_failed",
        severity="critical",
        title=f"The automatic top-up of {organization} is stopped by its monthly cap",
        message=f"{usd_text(amount_nano)} USD are not bought: {reason}",
        url=links.credits(app_url),
        data={
            "amount": usd_json(amount_nano),
            "threshold": usd_json(threshold_nano),
            "balance": usd_json(balance_nano),
            "attempt": 0,
            "reason": reason,
            "next_attempt_at": next_attempt_at,
        },
    )


_WHY_FAILING: Final[dict[FaultReason, str]] = {
    "auth_invalid": "refuses it: it is not valid, or no longer",
    "quota_exhausted": "refuses it: the account behind it has no credit or quota left",
    "model_access_denied": "refuses it for a model that the account behind it may not use",
}


def provider_key_failing(
    *,
    credential_id: str,
    name: str,
    label: str,
    provider: str,
    is_own: bool,
    reason: FaultReason,
    first_seen_at: str,
    failures: int,
    app_url: str,
) -> NewAlert:
    """A vendor turns away a key: an organization's own, or the platform's."""
    whose = "own provider key" if is_own else "platform credential"
    what_then = (
        "Requests go on with the platform's keys at the official price, unless it is required."
        if is_own
        else "Requests go on with other endpoints and credentials as long as there are some."
    )
    return NewAlert(
        category="provider_key",
        type="alert.provider_key_failing",
        severity="warning",
        title=f"The {whose} {name} for {provider} is failing",
        message=f"{provider} {_WHY_FAILING[reason]}. The {whose} is {name} ({label}). {what_then}",
        url=links.provider_key(app_url, credential_id) if is_own else links.providers(app_url),
        data={
            "provider_key_id": credential_id,
            "provider": provider,
            "label": label,
            "reason": reason,
            "first_seen_at": first_seen_at,
            "failures": failures,
        },
    )


def destination_disabled(
    *,
    destination_id: str,
    kind: str,
    name: str,
    shown: str,
    failures: int,
    last_status: int | None,
    last_error: str | None,
    disabled_at_us: int,
    app_url: str,
) -> NewAlert:
    """A destination is told nothing more; `shown` is what its record shows of its address."""
    tried, last = f"{failures} attempts in a row", ", the last one"
    if failures == 1:
        tried, last = "An attempt", ""
    return NewAlert(
        category="destination",
        type="alert.destination_disabled",
        severity="critical",
        title=f"The {kind} destination {name} is disabled",
        message=f"{tried} to tell {name} ({shown}) failed{last}: {last_error}."
        " What waits for it is kept for three days. Mend the receiver, then enable the destination.",
        url=links.destination(app_url, destination_id),
        data={
            "destination_id": destination_id,
            "destination_type": kind,
            "name": name,
            "host": shown,
            "consecutive_failures": failures,
            "last_status": last_status,
            "last_error": last_error,
            "disabled_at": iso(disabled_at_us),
        },
    )


def test(*, destination_id: str, name: str, app_url: str) -> NewAlert:
    """What a destination is tested with."""
    return NewAlert(
        category="destination",
        type="alert.test",
        severity="info",
        title=f"A test of {name}",
        message=f"Alerts reach {name}. Nothing happened, and nothing has to be done.",
        url=links.destination(app_url, destination_id),
        data={"destination_id": destination_id, "name": name},
    )


def _reset(resets_at: str | None) -> str:
    return "" if resets_at is None else f" It resets at {resets_at}."
