"""/organization, /organizations and settings."""

from typing import Any

import pytest

from tests.api.office import Office


async def test_a_new_organization_has_an_account_a_workspace_and_its_owners_key(
    office: Office,
) -> None:
    made = await office.ok(
        "operator",
        "POST",
        "/organizations",
        {"name": "Initech", "owner_email": "bill@initech.example"},
    )
    assert made["data"]["slug"] == "initech"
    key = {"authorization": f"Bearer {made['management_key']}"}
    members = (await office.client.get("/organization/members", headers=key)).json()
    assert [(one["email"], one["role"]) for one in members["data"]] == [
        ("bill@initech.example", "owner")
    ]
    assert made["data"]["owner_user_id"] == members["data"][0]["id"]
    spaces = (await office.client.get("/workspaces", headers=key)).json()
    assert [space["slug"] for space in spaces["data"]] == ["default"]
    credit = (await office.client.get("/credits", headers=key)).json()
    assert credit["data"]["balance"] == 0


async def test_the_owners_key_is_shown_once(office: Office) -> None:
    made = await office.ok("operator", "POST", "/organizations", {"name": "Initech"})
    for path in (f"/organizations/{made['data']['id']}", "/organizations", "/audit"):
        assert made["management_key"] not in (await office.call("operator", "GET", path)).text


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"name": "Acme"}, 409, "slug"),
        ({"name": "X", "slug": "Not A Slug"}, 400, "slug"),
        ({"name": "X", "slug": "a--b"}, 400, "slug"),
        ({"name": ""}, 400, "name"),
        ({"name": "X", "owner_email": "nobody"}, 400, "owner_email"),
        ({}, 400, "name"),
    ],
)
async def test_a_wrong_organization_names_its_field_and_makes_nothing(
    office: Office, body: dict[str, Any], status: int, param: str
) -> None:
    before = await office.ok("operator", "GET", "/organizations")
    reply = await office.call("operator", "POST", "/organizations", body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (status, param)
    assert await office.ok("operator", "GET", "/organizations") == before


async def test_the_operators_own_organization_cannot_be_deleted(office: Office) -> None:
    reply = await office.call("operator", "DELETE", f"/organizations/{office.organization_id}")
    assert reply.status_code == 409


async def test_an_owner_renames_the_organization_but_cannot_suspend_it(office: Office) -> None:
    renamed = await office.ok(
        "owner", "PATCH", "/organization", {"name": "Acme Ltd", "slug": "ltd"}
    )
    assert (renamed["data"]["name"], renamed["data"]["slug"]) == ("Acme Ltd", "ltd")
    assert (await office.ok("member", "GET", "/organization"))["data"] == renamed["data"]
    reply = await office.call("owner", "PATCH", "/organization", {"suspended": True})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "unknown_parameter")


async def test_settings_have_their_defaults_and_are_changed_one_by_one(office: Office) -> None:
    before = (await office.ok("member", "GET", "/organization/settings"))["data"]
    assert before["forward_retired_models"] is True
    assert before["allowed_models"] is None
    assert before["routing_strategy"] == "expiry_first"
    assert before["default_rate_limit_per_minute"] == 600
    assert before["low_balance_threshold"] == 10
    assert before["byok_fee_percent"] == 5
    changed = await office.ok(
        "admin", "PATCH", "/organization/settings", {"low_balance_threshold": 2.5}
    )
    assert changed["data"] == {**before, "low_balance_threshold": 2.5}
    cleared = await office.ok(
        "admin", "PATCH", "/organization/settings", {"low_balance_threshold": None}
    )
    assert cleared["data"]["low_balance_threshold"] is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allowed_models", []),
        ("allowed_models", "demo/chat"),
        ("allowed_providers", []),
        ("ignored_providers", None),
        ("default_provider_sort", "fastest"),
        ("routing_strategy", "random"),
        ("default_rate_limit_per_minute", 0),
        ("default_rate_limit_per_minute", 601),
        ("default_rate_limit_per_minute", 1.5),
        ("retention_days", 0),
        ("retention_days", 3_651),
        ("low_balance_threshold", -1),
        ("low_balance_threshold", 10**12),
        ("alert_email_min_percent", 101),
        ("store_prompts", "yes"),
        ("store_prompts", True),
        ("forward_retired_models", None),
        ("deprecation_alerts", "some"),
    ],
)
async def test_a_wrong_setting_is_named_and_nothing_is_changed(
    office: Office, name: str, value: Any
) -> None:
    before = await office.ok("admin", "GET", "/organization/settings")
    reply = await office.call(
        "admin", "PATCH", "/organization/settings", {"forward_retired_models": False, name: value}
    )
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == name
    assert await office.ok("admin", "GET", "/organization/settings") == before


async def test_the_byok_fee_is_the_operators_to_set(office: Office) -> None:
    fee = {"byok_fee_percent": 3.25}
    refused = await office.call("owner", "PATCH", "/organization/settings", fee)
    assert (refused.status_code, refused.json()["error"]["param"]) == (403, "byok_fee_percent")
    changed = await office.ok("operator", "PATCH", "/organization/settings", fee)
    assert changed["data"]["byok_fee_percent"] == 3.25


async def test_the_rate_limit_of_an_organization_binds_its_keys(office: Office) -> None:
    limit = {"default_rate_limit_per_minute": 30}
    await office.ok("owner", "PATCH", "/organization/settings", limit)
    made = await office.ok("owner", "POST", "/keys", {"name": "ci", "rate_limit_per_minute": 90})
    assert made["data"]["rate_limit_per_minute"] == 30


async def test_the_operator_sets_what_is_his_to_set_in_every_organization(office: Office) -> None:
    path = f"/organizations/{office.stranger_organization_id}/settings"
    changed = await office.ok("operator", "PATCH", path, {"byok_fee_percent": 2.5})
    assert changed["data"]["byok_fee_percent"] == 2.5
    assert (await office.ok("operator", "GET", path))["data"] == changed["data"]
    there = (await office.ok("stranger", "GET", "/organization/settings"))["data"]
    assert there["byok_fee_percent"] == 2.5
    assert (await office.ok("owner", "GET", "/organization/settings"))["data"][
        "byok_fee_percent"
    ] == 5
    (line,) = (await office.ok("stranger", "GET", "/audit?action=settings.patch"))["data"]
    assert line["details"] == {"byok_fee_percent": "2.5"}
    for person in ("owner", "admin", "stranger"):
        for method, body in (("GET", None), ("PATCH", {"retention_days": 3})):
            assert (await office.call(person, method, path, body)).status_code == 403
    absent = await office.call("operator", "PATCH", "/organizations/org_x/settings", {})
    assert absent.status_code == 404
