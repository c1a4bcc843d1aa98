"""Signing in and out, sessions that end with their key, and forms that come from elsewhere."""

import pytest

from gwd.api import auth
from gwd.core.clock import US_PER_S
from gwd.keys.rate_limit import RateLimiter
from gwd.management import sessions
from tests.api.office import Office
from tests.page.browser import Browser, check_page

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def is_signed_in(browser: Browser) -> bool:
    return (await browser.get("/app/keys")).status_code == 200


async def test_whoever_is_not_signed_in_is_led_to_the_door_and_back(
    browser: Browser, office: Office
):
    reply = await browser.get("/app/keys?state=all")
    assert (reply.status_code, reply.headers["location"]) == (
        303,
        "/app/sign-in?next=/app/keys%3Fstate%3Dall",
    )
    page = check_page(await browser.get(reply.headers["location"]))
    assert page.forms[0].values["next"] == "/app/keys?state=all"
    reply = await browser.sign_in(office["owner"].key, next="/app/keys?state=all")
    assert (reply.status_code, reply.headers["location"]) == (303, "/app/keys?state=all")
    assert await is_signed_in(browser)


async def test_the_key_is_in_no_cookie_and_the_cookie_no_script_can_read(
    browser: Browser, office: Office
):
    key = office["owner"].key
    assert key is not None
    reply = await browser.sign_in(key)
    cookie = reply.headers["set-cookie"]
    assert key not in cookie
    assert cookie.startswith(f"gwd_{office.gateway.running.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Max-Age" not in cookie
    own = await browser.sign_in(key, own="1")
    assert "Max-Age=604800" in own.headers["set-cookie"]


@pytest.mark.parametrize("wanted", [
    "https://evil.example/app/", "//evil.example/app/", "/app//evil.example", "/app/\\evil.example", "/app/%5cevil",
    "/app/%2f%2fevil.example", "/app/a\r\nset-cookie: a=b", "/app/\u202eevil", "/app/%E2%80%AEevil", "/appevil", "/",
    "/app/../../etc", "/app/%00", "javascript:alert(1)", "/app/\x00", "",
])  # fmt: skip
async def test_after_signing_in_nobody_is_led_away(browser: Browser, office: Office, wanted: str):
    reply = await browser.sign_in(office["owner"].key, next=wanted)
    assert (reply.status_code, reply.headers["location"]) == (303, "/app/")


async def test_keys_that_may_not_act_do_not_sign_in(browser: Browser, office: Office):
    for key in ("", "gwm_nonsense", "gwm_" + "a" * 49, "'; --", "x" * 150, "gwi_\x00"):
        reply = await browser.sign_in(key)
        assert reply.status_code == 401
        page = check_page(reply)
        assert not key or key not in page.words
        assert "set-cookie" not in reply.headers
    made = await office.ok("owner", "POST", "/keys", {"name": "off", "type": "management"})
    await office.ok("owner", "PATCH", f"/keys/{made['data']['id']}", {"disabled": True})
    reply = await browser.sign_in(made["key"])
    assert (reply.status_code, "disabled" in reply.text) == (401, True)
    office.gateway.running.node.authenticator._failures = RateLimiter()


async def test_the_31st_wrong_key_of_a_minute_waits_and_a_good_one_does_not(
    browser: Browser, office: Office
):
    node = office.gateway.running.node
    node.authenticator._failures = RateLimiter()
    for _ in range(auth.FAILURES_PER_MINUTE):
        assert (await browser.sign_in("gwm_wrong")).status_code == 401
    reply = await browser.sign_in("gwm_wrong")
    assert reply.status_code == 429
    assert "wait" in check_page(reply).words
    assert (await browser.sign_in(office["owner"].key)).status_code == 303
    node.authenticator._failures = RateLimiter()


async def test_an_api_key_sees_itself_and_nothing_else(browser: Browser, office: Office):
    reply = await browser.sign_in(office["inference"].key, next="/app/keys")
    assert reply.headers["location"] == "/app/me"
    page = await browser.page("/app/me")
    assert "inference" in page.words
    for path in ("/app/", "/app/keys", "/app/keys/new", f"/app/keys/{office.gateway.key_id}"):
        refused = await browser.page(path, 403)
        assert "API key" in refused.words
    token = await browser.token()
    reply = await browser.post("/app/keys/new", {"csrf": token, "name": "more"})
    assert reply.status_code == 403


async def test_a_session_ends_with_its_key(browser: Browser, office: Office):
    for end in ({"disabled": True}, None):
        made = await office.ok("owner", "POST", "/keys", {"name": "short", "type": "management"})
        await browser.sign_in(made["key"])
        assert await is_signed_in(browser)
        if end is None:
            await office.ok("owner", "DELETE", f"/keys/{made['data']['id']}")
        else:
            await office.ok("owner", "PATCH", f"/keys/{made['data']['id']}", end)
        reply = await browser.get("/app/keys")
        assert (reply.status_code, reply.headers["location"][:13]) == (303, "/app/sign-in?")
        reply = await browser.post("/app/keys/new", {"name": "late"})
        assert (reply.status_code, reply.headers["location"]) == (
            303,
            "/app/sign-in?did=session_over",
        )


async def test_the_next_click_knows_of_another_role_and_of_a_member_who_left(
    browser: Browser, office: Office
):
    person = await office.join("climber", role="admin")
    await browser.sign_in(person.key)
    token = await browser.token()
    assert (await browser.get("/app/keys/new")).status_code == 200
    await office.ok(
        "owner", "PATCH", f"/organization/members/{person.user_id}", {"role": "billing"}
    )
    assert (await browser.get("/app/keys/new")).status_code == 403
    reply = await browser.post("/app/keys/new", {"csrf": token, "name": "late"})
    assert reply.status_code == 403
    await office.ok("owner", "DELETE", f"/organization/members/{person.user_id}")
    assert not await is_signed_in(browser)


async def test_signing_out_ends_the_session_itself(browser: Browser, office: Office):
    await browser.sign_in(office["owner"].key)
    cookies = dict(browser.client.cookies)
    reply = await browser.press("/app/", "/app/sign-out")
    assert reply.headers["location"] == "/app/sign-in?did=signed_out"
    browser.client.cookies.update(cookies)
    assert not await is_signed_in(browser)


async def test_sessions_end_by_themselves(browser: Browser, office: Office):
    store = office.gateway.store
    await browser.sign_in(office["owner"].key)
    for column, us in (("seen_at", sessions.IDLE_US), ("expires_at", sessions.LIFE_US)):
        await browser.sign_in(office["owner"].key)
        assert await is_signed_in(browser)
        await store.write(
            lambda connection, column=column, us=us: connection.execute(
                f"UPDATE browser_session SET {column} = {column} - ?", (us + US_PER_S,)
            )
        )
        assert not await is_signed_in(browser)


async def test_of_21_sessions_of_a_key_the_oldest_goes(office: Office):
    async with Browser(office.gateway) as first:
        await first.sign_in(office["billing"].key)
        for _ in range(sessions.MOST_OF_KEY - 1):
            async with Browser(office.gateway) as more:
                await more.sign_in(office["billing"].key)
        assert await is_signed_in(first)
        async with Browser(office.gateway) as last:
            await last.sign_in(office["billing"].key)
            assert await is_signed_in(last)
        assert not await is_signed_in(first)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"origin": "HERE", "sec-fetch-site": "cross-site"},
        {"origin": "http://127.0.0.1"},
        {"origin": "HERE.evil.example"},
    ],
)
async def test_forms_from_elsewhere_change_nothing(
    owner: Browser, office: Office, headers: dict[str, str]
):
    made = await office.ok("owner", "POST", "/keys", {"name": "stays"})
    key_id = made["data"]["id"]
    sent = {name: value.replace("HERE", owner.origin) for name, value in headers.items()}
    token = await owner.token()
    reply = await owner.post(f"/app/keys/{key_id}/disable", {"csrf": token}, sent)
    assert reply.status_code == 403
    assert "nothing was changed" in check_page(reply).words
    assert (await office.ok("owner", "GET", f"/keys/{key_id}"))["data"]["disabled"] is False
    reply = await owner.post("/app/sign-in", {"key": office["member"].key}, sent)
    assert reply.status_code == 403


async def test_the_token_of_another_session_is_none(owner: Browser, office: Office):
    made = await office.ok("owner", "POST", "/keys", {"name": "stays too"})
    path = f"/app/keys/{made['data']['id']}/disable"
    async with Browser(office.gateway) as other:
        await other.sign_in(office["owner"].key)
        foreign = await other.token()
    for fields in ({}, {"csrf": ""}, {"csrf": foreign}, {"csrf": "ü"}):
        reply = await owner.post(path, fields)
        assert reply.status_code == 403
    same_site = {"sec-fetch-site": "same-origin"}
    assert (await owner.post(path, {"csrf": await owner.token()}, same_site)).status_code == 303


async def test_looking_changes_nothing(owner: Browser, office: Office):
    made = await office.ok("owner", "POST", "/keys", {"name": "looked at"})
    for deed in ("disable", "rotate", "delete", "end-old"):
        await owner.page(f"/app/keys/{made['data']['id']}/{deed}", 405)
    key = (await office.ok("owner", "GET", f"/keys/{made['data']['id']}"))["data"]
    assert (key["disabled"], key["rotated_to"]) == (False, None)


async def test_what_is_done_on_the_page_stands_in_the_audit_trail_as_such(
    owner: Browser, office: Office
):
    made = await office.ok("owner", "POST", "/keys", {"name": "audited"})
    key_id = made["data"]["id"]
    reply = await owner.press(f"/app/keys/{key_id}", f"/app/keys/{key_id}/disable")
    assert reply.headers["location"] == f"/app/keys/{key_id}?did=disabled"
    [line, made_line] = (await office.ok("owner", "GET", f"/audit?subject_id={key_id}"))["data"]
    assert (line["action"], line["details"]) == (
        "key.patch",
        {"disabled": True, "origin": "page"},
    )
    assert "origin" not in made_line["details"]


async def test_the_colours_are_kept_for_a_year(owner: Browser):
    page = await owner.page("/app/keys")
    [form] = [each for each in page.forms if each.action == "/app/theme"]
    reply = await owner.post("/app/theme", {**form.values, "theme": "dark"})
    assert reply.headers["location"] == "/app/keys"
    assert 'data-theme="dark"' in (await owner.get("/app/keys")).text
    await owner.post("/app/theme", {**form.values, "theme": '"><script>'})
    assert 'data-theme="dark"' in (await owner.get("/app/keys")).text


async def test_static_files_are_named_by_their_content_and_kept(browser: Browser):
    text = (await browser.get("/app/sign-in")).text
    for name in ("app.", "icon."):
        path = text[text.index(f"/app/static/{name}") :].split('"')[0]
        reply = await browser.get(path)
        assert reply.status_code == 200
        assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (await browser.get("/app/static/app.css")).status_code == 404
    assert (await browser.get("/app/static/../site.py")).status_code in (303, 404)
