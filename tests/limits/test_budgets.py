"""Budgets over HTTP: scopes, windows, kinds, refusals, forecast."""

from typing import Any

import httpx
import pytest

from tests.limits import price
from tests.limits.conftest import Opened
from tests.limits.price import bearer, long_context, served_by_own_key
from tests.limits.watch import Watch
from tests.support.node import Gateway

# What 2026-11-25T12:00Z lies in: the start of the window's period, and its end.
PERIODS: dict[str, tuple[str | None, str | None]] = {
    "daily": ("2026-11-25T00:00:00Z", "2026-11-26T00:00:00Z"),
    "weekly": ("2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"),
    "monthly": ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
    "lifetime": (None, None),
}
SCOPES = ("organization", "workspace", "key", "tag", "user")
NAMED = {"tag": "nightly", "user": "ann"}
SENDER = {"x-gw-tags": "eu, nightly", "x-gw-user-id": "ann"}


async def make(
    gateway: Gateway, scope: str, interval: str, limit: float, **fields: Any
) -> dict[str, Any]:
    """A budget for the gateway's organization, its workspace, its key, or what `spend` names in its requests."""
    scope_id = await scope_id_of(gateway, scope)
    body = {"scope": scope, "scope_id": scope_id, "interval": interval, "limit": limit, **fields}
    made: dict[str, Any] = (await gateway.manage("POST", "/budgets", body))["data"]
    return made


async def scope_id_of(gateway: Gateway, scope: str) -> str:
    key = (await gateway.manage("GET", f"/keys/{gateway.key_id}"))["data"]
    found: str = {
        "organization": key["organization_id"],
        "workspace": key["workspace_id"],
        "key": key["id"],
        **NAMED,
    }[scope]
    return found


async def spend(gateway: Gateway, number: int, **headers: str) -> httpx.Response:
    """A request with tags and a user that costs so many cents."""
    return await price.spend(gateway, number, **SENDER, **headers)


def subject(metadata: dict[str, Any]) -> str:
    """The scope of the budget that a refusal names."""
    found: str = metadata.get("budget_subject", metadata["budget_scope"]).partition(":")[0]
    return found


async def standing(gateway: Gateway, budget: dict[str, Any]) -> Any:
    return (await gateway.manage("GET", f"/budgets/{budget['id']}"))["data"]


def refusal(reply: httpx.Response) -> Any:
    assert reply.status_code == 402, reply.text
    return reply.json()["error"]


@pytest.mark.parametrize("interval", PERIODS)
async def test_a_hard_budget_refuses_what_follows_the_request_that_reached_it(
    opened: Opened, watch: Watch, interval: str
) -> None:
    """For each scope: the whole body of the refusal, and the period after it."""
    async with opened() as gateway:
        start, end = PERIODS[interval]
        for scope in SCOPES:
            used = (await gateway.manage("GET", "/credits"))["data"]["total_usage"]
            budget = await make(gateway, scope, interval, round(used + 0.01, 6))
            assert (await spend(gateway, 7)).status_code == 200, "a cent was left: it completes"
            reply = await spend(gateway, 1)
            assert refusal(reply) == {
                "type": "insufficient_credits_error",
                "code": "budget_exceeded",
                "message": refusal(reply)["message"],
                "param": None,
                "status": 402,
                "metadata": {
                    "budget_scope": "organization" if scope in NAMED else scope,
                    "budget_interval": interval,
                    "budget_limit": budget["limit"],
                    "budget_resets_at": end,
                    "budget_id": budget["id"],
                    **({"budget_subject": f"{scope}:{NAMED[scope]}"} if scope in NAMED else {}),
                },
            }
            message = refusal(reply)["message"]
            assert f"{budget['limit']} USD" in message
            assert (end or "does not reset") in message
            now = await standing(gateway, budget)
            assert now["spend"] == pytest.approx(used + 0.07)
            assert (now["period_start"], now["resets_at"], now["remaining"]) == (start, end, 0)
            await gateway.manage("DELETE", f"/budgets/{budget['id']}")
            assert (await spend(gateway, 1)).status_code == 200


@pytest.mark.parametrize("interval", ["daily", "weekly", "monthly"])
async def test_a_budget_opens_again_with_the_first_moment_of_its_next_period(
    opened: Opened, watch: Watch, interval: str
) -> None:
    async with opened() as gateway:
        budget = await make(gateway, "organization", interval, 0.01)
        assert (await spend(gateway, 1)).status_code == 200
        end = PERIODS[interval][1]
        assert end is not None
        watch.set(end)
        watch.pass_by(-0.5)
        refusal(await spend(gateway, 1))
        watch.set(end)
        assert (await standing(gateway, budget))["spend"] == 0
        assert (await spend(gateway, 1)).status_code == 200
        refusal(await spend(gateway, 1))


async def test_a_soft_budget_refuses_nothing_and_tells(gateway: Gateway) -> None:
    for scope in SCOPES:
        await make(gateway, scope, "daily", 0.01, kind="soft")
    for _ in range(2):
        assert (await spend(gateway, 1)).status_code == 200
    events = await gateway.manage("GET", "/budgets?kind=soft")
    assert [one["percent_used"] for one in events["data"]] == [200] * 5
    assert [one["remaining"] for one in events["data"]] == [0] * 5


async def test_of_several_reached_budgets_the_widest_is_named(gateway: Gateway) -> None:
    """Organization before workspace, key, tag and user, and the broadest interval first."""
    made = []
    for scope in reversed(SCOPES):
        for number, interval in enumerate(("daily", "weekly", "monthly", "lifetime")):
            made.append(await make(gateway, scope, interval, 0.001 * (number + 1)))
    assert (await spend(gateway, 1)).status_code == 200
    named: list[tuple[str, str]] = []
    while len(named) < len(made):
        found = refusal(await spend(gateway, 1))["metadata"]
        named.append((subject(found), found["budget_interval"]))
        await gateway.manage("DELETE", f"/budgets/{found['budget_id']}")
    intervals = ("lifetime", "monthly", "weekly", "daily")
    assert named == [(scope, interval) for scope in SCOPES for interval in intervals]
    assert (await spend(gateway, 1)).status_code == 200


async def test_a_key_s_own_limit_is_named_before_a_budget(gateway: Gateway) -> None:
    """The key's limit before hard budgets before the balance."""
    await make(gateway, "organization", "daily", 0.01)
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": 0.01})
    assert (await spend(gateway, 1)).status_code == 200
    everything = {"amount": 9.99, "note": "out"}
    await gateway.manage("POST", "/credits/refunds", everything)
    assert refusal(await spend(gateway, 1))["code"] == "key_limit_exceeded"
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": None})
    assert refusal(await spend(gateway, 1))["code"] == "budget_exceeded"
    found = (await gateway.manage("GET", "/budgets"))["data"]
    await gateway.manage("DELETE", f"/budgets/{found[0]['id']}")
    assert refusal(await spend(gateway, 1))["code"] == "insufficient_credits"


async def test_a_budget_made_in_mid_period_counts_what_the_period_already_spent(
    opened: Opened, watch: Watch
) -> None:
    """Spend counts from the period's start, however young the budget."""
    async with opened() as gateway:
        for moment, number in (
            ("2026-11-27T12:00:00Z", 1),  # Friday
            ("2026-11-30T12:00:00Z", 2),  # Monday, same month
            ("2026-12-01T12:00:00Z", 4),  # Tuesday, same week
            ("2026-12-02T12:00:00Z", 8),
        ):
            watch.set(moment)
            assert (await spend(gateway, number)).status_code == 200
        spends: dict[str, set[float]] = {}
        for scope in SCOPES:
            for limit, interval in enumerate(PERIODS, start=1):
                budget = await make(gateway, scope, interval, limit)
                spends.setdefault(interval, set()).add(budget["spend"])
        assert spends == {
            "daily": {0.08},
            "weekly": {0.14},
            "monthly": {0.12},
            "lifetime": {0.15},
        }


async def test_a_budget_already_used_up_when_it_is_made_refuses_at_once(gateway: Gateway) -> None:
    assert (await spend(gateway, 2)).status_code == 200
    budget = await make(gateway, "workspace", "monthly", 0.02)
    assert (budget["spend"], budget["remaining"], budget["percent_used"]) == (0.02, 0, 100)
    assert refusal(await spend(gateway, 1))["metadata"]["budget_id"] == budget["id"]


async def test_a_raised_budget_opens_and_a_lowered_one_closes_at_the_next_request(
    gateway: Gateway,
) -> None:
    budget = await make(gateway, "key", "lifetime", 0.01)
    assert (await spend(gateway, 1)).status_code == 200
    refusal(await spend(gateway, 1))
    path = f"/budgets/{budget['id']}"
    assert (await gateway.manage("PATCH", path, {"limit": 0.02}))["data"]["remaining"] == 0.01
    assert (await spend(gateway, 1)).status_code == 200
    await gateway.manage("PATCH", path, {"limit": 5})
    assert (await spend(gateway, 1)).status_code == 200
    await gateway.manage("PATCH", path, {"limit": 0.03})
    refusal(await spend(gateway, 1))


async def test_a_key_s_budget_follows_it_through_rotation(gateway: Gateway) -> None:
    await make(gateway, "key", "lifetime", 0.02)
    assert (await spend(gateway, 1)).status_code == 200
    rotated = await gateway.manage("POST", f"/keys/{gateway.key_id}/rotate")
    own = bearer(rotated["key"])
    assert (await spend(gateway, 1, **own)).status_code == 200
    for headers in ({}, own):
        assert refusal(await spend(gateway, 1, **headers))["code"] == "budget_exceeded"
    own_report = await gateway.client.get("/auth/key", headers=own)
    [shown] = own_report.json()["data"]["budgets"]
    assert (shown["limit"], shown["spend"], shown["remaining"]) == (0.02, 0.02, 0)


async def test_another_workspace_and_another_key_are_not_bound_by_it(gateway: Gateway) -> None:
    for scope in ("workspace", "key"):
        await make(gateway, scope, "daily", 0.01)
    assert (await spend(gateway, 1)).status_code == 200
    refusal(await spend(gateway, 1))
    web = (await gateway.manage("POST", "/workspaces", {"name": "Web"}))["data"]["id"]
    elsewhere, _ = await gateway.new_key(workspace_id=web)
    assert (await spend(gateway, 1, **bearer(elsewhere))).status_code == 200
    beside, _ = await gateway.new_key()
    found = refusal(await spend(gateway, 1, **bearer(beside)))
    assert found["metadata"]["budget_scope"] == "workspace"


async def test_a_tag_s_and_a_user_s_budget_bind_what_bears_the_name_and_nothing_else(
    gateway: Gateway,
) -> None:
    for scope in NAMED:
        await make(gateway, scope, "daily", 0.01)
    assert (await spend(gateway, 1)).status_code == 200
    assert subject(refusal(await spend(gateway, 1))["metadata"]) == "tag"
    for headers in ({}, {"x-gw-tags": "eu,Nightly", "x-gw-user-id": "ben"}):
        assert (await price.spend(gateway, 1, **headers)).status_code == 200
    found = refusal(await price.spend(gateway, 1, **{"x-gw-user-id": "ann"}))
    assert (found["code"], found["metadata"]["budget_subject"]) == ("budget_exceeded", "user:ann")
    assert "the user ann" in found["message"]
    record = await gateway.operator.get("/generations", params={"status": "refused", "user": "ann"})
    assert record.json()["data"][0]["error"]["code"] == "budget_exceeded"
    # A tag of the key binds all its requests, and its own report says so.
    key, _ = await gateway.new_key(tags=["nightly"])
    found = refusal(await price.spend(gateway, 1, **bearer(key)))
    assert found["metadata"]["budget_subject"] == "tag:nightly"
    report = (await gateway.client.get("/auth/key", headers=bearer(key))).json()["data"]
    assert [one["subject"] for one in report["budgets"]] == ["tag:nightly"]
    question = {"model": "demo/chat"}
    told = (await gateway.client.post("/route/explain", json=question, headers=bearer(key))).json()
    assert [one["code"] for one in told["data"]["refusals"]] == ["budget_exceeded"]


@pytest.mark.parametrize(
    ("scope", "name"), [("tag", "a,b"), ("tag", "a" * 65), ("user", "u" * 257), ("user", "")]
)
async def test_a_name_that_no_request_can_bear_is_refused(
    gateway: Gateway, scope: str, name: str
) -> None:
    body = {"scope": scope, "scope_id": name, "interval": "daily", "limit": 1}
    refused = await gateway.manage("POST", "/budgets", body, status=400)
    assert refused["error"]["param"] == "scope_id"
    missing = await gateway.manage("POST", "/budgets", {**body, "scope_id": None}, status=400)
    assert missing["error"]["code"] == "missing_parameter"


async def test_own_provider_keys_count_only_where_a_budget_includes_them(gateway: Gateway) -> None:
    await make(gateway, "organization", "daily", 0.05)
    including = await make(gateway, "workspace", "daily", 0.05, include_byok=True)
    await served_by_own_key(gateway, gateway.key_id, list_price="0.05", fee="0.0025")
    found = refusal(await spend(gateway, 1))
    assert found["metadata"]["budget_id"] == including["id"]
    assert (await standing(gateway, including))["spend"] == 0.0525
    await gateway.manage("PATCH", f"/budgets/{including['id']}", {"include_byok": False})
    assert (await standing(gateway, including))["spend"] == 0.0025
    assert (await spend(gateway, 1)).status_code == 200


async def test_the_forecast_is_linear_from_the_period_s_start(opened: Opened, watch: Watch) -> None:
    """Rate = spend / elapsed, projected to the window's end; exhausted only inside the window."""
    async with opened() as gateway:
        watch.set("2026-11-25T16:00:00Z")
        assert (await spend(gateway, 16)).status_code == 200
        watch.set("2026-11-25T18:00:00Z")
        holds = await make(gateway, "organization", "daily", 0.3)
        spent = await make(gateway, "workspace", "daily", 0.2)
        month = await make(gateway, "organization", "monthly", 0.5)
        for budget, moment in ((holds, None), (spent, "2026-11-25T22:30:00"), (month, None)):
            shown = (await standing(gateway, budget))["forecast"]
            assert (shown["exhausts_at"] or "")[:16] == (moment or "")[:16], budget
        daily = (await standing(gateway, holds))["forecast"]["projected_spend"]
        assert daily == pytest.approx(0.16 / 18 * 24, rel=1e-3)
        monthly = (await standing(gateway, month))["forecast"]["projected_spend"]
        assert monthly == pytest.approx(0.16 / (24 * 24 + 18) * 30 * 24, rel=1e-3)


async def test_the_first_hour_of_a_period_counts_whole(opened: Opened, watch: Watch) -> None:
    """The rate is taken over at least an hour, so that one early request predicts no ruin."""
    async with opened() as gateway:
        watch.set("2026-11-26T00:00:10Z")
        assert (await spend(gateway, 1)).status_code == 200
        budget = await make(gateway, "organization", "daily", 1)
        shown = (await standing(gateway, budget))["forecast"]
        assert shown["projected_spend"] == pytest.approx(0.01 + 0.01 * 24, rel=1e-3)
        assert shown["exhausts_at"] is None


async def test_a_lifetime_is_forecast_from_the_last_seven_days(
    opened: Opened, watch: Watch
) -> None:
    async with opened() as gateway:
        await long_context(gateway)
        assert (await spend(gateway, 50)).status_code == 200
        watch.set("2026-12-31T12:00:00Z")
        assert (await spend(gateway, 13)).status_code == 200
        budget = await make(gateway, "organization", "lifetime", 1.03)
        shown = (await standing(gateway, budget))["forecast"]
        assert shown["projected_spend"] is None
        # 0.13 USD in six and a half days; 0.40 USD are left: twenty days.
        assert shown["exhausts_at"][:13] == "2027-01-20T12"
        watch.set("2027-01-10T00:00:00Z")
        assert (await standing(gateway, budget))["forecast"]["exhausts_at"] is None


async def test_what_is_lowered_for_one_kind_does_not_bind_the_other(gateway: Gateway) -> None:
    """The order of limits is per scope object and kind."""
    await make(gateway, "organization", "monthly", 1)
    await make(gateway, "organization", "daily", 5, kind="soft")
    await make(gateway, "workspace", "daily", 5)
    scope = {"scope": "organization", "interval": "daily"}
    too_wide = await gateway.manage("POST", "/budgets", {**scope, "limit": 1}, status=400)
    assert too_wide["error"]["code"] == "budget_order_violation"
    assert "monthly" in too_wide["error"]["message"]
    assert "daily" in too_wide["error"]["message"]
