"""Settings on the page: people and their roles, provider keys, privacy, the node."""

from typing import Any

import pytest

from gwd.core.clock import US_PER_S
from gwd.management import sessions
from tests.api.office import Office
from tests.page.browser import Browser, check_page

pytestmark = pytest.mark.asyncio(loop_scope="module")

PEOPLE, OWN = "/app/settings/people", "/app/settings/provider-keys"


async def grow_old(office: Office) -> None:
    """Every browser signed in more than 15 minutes ago."""
    await office.gateway.store.write(
        lambda connection: connection.execute(
            "UPDATE browser_session SET proved_at = proved_at - ?", (sessions.PROOF_US + US_PER_S,)
        )
    )


async def settings(office: Office) -> Any:
    return (await office.ok("owner", "GET", "/organization/settings"))["data"]


async def test_somebody_is_invited_and_the_invitation_revoked(owner: Browser, office: Office):
    path = f"{PEOPLE}/invite"
    bad = await owner.press(path, path, email="nobody")
    assert bad.status_code == 400
    reply = await owner.press(path, path, email="guest@acme.example", role="billing")
    shown = check_page(reply)
    assert "shown this once" in shown.words
    assert f"{owner.origin}/app/invitations/accept?token=" in reply.text
    found = (await office.ok("owner", "GET", "/organization/invitations"))["data"]
    [invitation] = [each for each in found if each["email"] == "guest@acme.example"]
    revoked = await owner.press(PEOPLE, f"{PEOPLE}/invitations/{invitation['id']}/revoke")
    assert revoked.headers["location"] == f"{PEOPLE}?did=revoked"
    assert "guest@acme.example" not in (await owner.page(PEOPLE)).words


async def test_a_role_and_a_management_key_want_a_fresh_proof(owner: Browser, office: Office):
    person = await office.join("climbs", role="member")
    one = f"{PEOPLE}/{person.user_id}"
    for action, fields in (
        (f"{one}/role", {"role": "billing"}),
        (f"{one}/key", {"name": "second"}),
    ):
        await grow_old(office)
        reply = await owner.press(one, action, **fields)
        page = check_page(reply)
        assert "once more" in page.words
        form = next(each for each in page.forms if each.action == action)
        assert all(form.values[name] == value for name, value in fields.items())
        reply = await owner.post(action, {**form.values, "again_key": office["owner"].key})
        assert reply.status_code in (200, 303)
    member = (await office.ok("owner", "GET", f"/organization/members/{person.user_id}"))["data"]
    assert member["role"] == "billing"
    assert "only time it is shown" in check_page(reply).words
    again = await owner.post(action, form.values)
    assert "already shown" in check_page(again).words


async def test_a_member_is_signed_out_everywhere(owner: Browser, office: Office):
    person = await office.join("roams", role="member")
    one = f"{PEOPLE}/{person.user_id}"
    async with Browser(office.gateway) as first, Browser(office.gateway) as second:
        for each in (first, second):
            await each.sign_in(person.key)
        reply = await owner.press(one, f"{one}/sign-out")
        assert reply.headers["location"] == f"{PEOPLE}?did=ended_sessions"
        for each in (first, second):
            assert (await each.get("/app/")).status_code == 303
        await first.sign_in(person.key)
        await owner.press(one, f"{one}/remove")
        assert (await first.get("/app/")).status_code == 303


async def test_a_provider_key_is_added_replaced_and_disabled(owner: Browser, office: Office):
    path = f"{OWN}/new"
    for key in ("", "two words", "x" * 4_001):
        assert (await owner.press(path, path, key=key)).status_code == 400
    reply = await owner.press(
        path, path, key="sk-mine-1234567", name="mine", provider="openai-chat"
    )
    assert reply.status_code == 303
    one = reply.headers["location"].partition("?")[0]
    for action, fields in (
        ("replace", {"key": "sk-next-7654321"}),
        ("disable", {}),
        ("enable", {}),
    ):
        assert (await owner.press(one, f"{one}/{action}", **fields)).status_code == 303
    text = (await owner.get(one)).text
    assert "sk-next-7654321" not in text
    assert "4321" in text
    await owner.press(one, f"{one}/delete")
    await owner.page(one, 404)


async def test_privacy_is_saved_and_the_fee_is_the_operators(owner: Browser, office: Office):
    path = "/app/settings/privacy"
    await owner.press(
        path, path, retention_days="30", allowed_models="demo/*, openai/*", data_policy="deny"
    )
    held = await settings(office)
    assert (held["retention_days"], held["allowed_models"]) == (30, ["demo/*", "openai/*"])
    assert (held["data_policy"], held["forward_retired_models"]) == ("deny", True)
    for fields in (
        {"retention_days": "soon"},
        {"low_balance_threshold": "-1"},
        {"data_policy": "maybe"},
    ):
        reply = await owner.press(path, path, **fields)
        assert reply.status_code == 400
        check_page(reply)
    token = await owner.token()
    reply = await owner.post(path, {"csrf": token, "data_policy": "deny", "byok_fee_percent": "0"})
    assert reply.status_code == 403
    async with Browser(office.gateway) as operator:
        await operator.sign_in(office["operator"].key)
        await operator.press(
            path, path, byok_fee_percent="7.25", allowed_models="", retention_days=""
        )
    held = await settings(office)
    assert (held["byok_fee_percent"], held["allowed_models"]) == (7.25, None)
    async with Browser(office.gateway) as member:
        await member.sign_in(office["member"].key)
        page = await member.page(path)
        assert "7.25 %" in page.words
        assert not [each for each in page.forms if each.action == path]


async def test_the_operator_reloads_drains_and_deprecates(office: Office):
    async with Browser(office.gateway) as operator:
        await operator.sign_in(office["operator"].key)
        assert (await operator.press("/app/node", "/app/node/reload")).status_code == 303
        reply = await operator.press("/app/node", "/app/node/providers/openai-chat/test")
        assert reply.headers["location"] == "/app/node?did=provider_answered"
        one = "/app/models/demo/chat-b"
        reply = await operator.press(one, f"{one}/deprecate", retired_at="soon")
        assert reply.status_code == 400
        await operator.press(
            one, f"{one}/deprecate", retired_at="2099-01-01", successor="demo/chat"
        )
        page = await operator.page("/app/models")
        assert "deprecated" in page.words
        assert "Its successor is demo/chat" in (await operator.page(one)).words
        await operator.press(one, f"{one}/undo")
        record = (await office.ok("operator", "GET", "/catalog/models/demo/chat-b"))["data"]
        assert (record["deprecated_at"], record["successor"]) == (None, None)
        endpoint = record["endpoints"][0]["id"]
        await operator.press("/app/node", f"/app/node/endpoints/{endpoint}/drain")
        endpoints = (await office.ok("operator", "GET", "/catalog/endpoints?model=demo/chat-b"))[
            "data"
        ]
        assert endpoints[0]["status"] == "draining"
