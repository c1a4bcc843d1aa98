"""Each type of alert: when it is raised, and a sample as receivers are tried with.

Samples are worded like the real ones and marked as a test.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from gwd.alerts import catalog_notices, node_alerts, notices
from gwd.alerts.service import NewAlert
from gwd.catalog.events import CatalogEvent, PriceChange
from gwd.catalog.lifecycle import Lifecycle
from gwd.catalog.snapshot import Model
from gwd.core.clock import US_PER_DAY, iso
from gwd.core.cost import Price
from gwd.core.money import usd_json

_USD: Final = 1_000_000_000
_MODEL: Final = Model(
    id="acme/fast-1",
    name="Acme Fast 1",
    vendor="Acme",
    description=None,
    family="fast",
    aliases=(),
    context_length=200_000,
    max_completion_tokens=32_000,
    default_max_tokens=None,
    supported_parameters=(),
    input_modalities=("text",),
    output_modalities=("text",),
    is_moderated=False,
    released_at_us=None,
    created_at_us=0,
    life=Lifecycle(successor="acme/fast-2"),
    endpoints=(),
)
_NEXT: Final = msgspec.structs.replace(_MODEL, id="acme/fast-2", name="Acme Fast 2")


def sample(type_: str, *, app_url: str, now_us: int) -> NewAlert | None:
    """A sample of a type; None of a type that there is not."""
    make = _SAMPLES.get(type_)
    if make is None:
        return None
    alert = make(app_url, now_us)
    return msgspec.structs.replace(
        alert, title=f"[test] {alert.title}", data={**alert.data, "test": True}
    )


def _key_limit(app_url: str, now_us: int) -> NewAlert:
    data: dict[str, Any] = {
        "key_id": "key_sample",
        "key_hash": "0" * 64,
        "key_name": "ci",
        "workspace_id": "ws_sample",
        "limit": usd_json(50 * _USD),
        "limit_reset": "monthly",
        "usage": usd_json(41 * _USD),
        "percent_used": 82.0,
        "threshold_percent": 80,
        "thresholds_crossed": [80],
        "resets_at": iso(now_us + 10 * US_PER_DAY),
    }
    return notices.key_limit(
        data, name="ci", limit_nano=50 * _USD, severity="warning", app_url=app_url
    )


def _budget(app_url: str, now_us: int) -> NewAlert:
    budget: dict[str, Any] = {
        "id": "bud_sample",
        "scope": "workspace",
        "scope_id": "ws_sample",
        "interval": "monthly",
        "kind": "hard",
        "shadow": False,
        "limit_in_force": usd_json(500 * _USD),
        "spend": usd_json(455 * _USD),
        "percent_used": 91.0,
        "remaining": usd_json(45 * _USD),
        "resets_at": iso(now_us + 10 * US_PER_DAY),
        "forecast": {
            "projected_spend": usd_json(610 * _USD),
            "exhausts_at": iso(now_us + 3 * US_PER_DAY),
        },
    }
    return notices.budget_threshold(
        budget,
        scope_name="web",
        percent=90,
        crossed=(90,),
        limit_nano=500 * _USD,
        severity="warning",
        app_url=app_url,
    )


def _low_balance(app_url: str, now_us: int) -> NewAlert:
    return notices.low_balance(
        owned_nano=4 * _USD,
        available_nano=3 * _USD,
        threshold_nano=5 * _USD,
        severity="warning",
        topup_enabled=False,
        organization="Acme",
        app_url=app_url,
    )


def _topup(app_url: str, now_us: int) -> NewAlert:
    return notices.auto_topup_failed(
        amount_nano=20 * _USD,
        threshold_nano=5 * _USD,
        balance_nano=4 * _USD,
        attempt=2,
        reason="the hook answered 503",
        next_attempt_at=iso(now_us + 300_000_000),
        organization="Acme",
        app_url=app_url,
    )


def _disabled(app_url: str, now_us: int) -> NewAlert:
    return notices.destination_disabled(
        destination_id="dst_sample",
        kind="webhook",
        name="ops",
        shown="https://hooks.example.com/gw",
        failures=5,
        last_status=503,
        last_error="the receiver answered 503",
        disabled_at_us=now_us,
        app_url=app_url,
    )


def _provider_key(app_url: str, now_us: int) -> NewAlert:
    return notices.provider_key_failing(
        credential_id="pk_sample",
        name="batch",
        label="sk-…5533",
        provider="acme",
        is_own=True,
        reason="auth_invalid",
        first_seen_at=iso(now_us),
        failures=3,
        app_url=app_url,
    )


def _test(app_url: str, now_us: int) -> NewAlert:
    return notices.test(destination_id="dst_sample", name="ops", app_url=app_url)


def _lifecycle(kind: Any, days: int) -> Callable[[str, int], NewAlert]:
    def make(app_url: str, now_us: int) -> NewAlert:
        ends_us = now_us + days * US_PER_DAY
        life = Lifecycle(
            deprecated_at_us=min(now_us, ends_us - US_PER_DAY),
            retired_at_us=ends_us,
            successor=_NEXT.id,
        )
        event = CatalogEvent(
            kind=kind,
            model=msgspec.structs.replace(_MODEL, life=life),
            at_us=now_us if kind == "deprecated" else ends_us,
        )
        return catalog_notices.lifecycle(
            event,
            successor=_NEXT,
            forwarding=True,
            requests=1_204,
            keys=[{"id": "key_sample", "name": "ci", "requests": 1_204}],
            app_url=app_url,
            now_us=now_us,
        )

    return make


def _price(app_url: str, now_us: int) -> NewAlert:
    old = Price(
        version="prc_old",
        prompt_pico=2_000_000,
        completion_pico=8_000_000,
        cache_read_pico=500_000,
        cache_write_5m_pico=2_000_000,
        cache_write_1h_pico=2_000_000,
        reasoning_pico=8_000_000,
    )
    new = msgspec.structs.replace(old, version="prc_new", completion_pico=10_000_000)
    change = PriceChange(old=old, new=new, tags=("acme",), versions=("prc_new",))
    event = CatalogEvent(
        kind="price_announced", model=_MODEL, at_us=now_us + 14 * US_PER_DAY, price=change
    )
    return catalog_notices.price_changed(event, requests=1_204, app_url=app_url)


def _alias(app_url: str, now_us: int) -> NewAlert:
    event = CatalogEvent(
        kind="alias_moved",
        model=_NEXT,
        at_us=now_us,
        alias="~acme/fast-latest",
        before=_MODEL,
    )
    return catalog_notices.alias_moved(event, requests=1_204, app_url=app_url)


def _availability(*, is_back: bool) -> Callable[[str, int], NewAlert]:
    def make(app_url: str, now_us: int) -> NewAlert:
        return catalog_notices.availability(
            _MODEL,
            is_back=is_back,
            eligible=int(is_back),
            since_us=now_us - 120_000_000,
            reason="" if is_back else "acme: overloaded",
            last_errors=[] if is_back else [{"vendor": "acme", "reason": "overloaded", "count": 1}],
            app_url=app_url,
        )

    return make


def _quarantine(app_url: str, now_us: int) -> NewAlert:
    return node_alerts.quarantine_notice(
        "the ledger of org_sample does not add up", app_url=app_url, now_us=now_us
    )


def _certificate(app_url: str, now_us: int) -> NewAlert:
    return node_alerts.certificate_notice(
        ends_us=now_us + 7 * US_PER_DAY, names=["gate.example"], app_url=app_url, now_us=now_us
    )


def _backup(app_url: str, now_us: int) -> NewAlert:
    return node_alerts.backup_notice(
        directory="/backup/gwd",
        newest_us=now_us - 3 * 3_600_000_000,
        every_us=3_600_000_000,
        reason="there is no room for a copy in /backup/gwd",
        is_damage=False,
        app_url=app_url,
    )


_SAMPLES: Final[dict[str, Callable[[str, int], NewAlert]]] = {
    "alert.low_balance": _low_balance,
    "alert.budget_threshold": _budget,
    "alert.key_limit": _key_limit,
    "alert.auto_topup_failed": _topup,
    "alert.provider_key_failing": _provider_key,
    "alert.destination_disabled": _disabled,
    "alert.ledger_quarantined": _quarantine,
    "alert.certificate_ending": _certificate,
    "alert.backup_overdue": _backup,
    "alert.test": _test,
    "model.unavailable": _availability(is_back=False),
    "model.available": _availability(is_back=True),
    "model.price_changed": _price,
    "model.alias_moved": _alias,
    "model.deprecated": _lifecycle("deprecated", 60),
    "model.retiring": _lifecycle("retiring", 7),
    "model.retired": _lifecycle("retired", 0),
}
TYPES: Final = tuple(_SAMPLES)
"""Every type of alert that there is."""

WHEN: Final[dict[str, str]] = {
    "alert.low_balance": "The balance falls below `low_balance_threshold` (10 USD unless set, null for"
    " never); critical when nothing is left. Again after it was 10 % above the threshold.",
    "alert.budget_threshold": "Spending reaches a threshold of a budget, 50, 80, 90 and 100 % unless it has"
    " others: once a period, of several at once the highest. Info below 80 %, critical at 100 % of a hard budget.",
    "alert.key_limit": "Spending reaches a threshold of a key's limit, 50, 80, 90 and 100 % unless it has"
    " others: once a period, of several at once the highest. Info below 80 %, critical at 100 %.",
    "alert.auto_topup_failed": "The payment hook does not confirm a top-up, at each try; or the monthly cap"
    " stops it.",
    "alert.provider_key_failing": "A vendor turns away a key: one of the organization's own, or, to the operator,"
    " one of the node's. Once until it serves again or is changed.",
    "alert.destination_disabled": "Five attempts in a row to tell a destination failed, or it answered 410.",
    "alert.ledger_quarantined": "The books do not add up, and the node serves nothing. To the operator.",
    "alert.certificate_ending": "The listener's certificate ends in 30, 7 or 1 days; critical when it has"
    " ended. To the operator.",
    "alert.backup_overdue": "The newest proved copy of the database is older than twice `[backup] every`; critical"
    " when a copy proved wrong, or is no longer what it was. Once until there is a good one again. To the operator.",
    "alert.test": "Somebody tries a destination. To that one alone.",
    "model.unavailable": "No endpoint could serve a model for two minutes. To those who used it in the last"
    " 30 days, and to the operator.",
    "model.available": "It can be served again for two minutes, after that was told.",
    "model.price_changed": "A price is announced, and again when it is in force; warning where a class rises."
    " To those who used the model in the last 30 days.",
    "model.alias_moved": "A name leads to another model. To those who used the one before in the last 30"
    " days.",
    "model.deprecated": "A model is deprecated. To everybody, or with `deprecation_alerts` `used` to those"
    " who used it in the last 30 days.",
    "model.retiring": "30, 7 and 1 days before it is retired. To the same.",
    "model.retired": "A model is retired. To the same.",
}
"""In words for the page of types."""
