"""/workspaces: by id or slug, teams in one call, and what a lead may."""

from typing import Any

import pytest

from tests.api.office import Office


async def test_a_workspace_is_found_by_id_and_by_slug(office: Office) -> None:
    for ref in (office.workspace_id, "web"):
        found = await office.ok("member", "GET", f"/workspaces/{ref}")
        assert found["data"]["name"] == "Web"
    changed = await office.ok("owner", "PATCH", "/workspaces/web", {"slug": "shop"})
    assert changed["data"]["id"] == office.workspace_id
    assert (await office.call("owner", "GET", "/workspaces/web")).status_code == 404


async def test_a_team_is_made_in_one_call_with_its_leads_key(office: Office) -> None:
    body = {"name": "Data", "lead_user_id": office["member"].user_id}
    made = await office.ok("admin", "POST", "/workspaces", body)
    key = {"authorization": f"Bearer {made['management_key']}"}
    own = (await office.client.get("/auth/key", headers=key)).json()["data"]
    assert (own["role"], own["workspace_id"]) == ("admin", made["data"]["id"])
    renamed = await office.client.patch("/workspaces/data", json={"name": "Data 2"}, headers=key)
    assert renamed.status_code == 200
    elsewhere = await office.client.patch("/workspaces/web", json={"name": "X"}, headers=key)
    assert elsewhere.status_code == 403


async def test_a_workspace_without_a_lead_brings_no_key(office: Office) -> None:
    made = await office.ok("admin", "POST", "/workspaces", {"name": "Data"})
    assert set(made) == {"data"}


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"name": "Web"}, 409, "slug"),
        ({"name": "…"}, 400, "slug"),
        ({"name": "X", "slug": "-x"}, 400, "slug"),
        ({"name": "X", "lead_user_id": "usr_nobody"}, 404, "lead_user_id"),
        ({"name": "X", "default_provider_sort": "best"}, 400, "default_provider_sort"),
        ({"name": "x" * 101}, 400, "name"),
    ],
)
async def test_a_workspace_that_cannot_be_is_refused_whole(
    office: Office, body: dict[str, Any], status: int, param: str
) -> None:
    before = await office.ok("admin", "GET", "/workspaces")
    reply = await office.call("admin", "POST", "/workspaces", body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (status, param), reply.text
    assert await office.ok("admin", "GET", "/workspaces") == before


async def test_the_default_workspace_stays(office: Office) -> None:
    assert (await office.call("owner", "DELETE", "/workspaces/default")).status_code == 409
    reply = await office.call("owner", "PATCH", "/workspaces/default", {"slug": "other"})
    assert (reply.status_code, reply.json()["error"]["param"]) == (409, "slug")


async def test_a_workspace_with_live_keys_is_not_deleted(office: Office) -> None:
    made = await office.ok("admin", "POST", "/workspaces", {"name": "Data"})
    key = await office.ok("admin", "POST", "/keys", {"name": "k", "workspace_id": "data"})
    assert key["data"]["workspace_id"] == made["data"]["id"]
    assert (await office.call("admin", "DELETE", "/workspaces/data")).status_code == 409
    await office.ok("admin", "DELETE", f"/keys/{key['data']['id']}")
    gone = await office.ok("admin", "DELETE", "/workspaces/data")
    assert gone == {"deleted": True, "id": made["data"]["id"]}
    assert (await office.call("admin", "GET", "/workspaces/data")).status_code == 404


async def test_members_come_and_go_and_only_changes_are_counted(office: Office) -> None:
    people = [office["member"].user_id, office["billing"].user_id]
    path = "/workspaces/web/members"
    added = await office.ok("owner", "POST", f"{path}/add", {"user_ids": people})
    assert added["added_count"] == 2
    assert {member["id"] for member in added["data"]} == set(people)
    again = await office.ok("owner", "POST", f"{path}/add", {"user_ids": people})
    assert again == {"data": [], "added_count": 0}
    listed = await office.ok("member", "GET", path)
    assert listed["total_count"] == 3  # the lead was there before
    removed = await office.ok("owner", "POST", f"{path}/remove", {"user_ids": people})
    assert removed == {"removed_count": 2}
    assert (await office.ok("member", "GET", path))["total_count"] == 1


async def test_one_unknown_person_adds_nobody(office: Office) -> None:
    body = {"user_ids": [office["member"].user_id, "usr_nobody"]}
    reply = await office.call("owner", "POST", "/workspaces/web/members/add", body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (404, "user_ids[1]")
    assert (await office.ok("owner", "GET", "/workspaces/web/members"))["total_count"] == 1


async def test_a_member_becomes_lead_and_then_gets_a_key_for_the_workspace(
    office: Office,
) -> None:
    wanted = {
        "name": "lead",
        "type": "management",
        "role": "admin",
        "workspace_id": office.workspace_id,
        "user_id": office["member"].user_id,
    }
    assert (await office.call("owner", "POST", "/keys", wanted)).status_code == 400
    lead = {"user_ids": [office["member"].user_id], "is_lead": True}
    added = await office.ok("owner", "POST", "/workspaces/web/members/add", lead)
    assert added["data"][0]["is_lead"] is True
    made = await office.ok("owner", "POST", "/keys", wanted)
    assert made["data"]["role"] == "admin"


async def test_a_lead_who_is_taken_out_leads_no_more(office: Office) -> None:
    assert (await office.call("lead", "PATCH", "/workspaces/web", {"name": "W"})).status_code == 200
    body = {"user_ids": [office["lead"].user_id]}
    await office.ok("owner", "POST", "/workspaces/web/members/remove", body)
    assert (await office.call("lead", "PATCH", "/workspaces/web", {"name": "V"})).status_code == 403
