"""GET /audit: each change leaves one line, named by its route; reads leave none."""

from typing import Any

import pytest

from gwd.api.route import LiveRoute, OpenRoute, Route
from gwd.api.routes import LIVE_ROUTES, OPEN_ROUTES, ROUTES
from tests.api.cases import CASES
from tests.api.office import Office
from tests.api.test_rights import name_of, path_of

AnyRoute = Route | LiveRoute | OpenRoute
TABLE: tuple[AnyRoute, ...] = (*ROUTES, *LIVE_ROUTES, *OPEN_ROUTES)


async def lines(office: Office, person: str = "operator", **query: Any) -> list[Any]:
    found = await office.ok(person, "GET", "/audit", params={"limit": 100, **query})
    data: list[Any] = found["data"]
    return data


async def test_each_write_leaves_one_line_with_its_routes_action(office: Office) -> None:
    operator = office["operator"]
    for route in TABLE:
        sent = await CASES[name_of(route)].build(office, operator)
        before = await lines(office)
        reply = await office.call(
            operator, route.method, path_of(route, sent), sent.body, params=sent.query
        )
        assert reply.is_success, reply.text
        known = {line["id"] for line in before}
        new = [line for line in await lines(office) if line["id"] not in known]
        if route.action is None:
            assert new == [], name_of(route)
            continue
        if route.path.startswith("/organizations"):
            continue  # the line is the changed organization's, see below
        assert [line["action"] for line in new] == [route.action], name_of(route)
        assert new[0]["request_id"] == reply.headers["x-request-id"]
        assert new[0]["address"] == "127.0.0.1"
        if not isinstance(route, OpenRoute):
            assert operator.caller is not None
            assert new[0]["actor_key_id"] == operator.caller.key_id
            assert new[0]["actor_role"] == "operator"


async def test_what_the_operator_does_to_an_organization_is_in_its_own_trail(
    office: Office,
) -> None:
    there = office.stranger_organization_id
    await office.ok("operator", "PATCH", f"/organizations/{there}", {"name": "Globex Ltd"})
    await office.ok(
        "operator",
        "POST",
        "/credits/grants",
        {"kind": "granted", "amount": 3, "organization_id": there},
    )
    reported = [line["action"] for line in await lines(office, "stranger")]
    assert reported == ["credit.grant", "organization.patch", "organization.create"]
    mine = {line["subject_id"] for line in await lines(office)}
    assert there not in mine


async def test_lines_hold_no_secret(office: Office) -> None:
    key = await office.ok("owner", "POST", "/keys", {"name": "ci"})
    rotated = await office.ok("owner", "POST", f"/keys/{key['data']['id']}/rotate", {})
    invitation = await office.ok(
        "owner", "POST", "/organization/invitations", {"email": "guest@acme.example"}
    )
    hook = await office.ok(
        "owner", "PATCH", "/credits/auto-topup", {"hook_url": "https://pay.example/hook"}
    )
    text = (await office.call("owner", "GET", "/audit?limit=100")).text
    token = invitation["accept_url"].rpartition("token=")[2]
    for secret in (key["key"], rotated["key"], token, hook["signing_secret"]):
        assert secret
        assert secret not in text


@pytest.mark.parametrize(
    ("query", "actions"),
    [
        ({"action": "workspace.*"}, ["workspace.patch", "workspace.create", "workspace.create"]),
        ({"action": "workspace.patch"}, ["workspace.patch"]),
        ({"subject_type": "workspace", "action": "workspace.patch"}, ["workspace.patch"]),
        ({"action": "nothing"}, []),
        ({"to": "2020-01-01T00:00:00Z"}, []),
    ],
)
async def test_lines_are_filtered_newest_first(
    office: Office, query: dict[str, str], actions: list[str]
) -> None:
    made = await office.ok("admin", "POST", "/workspaces", {"name": "Shop"})
    await office.ok("admin", "PATCH", f"/workspaces/{made['data']['id']}", {"name": "Store"})
    assert [line["action"] for line in await lines(office, "owner", **query)] == actions


async def test_an_actor_is_a_key_or_a_person(office: Office) -> None:
    admin = office["admin"]
    assert admin.caller is not None
    await office.ok("admin", "POST", "/workspaces", {"name": "Shop"})
    for actor in (admin.caller.key_id, admin.user_id):
        found = await lines(office, "owner", actor=actor)
        assert [line["action"] for line in found] == ["workspace.create", "invitation.accept"]
    assert await lines(office, "owner", actor="mk_nobody") == []


async def test_a_line_says_what_was_changed(office: Office) -> None:
    """Fields as they were sent, and what hung on it; a request that changed nothing leaves no line."""
    key = (await office.ok("owner", "POST", "/keys", {"name": "ci", "limit": 5}))["data"]
    await office.ok("owner", "POST", "/keys", {"name": "ci", "if_absent": True})
    changes = {"limit": 7.5, "expires_at": None, "disabled": False}
    await office.ok("owner", "PATCH", f"/keys/{key['hash']}", changes)
    rotated = await office.ok("owner", "POST", f"/keys/{key['id']}/rotate", {})
    await office.ok("owner", "DELETE", f"/keys/{rotated['data']['id']}")
    ada = await office.join("ada", role="admin")
    app = await office.ok(ada, "POST", "/keys", {"name": "app"})
    await office.ok("owner", "PATCH", f"/organization/members/{ada.user_id}", {"role": "member"})
    await office.ok("owner", "DELETE", f"/organization/members/{ada.user_id}?keep_keys=true")
    await office.ok("owner", "PATCH", "/organization", {"name": "Acme 2"})
    await office.ok("owner", "PATCH", "/organization/settings", {"low_balance_threshold": 3})
    sent = await office.ok(
        "owner", "POST", "/organization/invitations", {"email": "guest@acme.example"}
    )
    for _ in range(2):
        await office.ok("owner", "DELETE", f"/organization/invitations/{sent['data']['id']}")
    budget = {"scope": "organization", "interval": "daily", "limit": 5}
    made = await office.ok("owner", "POST", "/budgets", budget)
    path = f"/workspaces/{office.workspace_id}/budgets/weekly"
    await office.ok("owner", "DELETE", path)
    owner = office["owner"]
    assert owner.caller is not None
    said = [
        (line["action"], line["subject_id"], line["details"])
        for line in await lines(office, actor=owner.caller.key_id)
    ]
    organization_id, invitation_id = office.organization_id, sent["data"]["id"]
    assert said[:10] == [
        (
            "budget.create",
            made["data"]["id"],
            {
                "scope": "organization",
                "scope_id": organization_id,
                "interval": "daily",
                "kind": "hard",
                "limit_nano": 5_000_000_000,
                "shadow": False,
            },
        ),
        ("invitation.revoke", invitation_id, {}),
        (
            "invitation.create",
            invitation_id,
            {"email": "guest@acme.example", "role": "member", "workspace_ids": []},
        ),
        ("settings.patch", organization_id, {"low_balance_threshold": "3"}),
        ("organization.patch", organization_id, {"name": "Acme 2"}),
        (
            "member.remove",
            ada.user_id,
            {
                "email": "ada@acme.example",
                "role": "member",
                "keys_disabled": 1,
                "keys_kept": [app["data"]["id"]],
                "invitations_revoked": 0,
            },
        ),
        ("member.patch", ada.user_id, {"role": "member", "was": "admin"}),
        (
            "invitation.create",
            said[7][1],
            {"email": "ada@acme.example", "role": "admin", "workspace_ids": []},
        ),
        (
            "key.delete",
            rotated["data"]["id"],
            {"name": "ci", "type": "inference", "label": rotated["data"]["label"]},
        ),
        (
            "key.rotate",
            key["id"],
            {"overlap": "24h", "rotated_to": rotated["data"]["id"]},
        ),
    ]
    assert said[10] == (
        "key.patch",
        key["id"],
        {"limit": "7.5", "expires_at": None, "disabled": False},
    )
    assert said[11] == (
        "key.create",
        key["id"],
        {
            "name": "ci",
            "type": "inference",
            "role": None,
            "user_id": owner.user_id,
            "workspace_id": key["workspace_id"],
            "label": key["label"],
        },
    )
