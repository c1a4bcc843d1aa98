"""/budgets and the form by workspace."""

from typing import Any

import pytest

from tests.api.office import Office

MONTH = {"scope": "organization", "interval": "monthly", "limit": 100}


async def test_a_budget_shows_what_it_is_for_where_it_stands_and_when_it_resets(
    office: Office,
) -> None:
    reply = await office.call("billing", "POST", "/budgets", MONTH)
    assert reply.status_code == 201
    record = reply.json()["data"]
    assert record["scope_id"] == office.organization_id
    assert (record["limit"], record["spend"], record["remaining"]) == (100, 0, 100)
    assert (record["kind"], record["percent_used"]) == ("hard", 0)
    assert record["resets_at"].endswith("-01T00:00:00Z")
    assert record["forecast"] == {"projected_spend": 0, "exhausts_at": None}
    assert record["alert_thresholds"] == [50, 80, 90, 100]
    found = await office.ok("member", "GET", f"/budgets/{record['id']}")
    assert {**found["data"], "forecast": None} == {**record, "forecast": None}


async def test_a_budget_of_a_workspace_or_key_may_name_it_by_slug_or_hash(office: Office) -> None:
    key = (await office.ok("owner", "POST", "/keys", {"name": "ci"}))["data"]
    for scope, name, scope_id in (
        ("workspace", "web", office.workspace_id),
        ("key", key["hash"], key["id"]),
    ):
        body = {"scope": scope, "scope_id": name, "interval": "daily", "limit": 3, "kind": "soft"}
        made = await office.ok("admin", "POST", "/budgets", body)
        assert made["data"]["scope_id"] == scope_id


async def test_one_budget_for_each_scope_interval_and_kind(office: Office) -> None:
    await office.ok("owner", "POST", "/budgets", MONTH)
    again = await office.call("owner", "POST", "/budgets", MONTH)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_exists")
    soft = await office.call("owner", "POST", "/budgets", {**MONTH, "kind": "soft"})
    assert soft.status_code == 201


async def test_limits_shrink_as_the_window_narrows(office: Office) -> None:
    """lifetime > monthly > weekly > daily, by POST, PATCH and PUT."""
    made = await office.ok("owner", "POST", "/budgets", MONTH)
    daily = {"scope": "organization", "interval": "daily", "limit": 100}
    reply = await office.call("owner", "POST", "/budgets", daily)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "budget_order_violation")
    assert "monthly" in reply.json()["error"]["message"]
    assert "daily" in reply.json()["error"]["message"]
    await office.ok("owner", "POST", "/budgets", {**daily, "limit": 99})
    path = f"/budgets/{made['data']['id']}"
    lowered = await office.call("owner", "PATCH", path, {"limit": 99})
    assert lowered.json()["error"]["code"] == "budget_order_violation"
    web = "/workspaces/web/budgets"
    await office.ok("owner", "PUT", f"{web}/weekly", {"limit_usd": 10})
    wide = await office.call("owner", "PUT", f"{web}/daily", {"limit_usd": 10})
    assert wide.json()["error"]["code"] == "budget_order_violation"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"scope": "workspace", "interval": "daily", "limit": 1}, "scope_id"),
        ({"scope": "team", "interval": "daily", "limit": 1}, "scope"),
        ({**MONTH, "interval": "yearly"}, "interval"),
        ({**MONTH, "kind": "firm"}, "kind"),
        ({**MONTH, "limit": 0}, "limit"),
        ({**MONTH, "limit": -1}, "limit"),
        ({**MONTH, "scope_id": "org_other"}, "scope_id"),
        ({**MONTH, "alert_thresholds": [0]}, "alert_thresholds"),
        ({**MONTH, "alert_thresholds": ["50"]}, "alert_thresholds[0]"),
        ({"scope": "organization", "interval": "daily"}, "limit"),
    ],
)
async def test_a_budget_that_cannot_be_names_its_field(
    office: Office, body: dict[str, Any], param: str
) -> None:
    reply = await office.call("owner", "POST", "/budgets", body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text
    assert (await office.ok("owner", "GET", "/budgets"))["total_count"] == 0


async def test_what_a_budget_is_for_does_not_change(office: Office) -> None:
    made = await office.ok("owner", "POST", "/budgets", MONTH)
    path = f"/budgets/{made['data']['id']}"
    reply = await office.call("owner", "PATCH", path, {"interval": "daily"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "unknown_parameter")
    changed = await office.ok("owner", "PATCH", path, {"limit": 120.5, "alert_thresholds": [75]})
    assert (changed["data"]["limit"], changed["data"]["alert_thresholds"]) == (120.5, [75])
    assert await office.ok("owner", "DELETE", path) == {"deleted": True, "id": made["data"]["id"]}
    assert (await office.call("owner", "GET", path)).status_code == 404


async def test_budgets_are_filtered(office: Office) -> None:
    await office.ok("owner", "POST", "/budgets", MONTH)
    await office.ok("owner", "POST", "/budgets", {**MONTH, "kind": "soft"})
    await office.ok("owner", "PUT", "/workspaces/web/budgets/daily", {"limit_usd": 4})
    for query, count in (
        ("", 3),
        ("?kind=hard", 2),
        ("?scope=workspace", 1),
        (f"?scope_id={office.workspace_id}", 1),
        ("?interval=monthly&kind=soft", 1),
        ("?scope=key", 0),
    ):
        found = await office.ok("member", "GET", f"/budgets{query}")
        assert (len(found["data"]), found["total_count"]) == (count, count), query
    for name in ("scope", "interval", "kind"):
        reply = await office.call("member", "GET", f"/budgets?{name}=x")
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, name)


async def test_a_workspaces_budget_is_put_read_and_deleted_by_interval(office: Office) -> None:
    path = "/workspaces/web/budgets/monthly"
    assert (await office.call("owner", "GET", path)).status_code == 404
    made = await office.ok("owner", "PUT", path, {"limit_usd": 30})
    record = made["data"]
    assert (record["limit_usd"], record["reset_interval"]) == (30, "monthly")
    assert record["workspace_id"] == office.workspace_id
    changed = await office.ok("owner", "PUT", path, {"limit_usd": 40})
    assert (changed["data"]["id"], changed["data"]["limit_usd"]) == (record["id"], 40)
    lifetime = await office.ok(
        "owner", "PUT", "/workspaces/web/budgets/lifetime", {"limit_usd": 90}
    )
    assert lifetime["data"]["reset_interval"] is None
    listed = await office.ok("member", "GET", "/workspaces/web/budgets")
    assert [one["interval"] for one in listed["data"]] == ["monthly", "lifetime"]
    assert (await office.ok("owner", "DELETE", path))["id"] == record["id"]
    assert await office.ok("owner", "DELETE", path) == {"deleted": True, "id": None}


async def test_an_interval_that_is_none_is_named(office: Office) -> None:
    for method, body in (("GET", None), ("PUT", {"limit_usd": 1}), ("DELETE", None)):
        reply = await office.call("owner", method, "/workspaces/web/budgets/yearly", body)
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "interval")


async def test_a_new_budget_counts_own_provider_keys_as_its_workspace_says(office: Office) -> None:
    await office.ok("owner", "PATCH", "/workspaces/web", {"include_byok_in_budgets": True})
    path = "/workspaces/web/budgets/daily"
    made = await office.ok("owner", "PUT", path, {"limit_usd": 3})
    assert made["data"]["include_byok_in_budgets"] is True
    off = {"limit_usd": 3, "include_byok_in_budgets": False}
    assert (await office.ok("owner", "PUT", path, off))["data"]["include_byok"] is False
    kept = await office.ok("owner", "PUT", path, {"limit_usd": 4})
    assert kept["data"]["include_byok"] is False


async def test_a_lead_writes_budgets_of_its_workspace_and_the_keys_in_it(office: Office) -> None:
    key = (await office.ok("lead", "POST", "/keys", {"name": "team"}))["data"]["id"]
    for body in (
        {"scope": "workspace", "scope_id": "web", "interval": "daily", "limit": 2},
        {"scope": "key", "scope_id": key, "interval": "daily", "limit": 1},
    ):
        assert (await office.call("lead", "POST", "/budgets", body)).status_code == 201
    for body in (
        MONTH,
        {"scope": "workspace", "scope_id": "default", "interval": "daily", "limit": 2},
    ):
        assert (await office.call("lead", "POST", "/budgets", body)).status_code == 403
