"""/keys over HTTP: created once, found by id or hash, rotated in one family."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from tests.api.office import Office
from tests.support.node import Gateway

CHAT = {"model": "demo/chat", "messages": [{"role": "user", "content": "hello"}]}


async def test_the_plaintext_is_shown_once_and_never_again(office: Office) -> None:
    made = await office.ok("owner", "POST", "/keys", {"name": "ci", "limit": 50})
    key, record = made["key"], made["data"]
    assert key.startswith("gwi_")
    for path in (f"/keys/{record['id']}", f"/keys/{record['hash']}", "/keys"):
        reply = await office.call("owner", "GET", path)
        assert key not in reply.text
        assert key[8:40] not in reply.text


async def test_a_key_is_addressed_by_id_and_by_hash(office: Office) -> None:
    record = (await office.ok("owner", "POST", "/keys", {"name": "ci"}))["data"]
    by_hash = f"/keys/{record['hash']}"
    assert (await office.ok("owner", "GET", by_hash))["data"]["id"] == record["id"]
    assert (await office.ok("owner", "PATCH", by_hash, {"name": "batch"}))["data"]["name"] == (
        "batch"
    )
    gone = await office.ok("owner", "DELETE", by_hash)
    assert gone == {"deleted": True, "id": record["id"]}
    assert (await office.call("owner", "GET", by_hash)).status_code == 404


async def test_patch_changes_what_is_named_null_clears_and_usage_stays(gateway: Gateway) -> None:
    assert (await gateway.chat()).status_code == 200
    await gateway.at_rest()
    path = f"/keys/{gateway.key_id}"
    before = (await gateway.manage("GET", path))["data"]
    assert Decimal(str(before["usage"])) > 0
    fields = {"limit": 25, "limit_reset": "monthly", "allowed_models": ["demo/*"]}
    changed = (await gateway.manage("PATCH", path, fields))["data"]
    assert {name: changed[name] for name in fields} == fields
    assert changed["usage"] == before["usage"]
    assert changed["limit_resets_at"].endswith("-01T00:00:00Z")
    cleared = (await gateway.manage("PATCH", path, dict.fromkeys(fields)))["data"]
    assert all(cleared[name] is None for name in fields)
    assert cleared["usage"] == before["usage"]


@pytest.mark.parametrize(("overlap", "hours"), [("1h", 1), (None, 24), ("7d", 168)])
async def test_rotation_gives_a_successor_and_the_old_key_an_end(
    office: Office, overlap: str | None, hours: int
) -> None:
    policy = {"name": "ci", "limit": 5, "allowed_models": ["demo/*"], "rate_limit_per_minute": 30}
    old = (await office.ok("owner", "POST", "/keys", policy))["data"]
    body = {} if overlap is None else {"overlap": overlap}
    reply = await office.call("owner", "POST", f"/keys/{old['id']}/rotate", body)
    assert reply.status_code == 201
    rotated = reply.json()
    new, previous = rotated["data"], rotated["previous"]
    assert {name: new[name] for name in policy} == policy
    assert (new["rotated_from"], previous["rotated_to"]) == (old["id"], new["id"])
    assert previous["id"] == old["id"]
    ends = datetime.fromisoformat(previous["expires_at"])
    assert abs(ends - datetime.now(UTC) - timedelta(hours=hours)) < timedelta(minutes=1)
    again = await office.call("owner", "POST", f"/keys/{old['id']}/rotate", {})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_rotated")


async def test_both_keys_of_a_rotation_work_and_share_one_counter(gateway: Gateway) -> None:
    """Rotating never hands the limit out again."""
    rotated = await gateway.manage("POST", f"/keys/{gateway.key_id}/rotate", {"overlap": "1h"})
    new = {"authorization": f"Bearer {rotated['key']}"}
    assert (await gateway.chat()).status_code == 200
    assert (await gateway.chat(headers=new)).status_code == 200
    await gateway.at_rest()
    records = [
        (await gateway.manage("GET", f"/keys/{key}"))["data"]
        for key in (gateway.key_id, rotated["data"]["id"])
    ]
    assert records[0]["usage"] == records[1]["usage"] > 0
    await gateway.manage("PATCH", f"/keys/{rotated['data']['id']}", {"limit": records[0]["usage"]})
    refused = await gateway.chat(headers=new)
    assert refused.json()["error"]["code"] == "key_limit_exceeded"


async def test_a_management_key_is_rotated_too(office: Office) -> None:
    admin = office["admin"]
    assert admin.caller is not None
    rotated = await office.ok("admin", "POST", f"/keys/{admin.caller.key_id}/rotate", {})
    assert rotated["key"].startswith("gwm_")
    assert rotated["data"]["role"] == "admin"


@pytest.mark.parametrize("overlap", ["2h", "", None, 24])
async def test_an_overlap_that_is_not_offered_is_refused(office: Office, overlap: object) -> None:
    key = (await office.ok("owner", "POST", "/keys", {"name": "ci"}))["data"]["id"]
    reply = await office.call("owner", "POST", f"/keys/{key}/rotate", {"overlap": overlap})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "overlap")


async def test_a_leads_keys_live_in_its_workspace_and_nowhere_else(office: Office) -> None:
    made = await office.ok("lead", "POST", "/keys", {"name": "team"})
    assert made["data"]["workspace_id"] == office.workspace_id
    default = (await office.ok("lead", "GET", "/workspaces/default"))["data"]["id"]
    elsewhere = await office.call("lead", "POST", "/keys", {"name": "x", "workspace_id": default})
    assert elsewhere.status_code == 403
    await office.ok("owner", "POST", "/keys", {"name": "of the house"})
    listed = await office.ok("lead", "GET", "/keys")
    assert {record["workspace_id"] for record in listed["data"]} == {office.workspace_id}


@pytest.mark.parametrize(
    ("person", "role"),
    [("member", "admin"), ("admin", "owner"), ("owner", "operator"), ("lead", "owner")],
)
async def test_nobody_makes_a_key_above_their_own_role(
    office: Office, person: str, role: str
) -> None:
    reply = await office.call(
        person, "POST", "/keys", {"name": "up", "type": "management", "role": role}
    )
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "insufficient_role")


async def test_lists_leave_disabled_and_expired_keys_out_unless_asked(office: Office) -> None:
    await office.ok("owner", "POST", "/keys", {"name": "on"})
    off = (await office.ok("owner", "POST", "/keys", {"name": "off"}))["data"]["id"]
    await office.ok("owner", "PATCH", f"/keys/{off}", {"disabled": True})
    assert (await office.ok("owner", "GET", "/keys?name=off"))["total_count"] == 0
    found = await office.ok("owner", "GET", "/keys?name=off&include_disabled=true")
    assert [record["id"] for record in found["data"]] == [off]


async def test_of_jobs_that_ask_at_once_with_if_absent_one_makes_the_key(office: Office) -> None:
    """The others are told of it; what is dead, of another kind or elsewhere does not count."""
    wanted = {"name": "ci", "limit": 5, "if_absent": True}
    replies = await asyncio.gather(
        *(office.call("owner", "POST", "/keys", wanted) for _ in range(8))
    )
    made = [reply.json() for reply in replies if reply.status_code == 201]
    there = [reply.json() for reply in replies if reply.status_code == 200]
    assert (len(made), len(there)) == (1, 7)
    for one in there:
        assert (one["key"], one["existed"]) == (None, True)
        assert one["data"]["id"] == made[0]["data"]["id"]
    elsewhere = {**wanted, "workspace_id": "web"}
    assert (await office.call("owner", "POST", "/keys", elsewhere)).status_code == 201
    console = {"name": "ci", "type": "management", "if_absent": True}
    assert (await office.call("owner", "POST", "/keys", console)).status_code == 201
    assert (await office.call("member", "POST", "/keys", wanted)).status_code == 201
    for end in ({"disabled": True}, None):
        living = (await office.ok("owner", "GET", "/keys?name=ci&workspace_id=default"))["data"]
        for key in living:
            path = f"/keys/{key['id']}"
            await office.ok("owner", "PATCH" if end else "DELETE", path, end)
        named = {**wanted, "workspace_id": "default"}
        assert (await office.call("owner", "POST", "/keys", named)).status_code == 201
        assert (await office.call("owner", "POST", "/keys", named)).status_code == 200


async def test_a_key_whose_successor_was_deleted_counts_as_not_rotated(office: Office) -> None:
    """And in the middle of a row of rotations what follows it follows the one before."""

    async def rotate(key_id: str) -> str:
        made = await office.ok("owner", "POST", f"/keys/{key_id}/rotate", {"overlap": "7d"})
        return str(made["data"]["id"])

    first = (await office.ok("owner", "POST", "/keys", {"name": "ci"}))["data"]["id"]
    second = await rotate(first)
    third = await rotate(second)
    gone = await office.ok("owner", "DELETE", f"/keys/{second}")
    assert {(key["id"], key["is"]) for key in gone["keys_left"]} == {
        (first, "predecessor"),
        (third, "successor"),
    }
    assert (await office.ok("owner", "GET", f"/keys/{first}"))["data"]["rotated_to"] == third
    assert (await office.ok("owner", "GET", f"/keys/{third}"))["data"]["rotated_from"] == first
    assert (await office.call("owner", "POST", f"/keys/{first}/rotate", {})).status_code == 409
    await office.ok("owner", "DELETE", f"/keys/{third}")
    assert (await office.ok("owner", "GET", f"/keys/{first}"))["data"]["rotated_to"] is None
    assert await rotate(first)


async def test_a_key_of_a_deleted_workspace_never_works_again(office: Office) -> None:
    """Not by a later expiry, by enabling, by rotation; whoever deletes the workspace is told of it."""
    made = await office.ok("owner", "POST", "/workspaces", {"name": "Gone"})
    there = {"name": "late", "workspace_id": "gone"}
    keys = [await office.ok("owner", "POST", "/keys", there) for _ in range(2)]
    refused = await office.call("owner", "DELETE", "/workspaces/gone")
    assert refused.status_code == 409
    ids = [key["data"]["id"] for key in keys]
    await office.gateway.store.write(
        lambda connection: connection.execute(
            "UPDATE api_key SET expires_at = created_at + 1 WHERE id IN (?, ?)", tuple(ids)
        )
    )
    gone = await office.ok("owner", "DELETE", f"/workspaces/{made['data']['id']}")
    assert {key["id"] for key in gone["keys_ended"]} == set(ids)
    for method, path, body in (
        ("PATCH", f"/keys/{ids[0]}", {"expires_at": "2999-01-01T00:00:00Z"}),
        ("POST", f"/keys/{ids[0]}/rotate", {}),
    ):
        assert (await office.call("owner", method, path, body)).status_code == 409
    await office.gateway.store.write(
        lambda connection: connection.execute("UPDATE api_key SET expires_at = NULL")
    )
    for key in keys:
        own = {"authorization": f"Bearer {key['key']}"}
        reply = await office.client.get("/auth/key", headers=own)
        assert (reply.status_code, reply.json()["error"]["code"]) == (401, "key_disabled")
