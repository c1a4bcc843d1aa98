"""At three in the morning: a destination is enabled again and a delivery sent once more; secrets are shown once."""

from typing import Any

import pytest

from tests.api.office import Office
from tests.page.browser import Browser, check_page

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/app/settings/notifications"
HOOK = "http://127.0.0.1:9/hook"  # nobody listens there


async def record(office: Office, destination: str) -> Any:
    return (await office.ok("owner", "GET", f"/notifications/destinations/{destination}"))["data"]


async def test_a_webhook_is_made_and_its_secret_shown_once(owner: Browser, office: Office):
    page = await owner.page(f"{PATH}/new")
    form = next(each for each in page.forms if each.action == f"{PATH}/new")
    wrong = await owner.post(form.action, {**form.values, "name": "pager", "url": "ftp://x"})
    assert wrong.status_code == 400
    assert 'id="e-url"' in wrong.text
    check_page(wrong)
    fields = {
        **form.values,
        "name": "pager <i>",
        "url": HOOK,
        "events": ["key_limit", "low_balance"],
    }
    made = await owner.post(form.action, fields)
    assert "only time it is shown" in check_page(made).words
    secret = made.text.split('id="secret">')[1].split("<")[0]
    again = await owner.post(form.action, fields)
    assert "already shown" in check_page(again).words
    assert secret not in again.text
    [kept] = [
        each
        for each in (await office.ok("owner", "GET", "/notifications/destinations"))["data"]
        if each["name"] == "pager <i>"
    ]
    assert kept["events"] == ["key_limit", "low_balance"]
    one = f"{PATH}/{kept['id']}"
    rotated = await owner.press(one, f"{one}/rotate-secret")
    assert "only time it is shown" in check_page(rotated).words
    assert secret not in rotated.text


async def test_a_disabled_destination_is_enabled_and_a_delivery_sent_again(
    owner: Browser, office: Office
):
    body = {"type": "webhook", "name": "ops", "url": HOOK}
    made = (await office.ok("owner", "POST", "/notifications/destinations", body))["data"]
    one = f"{PATH}/{made['id']}"
    reply = await owner.press(one, f"{one}/test")
    assert reply.headers["location"] == f"{one}?did=tested"
    [tested] = (
        await office.ok("owner", "GET", f"/notifications/destinations/{made['id']}/deliveries")
    )["data"]
    await office.gateway.store.write(
        lambda connection: connection.execute(
            "UPDATE delivery SET status = 'failed', next_attempt_at = NULL, finished_at = created_at WHERE id = ?",
            (tested["id"],),
        )
    )
    await owner.press(one, f"{one}/disable")
    assert (await record(office, made["id"]))["enabled"] is False
    shown = await owner.page(PATH)
    assert "ops was disabled" in shown.words
    await owner.press(PATH, f"{one}/enable")
    assert (await record(office, made["id"]))["enabled"] is True
    reply = await owner.press(one, f"{PATH}/again/{tested['id']}")
    assert reply.headers["location"] == f"{one}?did=sent_again"
    await owner.press(one, f"{one}/delete")
    await owner.page(one, 404)


async def test_what_receivers_answer_is_text(owner: Browser, office: Office):
    body = {"type": "webhook", "name": "loud", "url": HOOK}
    made = (await office.ok("owner", "POST", "/notifications/destinations", body))["data"]
    one = f"{PATH}/{made['id']}"
    await owner.press(one, f"{one}/test")
    error = "<script>\u202e" + "x" * 10_000
    await office.gateway.store.write(
        lambda connection: connection.execute(
            "UPDATE delivery SET error = ? WHERE destination_id = ?", (error, made["id"])
        )
    )
    reply = await owner.get(one)
    page = check_page(reply)
    assert "<script>xxx" in page.words
    assert "<script>x" not in reply.text
    assert "x" * 201 not in reply.text


async def test_a_foreign_destination_is_no_destination(owner: Browser, office: Office):
    body = {"type": "webhook", "name": "theirs", "url": HOOK}
    theirs = (await office.ok("stranger", "POST", "/notifications/destinations", body))["data"]
    one = f"{PATH}/{theirs['id']}"
    await owner.page(one, 404)
    for deed in ("enable", "disable", "test", "rotate-secret", "delete"):
        reply = await owner.post(f"{one}/{deed}", {"csrf": await owner.token()})
        assert reply.status_code == 404
