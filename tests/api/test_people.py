"""Members and invitations: who joins, with which rights, and how they leave."""

import asyncio

import pytest

from gwd.api.auth import FAILURES_PER_MINUTE
from tests.api.office import Office

INVITATIONS = "/organization/invitations"


async def test_an_invited_person_joins_with_role_workspace_and_a_key_of_their_own(
    office: Office,
) -> None:
    token = await office.invite(
        "ada@acme.example", role="billing", workspace_ids=[office.workspace_id]
    )
    body = {"token": token, "first_name": "Ada", "last_name": "L."}
    reply = await office.call("nobody", "POST", "/invitations/accept", body)
    assert reply.status_code == 201
    joined = reply.json()
    assert joined["management_key"].startswith("gwm_")
    assert joined["data"]["email"] == "ada@acme.example"
    assert joined["data"]["organization_id"] == office.organization_id
    key = {"authorization": f"Bearer {joined['management_key']}"}
    own = (await office.client.get("/auth/key", headers=key)).json()["data"]
    assert (own["role"], own["user_id"]) == ("billing", joined["data"]["id"])
    there = await office.ok("owner", "GET", f"/workspaces/{office.workspace_id}/members")
    assert joined["data"]["id"] in [member["id"] for member in there["data"]]


async def test_the_link_of_an_invitation_says_what_to_do_and_uses_nothing_up(
    office: Office,
) -> None:
    sent = await office.ok("owner", "POST", INVITATIONS, {"email": "ada@acme.example"})
    page = await office.client.get(sent["accept_url"])
    assert page.status_code == 200
    assert f"{office.gateway.base_url}/invitations/accept" in page.text
    assert page.headers["referrer-policy"] == "no-referrer"
    token = sent["accept_url"].rpartition("token=")[2]
    assert token not in page.text
    await office.ok("nobody", "POST", "/invitations/accept", {"token": token})


async def test_a_token_works_once_and_only_while_it_is_open(office: Office) -> None:
    """Expired, revoked, used and invented tokens are the same 404: nothing tells which."""
    used = await office.invite("one@acme.example")
    await office.ok("nobody", "POST", "/invitations/accept", {"token": used})
    revoked = await office.invite("two@acme.example")
    listed = await office.ok("owner", "GET", INVITATIONS)
    await office.ok("owner", "DELETE", f"{INVITATIONS}/{listed['data'][0]['id']}")
    expired = await office.invite("three@acme.example")
    await office.gateway.store.write(
        lambda connection: connection.execute(
            "UPDATE invitation SET expires_at = created_at + 1 WHERE email = 'three@acme.example'"
        )
    )
    answers = set()
    for token in (used, revoked, expired, "x" * 43, ""):
        reply = await office.call("nobody", "POST", "/invitations/accept", {"token": token})
        answers.add((reply.status_code, reply.text))
    assert len(answers) == 1
    assert answers.pop()[0] == 404
    statuses = {
        one["email"]: one["status"]
        for one in (await office.ok("owner", "GET", INVITATIONS))["data"]
    }
    assert statuses["one@acme.example"] == "accepted"
    assert statuses["two@acme.example"] == "revoked"
    assert statuses["three@acme.example"] == "expired"


async def test_two_who_use_one_token_at_once_are_one_member(office: Office) -> None:
    token = await office.invite("ada@acme.example")
    replies = await asyncio.gather(
        *(office.call("nobody", "POST", "/invitations/accept", {"token": token}) for _ in range(6))
    )
    assert sorted(reply.status_code for reply in replies) == [201, 404, 404, 404, 404, 404]


async def test_wrong_tokens_count_as_failed_attempts_and_a_right_one_still_works(
    office: Office,
) -> None:
    token = await office.invite("ada@acme.example")
    for _ in range(FAILURES_PER_MINUTE):
        reply = await office.call("nobody", "POST", "/invitations/accept", {"token": "wrong"})
        assert reply.status_code == 404
    reply = await office.call("nobody", "POST", "/invitations/accept", {"token": "wrong"})
    assert reply.status_code == 429
    assert 1 <= int(reply.headers["retry-after"]) <= 60
    joined = await office.call("nobody", "POST", "/invitations/accept", {"token": token})
    assert joined.status_code == 201


async def test_the_token_is_shown_once_and_stored_nowhere(office: Office) -> None:
    sent = await office.ok("owner", "POST", INVITATIONS, {"email": "ada@acme.example"})
    token = sent["accept_url"].rpartition("token=")[2]
    assert sent["data"]["status"] == "pending"
    for path in (INVITATIONS, f"{INVITATIONS}/{sent['data']['id']}", "/audit"):
        assert token not in (await office.call("owner", "GET", path)).text
    rows = await office.gateway.store.read(
        lambda connection: connection.rows("SELECT * FROM invitation")
    )
    assert token not in str(rows)


@pytest.mark.parametrize(
    ("person", "body", "status", "param"),
    [
        ("owner", {"email": "not an address"}, 400, "email"),
        ("owner", {"email": "a@acme.example", "role": "king"}, 400, "role"),
        ("owner", {"email": "owner@acme.example"}, 409, "email"),
        ("owner", {"email": "a@acme.example", "workspace_ids": ["nowhere"]}, 404, None),
        ("owner", {"email": "a@acme.example", "is_lead": True}, 400, "is_lead"),
        ("admin", {"email": "a@acme.example", "role": "owner"}, 403, "role"),
        ("lead", {"email": "a@acme.example", "role": "admin"}, 403, "role"),
        ("lead", {"email": "a@acme.example", "workspace_ids": ["default"]}, 403, None),
    ],
)
async def test_an_invitation_that_cannot_be_is_refused(
    office: Office, person: str, body: dict[str, object], status: int, param: str | None
) -> None:
    reply = await office.call(person, "POST", INVITATIONS, body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (status, param), reply.text


async def test_a_second_open_invitation_to_one_address_is_refused(office: Office) -> None:
    await office.invite("ada@acme.example")
    reply = await office.call("owner", "POST", INVITATIONS, {"email": "Ada@Acme.example"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "already_exists")


async def test_the_last_owner_stays_and_stays_owner(office: Office) -> None:
    (owner,) = (
        one
        for one in (await office.ok("owner", "GET", "/organization/members"))["data"]
        if one["role"] == "owner"
    )
    path = f"/organization/members/{owner['id']}"
    for method, body in (("DELETE", None), ("PATCH", {"role": "admin"})):
        assert (await office.call("owner", method, path, body)).status_code == 409
    second = await office.join("second", role="owner")
    assert (await office.call("operator", "DELETE", path)).status_code == 200
    path = f"/organization/members/{second.user_id}"
    assert (await office.call("second", "PATCH", path, {"role": "member"})).status_code == 409


async def test_an_admin_does_not_touch_an_owner(office: Office) -> None:
    second = await office.join("second", role="owner")
    path = f"/organization/members/{second.user_id}"
    for method, body in (("DELETE", None), ("PATCH", {"role": "member"})):
        assert (await office.call("admin", method, path, body)).status_code == 403
    raised = await office.call(
        "admin", "PATCH", f"/organization/members/{office['member'].user_id}", {"role": "owner"}
    )
    assert raised.status_code == 403


async def test_whoever_leaves_takes_their_open_invitations_along(office: Office) -> None:
    sent = await office.ok("admin", "POST", INVITATIONS, {"email": "friend@evil.example"})
    token = sent["accept_url"].rpartition("token=")[2]
    await office.ok("owner", "DELETE", f"/organization/members/{office['admin'].user_id}")
    reply = await office.call("nobody", "POST", "/invitations/accept", {"token": token})
    assert reply.status_code == 404


async def test_the_operator_is_not_ended_by_way_of_his_member(office: Office) -> None:
    """Neither by removing him nor by demoting him first: that would end or change a key above the caller's."""
    operator = office["operator"].user_id
    await office.join("second", role="owner")
    path = f"/organization/members/{operator}"
    for method, body in (("PATCH", {"role": "member"}), ("DELETE", None)):
        reply = await office.call("second", method, path, body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "insufficient_role")
        assert "operator" in reply.json()["error"]["message"]
    assert (await office.ok("operator", "GET", path))["data"]["role"] == "owner"
    assert (await office.call("operator", "GET", "/organizations")).status_code == 200
    # He may do it himself, and so may a demotion of somebody whose keys are the caller's own rank.
    assert (await office.ok("operator", "PATCH", path, {"role": "admin"}))["data"][
        "role"
    ] == "admin"
    assert (await office.call("admin", "DELETE", path)).status_code == 403


async def test_removing_a_member_names_what_ends_and_what_lives_on(office: Office) -> None:
    own = (await office.ok("member", "POST", "/keys", {"name": "laptop"}))["data"]["id"]
    expected = {own, office["inference"].caller.key_id, office["member"].caller.key_id}  # type: ignore[union-attr]
    path = f"/organization/members/{office['member'].user_id}"
    gone = await office.ok("owner", "DELETE", path)
    assert {key["id"] for key in gone["keys_disabled"]} == expected
    assert "keys_kept" not in gone
    reply = await office.call("inference", "GET", "/auth/key")
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "key_disabled")
    keeper = await office.join("keeper")
    made = await office.ok("keeper", "POST", "/keys", {"name": "server"})
    path = f"/organization/members/{keeper.user_id}"
    gone = await office.ok("owner", "DELETE", path, params={"keep_keys": "true"})
    assert [key["name"] for key in gone["keys_kept"]] == ["server"]
    assert [key["id"] for key in gone["keys_disabled"]] == [keeper.caller.key_id]  # type: ignore[union-attr]
    own_key = {"authorization": f"Bearer {made['key']}"}
    assert (await office.client.get("/auth/key", headers=own_key)).status_code == 200
    assert (await office.call("keeper", "GET", "/keys")).status_code == 401


async def test_a_token_of_an_organization_that_was_deleted_is_unknown(office: Office) -> None:
    reply = await office.ok("stranger", "POST", INVITATIONS, {"email": "late@globex.example"})
    token = reply["accept_url"].rpartition("token=")[2]
    await office.ok("operator", "DELETE", f"/organizations/{office.stranger_organization_id}")
    late = await office.call("nobody", "POST", "/invitations/accept", {"token": token})
    assert late.status_code == 404
