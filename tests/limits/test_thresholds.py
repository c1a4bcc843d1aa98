"""Alerts about money: thresholds of keys and budgets, the low balance."""

from decimal import Decimal
from typing import Any

import pytest

from tests.limits.conftest import Opened
from tests.limits.price import bearer, long_context, served_by_own_key, spend
from tests.limits.raised_alerts import percents, raised_alerts
from tests.limits.watch import Watch
from tests.support.node import Gateway

OWNER = ("owner@acme.example",)
APP = "http://127.0.0.1"


async def quiet(gateway: Gateway) -> None:
    """No alert about the balance."""
    await gateway.manage("PATCH", "/organization/settings", {"low_balance_threshold": None})


async def test_a_key_s_limit_tells_at_50_80_90_and_100_percent_once_each(
    gateway: Gateway,
) -> None:
    """Owners and admins are emailed at 80 percent and above."""
    await quiet(gateway)
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": 0.1})
    seen = []
    for number in (4, 1, 1, 2, 1, 1):
        assert (await spend(gateway, number)).status_code == 200
        seen.append(await percents(gateway, "key_limit"))
    assert seen == [[], [50], [50], [50, 80], [50, 80, 90], [50, 80, 90, 100]]
    assert (await spend(gateway, 1)).status_code == 402
    alerts = await raised_alerts(gateway, "key_limit")
    assert [(one.type, one.severity, one.recipients) for one in alerts] == [
        ("alert.key_limit", "info", ()),
        ("alert.key_limit", "warning", OWNER),
        ("alert.key_limit", "warning", OWNER),
        ("alert.key_limit", "critical", OWNER),
    ]
    key = (await gateway.manage("GET", f"/keys/{gateway.key_id}"))["data"]
    assert alerts[1].data == {
        "organization_id": key["organization_id"],
        "key_id": key["id"],
        "key_hash": key["hash"],
        "key_name": "test",
        "workspace_id": key["workspace_id"],
        "limit": Decimal("0.1"),
        "limit_reset": None,
        "usage": Decimal("0.08"),
        "percent_used": Decimal("80.0"),
        "threshold_percent": 80,
        "thresholds_crossed": [80],
        "resets_at": None,
    }
    assert all(key["id"] in one.url for one in alerts)


async def test_several_thresholds_crossed_at_once_are_one_alert_for_the_highest(
    gateway: Gateway,
) -> None:
    await quiet(gateway)
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": 0.1})
    assert (await spend(gateway, 9)).status_code == 200
    [one] = await raised_alerts(gateway, "key_limit")
    assert (one.data["threshold_percent"], one.data["thresholds_crossed"]) == (90, [50, 80, 90])
    assert (await spend(gateway, 30)).status_code == 200
    assert await percents(gateway, "key_limit") == [90, 100]


async def test_a_threshold_speaks_once_a_window_and_anew_in_the_next(
    opened: Opened, watch: Watch
) -> None:
    async with opened() as gateway:
        await quiet(gateway)
        daily = {"limit": 0.02, "limit_reset": "daily"}
        await gateway.manage("PATCH", f"/keys/{gateway.key_id}", daily)
        budget = {"scope": "organization", "interval": "weekly", "limit": 0.04}
        await gateway.manage("POST", "/budgets", budget)
        for _ in range(2):
            assert (await spend(gateway, 1)).status_code == 200
        assert await percents(gateway, "key_limit") == [50, 100]
        assert await percents(gateway, "budget_threshold") == [50]
        watch.set("2026-11-26T00:00:00Z")
        assert (await spend(gateway, 1)).status_code == 200
        assert await percents(gateway, "key_limit") == [50, 100, 50]
        assert await percents(gateway, "budget_threshold") == [50]
        latest = (await raised_alerts(gateway, "key_limit"))[-1]
        assert latest.data["resets_at"] == "2026-11-27T00:00:00Z"
        watch.set("2026-11-30T00:00:00Z")
        assert (await spend(gateway, 2)).status_code == 200
        assert await percents(gateway, "key_limit") == [50, 100, 50, 100]
        assert await percents(gateway, "budget_threshold") == [50, 50]


async def test_rotation_repeats_no_alert(gateway: Gateway) -> None:
    """What an alert has said of a key is not said again of its successor."""
    await quiet(gateway)
    key, key_id = await gateway.new_key(limit=0.1)
    await gateway.manage(
        "POST",
        "/budgets",
        {"scope": "key", "scope_id": key_id, "interval": "lifetime", "limit": 0.1},
    )
    assert (await spend(gateway, 5, **bearer(key))).status_code == 200
    rotated = await gateway.manage("POST", f"/keys/{key_id}/rotate")
    for each in (rotated["key"], key, rotated["key"]):
        assert (await spend(gateway, 1, **bearer(each))).status_code == 200
    assert await percents(gateway, "key_limit") == [50, 80]
    assert await percents(gateway, "budget_threshold") == [50, 80]
    newest = (await raised_alerts(gateway, "key_limit"))[-1]
    assert newest.data["key_id"] == rotated["data"]["id"]


async def test_a_key_may_name_its_own_thresholds(gateway: Gateway) -> None:
    await quiet(gateway)
    own, _ = await gateway.new_key(limit=0.1, alert_thresholds=[75])
    silent, _ = await gateway.new_key(limit=0.1, alert_thresholds=[])
    for key in (own, silent):
        for number in (5, 3, 2):
            assert (await spend(gateway, number, **bearer(key))).status_code == 200
    assert await percents(gateway, "key_limit") == [75]


async def test_a_limit_lowered_below_what_was_spent_tells_at_once(gateway: Gateway) -> None:
    """No charge will cross it any more: the key refuses from now on."""
    await quiet(gateway)
    path = f"/keys/{gateway.key_id}"
    await gateway.manage("PATCH", path, {"limit": 1})
    assert (await spend(gateway, 4)).status_code == 200
    await gateway.manage("PATCH", path, {"limit": 0.05})
    await gateway.manage("PATCH", path, {"limit": 0.04})
    assert await percents(gateway, "key_limit") == [80, 100]
    for changes in ({"name": "other"}, {"limit": 0.06}, {"limit": 0.04}, {"limit": None}):
        await gateway.manage("PATCH", path, changes)
    assert await percents(gateway, "key_limit") == [80, 100]


async def test_own_provider_keys_cross_thresholds_only_where_they_count(
    gateway: Gateway,
) -> None:
    await quiet(gateway)
    _, plain = await gateway.new_key(limit=0.1)
    _, counting = await gateway.new_key(limit=0.1, include_byok_in_limit=True)
    for key_id in (plain, counting):
        await served_by_own_key(gateway, key_id, list_price="0.08", fee="0.004")
    [one] = await raised_alerts(gateway, "key_limit")
    assert (one.data["key_id"], one.data["threshold_percent"]) == (counting, 80)


@pytest.mark.parametrize(
    ("kind", "full", "scope", "name"),
    [
        ("hard", "critical", "organization", "Acme"),
        ("soft", "warning", "organization", "Acme"),
        ("hard", "critical", "tag", "nightly"),
        ("soft", "warning", "user", "ann"),
    ],
)
async def test_a_budget_tells_at_its_thresholds(
    gateway: Gateway, kind: str, full: str, scope: str, name: str
) -> None:
    """50 info, 80 and 90 warning, 100 critical for a hard budget, warning for a soft one."""
    await quiet(gateway)
    sender = {"x-gw-tags": "eu,nightly", "x-gw-user-id": "ann"}
    body: dict[str, Any] = {"scope": scope, "interval": "monthly", "limit": 0.1, "kind": kind}
    body |= {} if scope == "organization" else {"scope_id": name}
    budget = (await gateway.manage("POST", "/budgets", body))["data"]
    for number in (5, 3, 1, 1):
        assert (await spend(gateway, number, **sender)).status_code == 200
    status = 402 if kind == "hard" else 200
    assert (await spend(gateway, 1, **sender)).status_code == status
    alerts = await raised_alerts(gateway, "budget_threshold")
    assert [(one.data["threshold_percent"], one.severity, one.recipients) for one in alerts] == [
        (50, "info", ()),
        (80, "warning", OWNER),
        (90, "warning", OWNER),
        (100, full, OWNER),
    ]
    assert {one.type for one in alerts} == {"alert.budget_threshold"}
    data = alerts[1].data
    assert set(data) == {
        *("organization_id", "budget_id", "scope", "scope_id", "scope_name", "interval", "kind"),
        *("threshold_percent", "thresholds_crossed", "limit", "spend", "percent_used"),
        *("shadow", "remaining", "resets_at", "forecast"),
    }
    assert (data["budget_id"], data["spend"], data["remaining"]) == (
        budget["id"],
        Decimal("0.08"),
        Decimal("0.02"),
    )
    assert data["resets_at"] == budget["resets_at"]
    assert (data["scope"], data["scope_name"]) == (scope, name)
    assert alerts[1].title == f"The monthly budget of {scope} {name} is at 80 %"


async def test_a_budget_made_over_a_threshold_tells_at_once(gateway: Gateway) -> None:
    await quiet(gateway)
    assert (await spend(gateway, 9)).status_code == 200
    body = {"scope": "organization", "interval": "lifetime", "limit": 0.1}
    made = (await gateway.manage("POST", "/budgets", body))["data"]
    assert await percents(gateway, "budget_threshold") == [90]
    await gateway.manage("PATCH", f"/budgets/{made['id']}", {"limit": 0.09})
    assert await percents(gateway, "budget_threshold") == [90, 100]


async def test_a_failed_or_insured_request_crosses_nothing(gateway: Gateway) -> None:
    await quiet(gateway)
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": 0.000001})
    for words in ("server_error", "empty finish=none"):
        gateway.vendor.script.next(words)
        await gateway.chat()
    assert await raised_alerts(gateway) == []


async def test_a_low_balance_is_told_on_crossing_and_again_only_after_it_rose_clearly(
    gateway: Gateway,
) -> None:
    """On crossing below; re-armed after the balance has risen 10 % above the threshold."""
    await long_context(gateway)
    await gateway.manage("PATCH", "/organization/settings", {"low_balance_threshold": 9.9})
    for number in (5, 5, 1, 3):
        assert (await spend(gateway, number)).status_code == 200
    [first] = await raised_alerts(gateway, "low_balance")  # 9.90 is not below, 9.89 is
    assert (first.type, first.severity) == ("alert.low_balance", "warning")
    assert first.recipients == OWNER
    assert first.data == {
        "organization_id": first.data["organization_id"],
        "balance": Decimal("9.89"),
        "available": Decimal("9.89"),
        "threshold": Decimal("9.9"),
        "currency": "USD",
        "auto_topup_enabled": False,
    }
    # 9.86 + 1 is above the threshold, but not clearly: silence when it falls again.
    await gateway.manage("POST", "/credits/purchases", {"amount": 1})
    assert (await spend(gateway, 97)).status_code == 200
    assert len(await raised_alerts(gateway, "low_balance")) == 1
    # 9.89 + 1 = 10.89 is 10 % above.
    await gateway.manage("POST", "/credits/purchases", {"amount": 1})
    assert len(await raised_alerts(gateway, "low_balance")) == 1
    assert (await spend(gateway, 99)).status_code == 200
    assert len(await raised_alerts(gateway, "low_balance")) == 1, "9.90 again: not below"
    assert (await spend(gateway, 1)).status_code == 200
    assert len(await raised_alerts(gateway, "low_balance")) == 2


async def test_an_empty_balance_is_told_once_more_and_critically(gateway: Gateway) -> None:
    await gateway.manage("POST", "/credits/refunds", {"amount": 9.95, "note": "out"})
    assert (await spend(gateway, 1)).status_code == 200
    assert (await spend(gateway, 4)).status_code == 200
    alerts = await raised_alerts(gateway, "low_balance")
    assert [one.severity for one in alerts] == ["warning", "critical"]
    assert alerts[1].data["balance"] == 0


async def test_a_lowered_threshold_of_the_balance_speaks_when_it_is_crossed(
    gateway: Gateway,
) -> None:
    """With ten dollars and the default of ten the first request tells; five must still be told."""
    assert (await spend(gateway, 1)).status_code == 200
    assert len(await raised_alerts(gateway, "low_balance")) == 1
    await gateway.manage("PATCH", "/organization/settings", {"low_balance_threshold": 5})
    assert (await spend(gateway, 1)).status_code == 200
    assert len(await raised_alerts(gateway, "low_balance")) == 1
    await gateway.manage("POST", "/credits/refunds", {"amount": 4.98, "note": "out"})
    assert (await spend(gateway, 1)).status_code == 200
    alerts = await raised_alerts(gateway, "low_balance")
    assert [one.data["threshold"] for one in alerts] == [10, 5]


async def test_without_a_threshold_nothing_is_told_of_the_balance(gateway: Gateway) -> None:
    await quiet(gateway)
    await gateway.manage("POST", "/credits/refunds", {"amount": 9.99, "note": "out"})
    assert (await spend(gateway, 1)).status_code == 200
    assert await raised_alerts(gateway) == []
