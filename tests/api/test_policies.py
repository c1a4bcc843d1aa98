"""The policy of keys and organizations over HTTP: round trips, names that are slips, and who may change it."""

from typing import Any

import pytest

from tests.api.office import Office

POLICY = {
    "allowed_models": ["demo/*", "demo/claude"],
    "allowed_providers": ["OPENAI-chat", "anthropic-messages"],
    "ignored_providers": ["anthropic-messages"],
    "default_provider_sort": "latency",
    "data_policy": "deny",
}
CLEARED: dict[str, Any] = {
    "allowed_models": None,
    "allowed_providers": None,
    "ignored_providers": [],
    "default_provider_sort": None,
    "data_policy": "allow",
}


def shown(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in POLICY}


async def test_a_key_keeps_its_policy_and_hands_it_on(busy_office: Office) -> None:
    made = await busy_office.ok("owner", "POST", "/keys", {"name": "strict", **POLICY})
    assert "notes" not in made
    assert shown(made["data"]) == POLICY
    path = f"/keys/{made['data']['id']}"
    turned = await busy_office.ok("owner", "POST", f"{path}/rotate", {})
    assert shown(turned["data"]) == POLICY
    path = f"/keys/{turned['data']['id']}"
    for name, value in CLEARED.items():
        await busy_office.ok("owner", "PATCH", path, {name: value})
    assert shown((await busy_office.ok("owner", "GET", path))["data"]) == CLEARED
    listed = (await busy_office.ok("owner", "GET", "/keys"))["data"]
    assert shown(next(k for k in listed if k["id"] == turned["data"]["id"])) == CLEARED


async def test_an_organization_keeps_its_policy(busy_office: Office) -> None:
    path = "/organization/settings"
    assert shown((await busy_office.ok("owner", "GET", path))["data"]) == CLEARED
    assert shown((await busy_office.ok("admin", "PATCH", path, POLICY))["data"]) == POLICY
    refused = await busy_office.call("member", "PATCH", path, CLEARED)
    assert refused.status_code == 403
    assert shown((await busy_office.ok("owner", "PATCH", path, CLEARED))["data"]) == CLEARED
    line = (await busy_office.ok("owner", "GET", "/audit"))["data"][0]
    assert (line["action"], line["details"]) == ("settings.patch", CLEARED)


async def test_a_member_changes_the_policy_of_own_keys_only(busy_office: Office) -> None:
    own = (await busy_office.ok("member", "POST", "/keys", {"name": "mine"}))["data"]["id"]
    await busy_office.ok("member", "PATCH", f"/keys/{own}", {"data_policy": "deny"})
    other = (await busy_office.ok("owner", "POST", "/keys", {"name": "theirs"}))["data"]["id"]
    refused = await busy_office.call("member", "PATCH", f"/keys/{other}", {"data_policy": "allow"})
    assert refused.status_code == 404


@pytest.mark.parametrize(
    ("fields", "param", "nearest"),
    [
        ({"allowed_models": ["demo/chat", "demo/claud"]}, "allowed_models[1]", "demo/claude"),
        ({"allowed_models": ["~demo/chat-latest"]}, "allowed_models[0]", "demo/chat"),
        ({"allowed_providers": ["openai-chart"]}, "allowed_providers[0]", "openai-chat"),
        ({"ignored_providers": ["openai-chat", "nope"]}, "ignored_providers[1]", None),
        ({"allowed_models": []}, "allowed_models", None),
        ({"allowed_providers": []}, "allowed_providers", None),
        ({"ignored_providers": None}, "ignored_providers", None),
        ({"data_policy": "maybe"}, "data_policy", None),
        ({"default_provider_sort": "best"}, "default_provider_sort", None),
    ],
)
async def test_a_slip_is_named_and_nothing_is_written(
    busy_office: Office, fields: dict[str, Any], param: str, nearest: str | None
) -> None:
    key = (await busy_office.ok("owner", "POST", "/keys", {"name": "before"}))["data"]["id"]
    keys = (await busy_office.ok("owner", "GET", "/keys"))["total_count"]
    for method, path, extra in (
        ("POST", "/keys", {"name": "x"}),
        ("PATCH", f"/keys/{key}", {"name": "renamed"}),
        ("PATCH", "/organization/settings", {"retention_days": 3}),
    ):
        refused = await busy_office.call("owner", method, path, {**extra, **fields})
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["param"]) == (
            400,
            "invalid_value",
            param,
        ), f"{method} {path}: {refused.text}"
        if nearest is not None:
            assert nearest in error["metadata"]["suggestions"]
    assert (await busy_office.ok("owner", "GET", "/keys"))["total_count"] == keys
    assert (await busy_office.ok("owner", "GET", f"/keys/{key}"))["data"]["name"] == "before"
    settings = (await busy_office.ok("owner", "GET", "/organization/settings"))["data"]
    assert settings["retention_days"] is None


async def test_a_pattern_that_fits_nothing_yet_is_taken_with_a_note(busy_office: Office) -> None:
    early = {"allowed_models": ["demo/*", "later/*"]}
    made = await busy_office.ok("owner", "POST", "/keys", {"name": "x", **early})
    assert made["notes"] == ["allowed_models[1] `later/*` fits no model of the catalog yet"]
    path = f"/keys/{made['data']['id']}"
    again = await busy_office.ok("owner", "PATCH", path, early)
    assert "notes" not in again  # it was there before
    changed = await busy_office.ok("owner", "PATCH", "/organization/settings", early)
    assert changed["notes"] == made["notes"]


async def test_a_name_whose_model_is_gone_may_stay(busy_office: Office) -> None:
    names = ["demo/chat", "demo/claude"]
    key = (await busy_office.ok("owner", "POST", "/keys", {"name": "x", "allowed_models": names}))[
        "data"
    ]["id"]
    for endpoint in (await busy_office.ok("owner", "GET", "/catalog/endpoints"))["data"]:
        if endpoint["model"] == "demo/claude":
            await busy_office.ok("operator", "DELETE", f"/catalog/endpoints/{endpoint['id']}")
    await busy_office.ok("operator", "DELETE", "/catalog/models/demo/claude")
    kept = await busy_office.ok("owner", "PATCH", f"/keys/{key}", {"allowed_models": names[::-1]})
    assert kept["data"]["allowed_models"] == names[::-1]
    refused = await busy_office.call(
        "owner", "POST", "/keys", {"name": "y", "allowed_models": names}
    )
    assert refused.json()["error"]["param"] == "allowed_models[1]"


async def test_a_workspaces_model_must_be_one(busy_office: Office) -> None:
    for method, path, fields in (
        ("POST", "/workspaces", {"name": "Shop"}),
        ("PATCH", f"/workspaces/{busy_office.workspace_id}", {}),
    ):
        body = {**fields, "default_text_model": "demo/chta"}
        refused = await busy_office.call("owner", method, path, body)
        error = refused.json()["error"]
        assert (refused.status_code, error["param"]) == (400, "default_text_model")
        assert "demo/chat" in error["metadata"]["suggestions"]
    kept = {"default_text_model": "demo/chat:nitro"}
    made = await busy_office.ok("owner", "PATCH", f"/workspaces/{busy_office.workspace_id}", kept)
    assert made["data"]["default_text_model"] == "demo/chat:nitro"
