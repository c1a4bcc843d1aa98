"""Invitations that are accepted in a browser, links that sign in once, and the list of browsers."""

import pytest

from gwd.core.clock import US_PER_S
from gwd.management import sessions
from tests.api.office import Office
from tests.page.browser import Browser, check_page

pytestmark = pytest.mark.asyncio(loop_scope="module")

HTML = "text/html,application/xhtml+xml"
ACCEPT = "/app/invitations/accept"


async def test_an_invitation_is_accepted_in_a_browser_and_signs_in(
    browser: Browser, office: Office
):
    invited = {
        "email": "ada@acme.example",
        "role": "billing",
        "workspace_ids": [office.workspace_id],
    }
    sent = await office.ok("owner", "POST", "/organization/invitations", invited)
    path = sent["accept_url"].removeprefix(browser.origin)
    token = path.partition("token=")[2]
    assert path == f"{ACCEPT}?token={token}"
    for _ in range(3):
        page = check_page(await browser.get(path, accept=HTML))
        for word in ("Join Acme", "ada@acme.example", "billing", "Web"):
            assert word in page.words
    reply = await browser.post(ACCEPT, {"token": token, "first_name": "Ada", "last_name": "P"})
    assert reply.status_code == 200
    shown = check_page(reply)
    assert "shown this once" in shown.words
    key = reply.text.split('id="new-key">')[1].split("<")[0]
    assert "set-cookie" in reply.headers
    assert key not in reply.headers["set-cookie"]
    overview = await browser.page("/app/")
    assert "Ada P" in overview.words
    own = await office.client.get("/auth/key", headers={"authorization": f"Bearer {key}"})
    assert own.json()["data"]["role"] == "billing"
    again = await browser.post(ACCEPT, {"token": token})
    assert again.status_code == 404
    assert key not in again.text


async def test_used_revoked_expired_and_invented_invitations_are_one_404(
    browser: Browser, office: Office
):
    used = await office.invite("used@acme.example")
    await office.ok("nobody", "POST", "/invitations/accept", {"token": used})
    expired = await office.invite("late@acme.example")
    await office.gateway.store.write(
        lambda connection: connection.execute(
            "UPDATE invitation SET expires_at = created_at + 1 WHERE email = 'late@acme.example'"
        )
    )
    said = set()
    for token in (used, expired, "x" * 43, ""):
        page = check_page(await browser.get(f"{ACCEPT}?token={token}", accept=HTML))
        said.add(page.words.split("req_")[0])
        assert (await browser.post(ACCEPT, {"token": token})).status_code == 404
    assert len(said) == 1


async def test_the_old_place_of_invitations_leads_browsers_on(browser: Browser, office: Office):
    token = await office.invite("old@acme.example")
    reply = await browser.get(f"/invitations/accept?token={token}", accept=HTML)
    assert reply.status_code == 302
    assert reply.headers["location"] == f"{browser.origin}{ACCEPT}?token={token}"
    plain = await browser.get(f"/invitations/accept?token={token}")
    assert plain.headers["content-type"].startswith("text/plain")
    for place in ("/keys/key_1", "/budgets/bud_1", "/settings/credits", "/models/a/b", "/node"):
        reply = await browser.get(f"{place}?a=b")
        assert reply.status_code == 302
        assert reply.headers["location"] == f"{browser.origin}/app{place}?a=b"


async def test_a_link_signs_in_once(browser: Browser, office: Office):
    made = await office.ok("member", "POST", "/sign-in-links", {"path": "/keys?state=all"})
    path = made["data"]["url"].removeprefix(browser.origin)
    for _ in range(2):
        page = check_page(await browser.get(path))
        assert page.forms[0].action == path
    assert (await browser.get("/app/keys")).status_code == 303
    reply = await browser.post(path, {})
    assert (reply.status_code, reply.headers["location"]) == (303, "/app/keys?state=all")
    assert "member" in (await browser.page("/app/keys")).words
    async with Browser(office.gateway) as other:
        assert (await other.post(path, {})).status_code == 403
        assert (await other.get("/app/keys")).status_code == 303


async def test_a_link_lives_a_minute_and_no_longer_than_its_key(browser: Browser, office: Office):
    made = await office.ok("owner", "POST", "/sign-in-links", {})
    await office.gateway.store.write(
        lambda connection: connection.execute(
            "UPDATE sign_in_link SET expires_at = expires_at - ?", (sessions.LINK_US + US_PER_S,)
        )
    )
    path = made["data"]["url"].removeprefix(browser.origin)
    assert (await browser.post(path, {})).status_code == 403
    key = await office.ok("owner", "POST", "/keys", {"name": "brief", "type": "management"})
    own = {"authorization": f"Bearer {key['key']}"}
    link = (await office.client.post("/sign-in-links", json={}, headers=own)).json()["data"]["url"]
    await office.ok("owner", "PATCH", f"/keys/{key['data']['id']}", {"disabled": True})
    assert (await browser.post(link.removeprefix(browser.origin), {})).status_code == 401
    assert (await browser.get("/app/")).status_code == 303


@pytest.mark.parametrize(
    "path",
    ["keys", "//evil.example", "/a\\b", "/a b", "/ü", "/a\r\nb", "/" + "x" * 501, "https://e"],
)
async def test_a_link_leads_nowhere_else(office: Office, path: str):
    reply = await office.call("owner", "POST", "/sign-in-links", {"path": path})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "path")


async def test_browsers_are_listed_and_signed_out(office: Office):
    async with Browser(office.gateway) as one, Browser(office.gateway) as two:
        await one.sign_in(office["member"].key)
        await two.sign_in(office["admin"].key)
        mine = (await office.ok("member", "GET", "/sessions"))["data"]
        assert {each["user_id"] for each in mine} == {office["member"].user_id}
        assert mine[0]["user_agent"].startswith("python-httpx")
        everybody = (await office.ok("owner", "GET", "/sessions"))["data"]
        theirs = [each for each in everybody if each["user_id"] == office["admin"].user_id]
        assert theirs
        foreign = await office.call("member", "DELETE", f"/sessions/{theirs[0]['id']}")
        assert foreign.status_code == 404
        await office.ok("owner", "DELETE", f"/sessions/{theirs[0]['id']}")
        assert (await two.get("/app/")).status_code == 303
        assert (await one.get("/app/")).status_code == 200
