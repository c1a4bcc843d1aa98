"""Every type of alert: its category and severity, and that its data has the fields that are promised, and no other."""

from typing import Any

import pytest

from gwd.alerts import samples
from gwd.alerts.categories import EMAIL_ROLES

APP, NOW_US = "https://app.example", 1_790_000_000_000_000

LIFECYCLE = {
    *("model", "name", "vendor", "deprecated_at", "retired_at", "successor", "forwards_to"),
    *("forwarding_enabled", "requests_last_30d", "keys"),
}
AVAILABILITY = {"model", "eligible_endpoints", "since", "reason", "last_errors"}
FIELDS: dict[str, tuple[str, str, set[str]]] = {
    "alert.low_balance": (
        "low_balance",
        "warning",
        {"balance", "available", "threshold", "currency", "auto_topup_enabled"},
    ),
    "alert.budget_threshold": (
        "budget_threshold",
        "warning",
        {
            *("budget_id", "scope", "scope_id", "scope_name", "interval", "kind", "limit", "spend"),
            *("threshold_percent", "thresholds_crossed", "percent_used", "remaining", "resets_at"),
            *("forecast", "shadow"),
        },
    ),
    "alert.key_limit": (
        "key_limit",
        "warning",
        {
            *("key_id", "key_hash", "key_name", "workspace_id", "limit", "limit_reset", "usage"),
            *("percent_used", "threshold_percent", "thresholds_crossed", "resets_at"),
        },
    ),
    "alert.auto_topup_failed": (
        "auto_topup",
        "critical",
        {"amount", "threshold", "balance", "attempt", "reason", "next_attempt_at"},
    ),
    "alert.destination_disabled": (
        "destination",
        "critical",
        {
            *("destination_id", "destination_type", "name", "host", "consecutive_failures"),
            *("last_status", "last_error", "disabled_at"),
        },
    ),
    "alert.provider_key_failing": (
        "provider_key",
        "warning",
        {"provider_key_id", "provider", "label", "reason", "first_seen_at", "failures"},
    ),
    "alert.ledger_quarantined": ("node", "critical", {"reason", "since"}),
    "alert.certificate_ending": ("node", "warning", {"names", "ends_at"}),
    "alert.backup_overdue": ("node", "warning", {"directory", "newest_at", "every_s", "reason"}),
    "alert.test": ("destination", "info", {"destination_id", "name"}),
    "model.unavailable": ("model_availability", "warning", AVAILABILITY),
    "model.available": ("model_availability", "info", AVAILABILITY),
    "model.price_changed": (
        "price_change",
        "warning",
        {
            *("model", "vendor", "endpoints", "effective_at", "in_force", "old", "new"),
            *("change_percent", "requests_last_30d"),
        },
    ),
    "model.alias_moved": (
        "price_change",
        "info",
        {
            *("alias", "model", "previous_model", "vendor", "effective_at"),
            "requests_last_30d",
        },
    ),
    "model.deprecated": ("model_deprecation", "warning", LIFECYCLE),
    "model.retiring": ("model_deprecation", "warning", LIFECYCLE),
    "model.retired": ("model_deprecation", "critical", LIFECYCLE),
}


def test_every_type_has_the_data_that_is_promised() -> None:
    found: dict[str, Any] = {}
    for type_ in samples.TYPES:
        alert = samples.sample(type_, app_url=APP, now_us=NOW_US)
        assert alert is not None
        assert alert.type == type_
        assert alert.title.startswith("[test] ")
        assert alert.url.startswith(APP)
        assert alert.category in EMAIL_ROLES
        found[type_] = (alert.category, alert.severity, set(alert.data) - {"test"})
    assert found == FIELDS


@pytest.mark.parametrize("type_", ["", "alert.unknown", "model"])
def test_a_type_that_there_is_not_has_no_sample(type_: str) -> None:
    assert samples.sample(type_, app_url=APP, now_us=NOW_US) is None
