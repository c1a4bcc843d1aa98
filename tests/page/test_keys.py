"""Keys on the page: made and shown once, changed, rotated, stopped; wrong forms come back with what was typed."""

from typing import Any

import pytest

from gwd.core.clock import US_PER_S
from gwd.management import sessions
from tests.api.office import Office
from tests.page.browser import Browser, check_page

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEW = "/app/keys/new"


async def key_named(office: Office, name: str) -> list[Any]:
    found = await office.ok("owner", "GET", f"/keys?name={name}&include_disabled=true")
    records: list[Any] = found["data"]
    return records


async def test_a_key_is_shown_once_and_made_once(owner: Browser, office: Office):
    page = await owner.page(NEW)
    [form] = [each for each in page.forms if each.action == NEW]
    fields = {**form.values, "name": "laptop-ada", "limit": "12.50", "limit_reset": "weekly"}
    made = await owner.post(NEW, fields)
    assert made.status_code == 200
    assert "set-cookie" not in made.headers
    secret = made.text.split('id="new-key">')[1].split("<")[0]
    check_page(made)
    assert secret.startswith("gwi_")
    again = await owner.post(NEW, fields)
    assert again.status_code == 200
    assert "already shown" in check_page(again).words
    assert secret not in again.text
    [record] = await key_named(office, "laptop-ada")
    assert (record["limit"], record["limit_reset"]) == (12.5, "weekly")


WRONG: list[tuple[str, str, str]] = [
    ("name", "", "name"),
    ("name", "x" * 101, "name"),
    ("name", "nul\x00", "NUL"),
    ("limit", "much", "limit"),
    ("limit", "-1", "limit"),
    ("limit", "1.0000000001", "limit"),
    ("limit", "1e40", "limit"),
    ("limit", "NaN", "limit"),
    ("limit_reset", "hourly", "limit_reset"),
    ("rate_limit_per_minute", "many", "whole number"),
    ("rate_limit_per_minute", "0", "rate_limit_per_minute"),
    ("expires_at", "2020-01-01", "expires_at"),
    ("expires_at", "soon", "expires_at"),
    ("workspace_id", "ws_nowhere", ""),
]


@pytest.mark.parametrize(("name", "text", "said"), WRONG)
async def test_a_wrong_field_comes_back_with_what_was_typed(
    owner: Browser, office: Office, name: str, text: str, said: str
):
    page = await owner.page(NEW)
    [form] = [each for each in page.forms if each.action == NEW]
    reply = await owner.post(NEW, {**form.values, "name": "wrong one", "limit": "7", name: text})
    if name == "workspace_id":
        assert reply.status_code == 404
    else:
        assert reply.status_code == 400
        shown = check_page(reply)
        assert said.lower() in shown.words.lower()
        [back] = [each for each in shown.forms if each.action == NEW]
        assert back.values["name"] == (text.replace("\x00", "") if name == "name" else "wrong one")
        assert 'aria-invalid="true"' in reply.text
    assert await key_named(office, "wrong one") == []


async def test_forms_are_read_strictly(owner: Browser, office: Office):
    token = await owner.token()
    good = [("csrf", token), ("name", "strict")]
    wrong: list[tuple[list[tuple[str, str]], int]] = [
        ([*good, ("surprise", "1")], 400),
        ([*good, ("name", "twice")], 400),
        ([*good, ("limit", "9" * 200)], 400),
        ([*good, ("allowed_models", "x" * 30_000)], 400),
        ([*good, *((f"f{n}", "") for n in range(300))], 400),
        ([("csrf", token)], 400),
    ]
    for fields, status in wrong:
        body = "&".join(f"{name}={value}" for name, value in fields)
        reply = await owner.client.post(
            NEW,
            content=body,
            headers={"origin": owner.origin, "content-type": "application/x-www-form-urlencoded"},
        )
        assert reply.status_code == status, fields[-1][0]
        check_page(reply)
    for content_type in ("application/json", "multipart/form-data; boundary=x", "text/plain"):
        reply = await owner.client.post(
            NEW, content=b"{}", headers={"origin": owner.origin, "content-type": content_type}
        )
        assert reply.status_code == 415
        check_page(reply)
    reply = await owner.client.post(
        NEW,
        content=b"csrf=%ff%fe&name=\xff",
        headers={"origin": owner.origin, "content-type": "application/x-www-form-urlencoded"},
    )
    assert reply.status_code == 400
    assert await key_named(office, "strict") == []


async def test_a_key_is_stopped_started_and_changed(owner: Browser, office: Office):
    made = await office.ok(
        "owner", "POST", "/keys", {"name": "at-night", "rate_limit_per_minute": 60}
    )
    path = f"/app/keys/{made['data']['id']}"
    await owner.press(path, f"{path}/disable")
    assert (await key_named(office, "at-night"))[0]["disabled"] is True
    assert "disabled" in (await owner.page(f"{path}?did=disabled")).words
    await owner.press(path, f"{path}/enable")
    reply = await owner.press(
        f"{path}/edit",
        f"{path}/edit",
        name="by-day",
        limit="20",
        allowed_models="demo/chat, demo/claude",
    )
    assert reply.headers["location"] == f"{path}?did=saved"
    [record] = await key_named(office, "by-day")
    assert record["allowed_models"] == ["demo/chat", "demo/claude"]
    assert (record["limit"], record["rate_limit_per_minute"], record["disabled"]) == (20, 60, False)


async def test_a_key_is_rotated_and_the_old_one_ended(owner: Browser, office: Office):
    made = await office.ok("owner", "POST", "/keys", {"name": "rotates"})
    path = f"/app/keys/{made['data']['id']}"
    reply = await owner.press(path, f"{path}/rotate", overlap="7d")
    assert reply.status_code == 200
    page = check_page(reply)
    assert "only time it is shown" in page.words
    [successor] = [
        each for each in await key_named(office, "rotates") if each["rotated_from"] is not None
    ]
    after = f"/app/keys/{successor['id']}"
    assert "Rotating" in (await owner.page(after)).words
    reply = await owner.press(after, f"{after}/end-old")
    assert reply.headers["location"] == f"{after}?did=ended"
    old = (await office.ok("owner", "GET", f"/keys/{made['data']['id']}"))["data"]
    assert old["disabled"] is True
    assert "Rotating" not in (await owner.page(after)).words


async def test_deleting_wants_the_name_and_a_fresh_proof(owner: Browser, office: Office):
    made = await office.ok("owner", "POST", "/keys", {"name": "goes"})
    path = f"/app/keys/{made['data']['id']}"
    reply = await owner.press(path, f"{path}/delete", confirm="stays")
    assert reply.status_code == 400
    assert "exactly" in check_page(reply).words
    await office.gateway.store.write(
        lambda connection: connection.execute(
            "UPDATE browser_session SET proved_at = proved_at - ?", (sessions.PROOF_US + US_PER_S,)
        )
    )
    reply = await owner.press(path, f"{path}/delete", confirm="goes")
    assert reply.status_code == 200
    again = check_page(reply)
    assert "once more" in again.words
    [form] = [each for each in again.forms if each.action == f"{path}/delete"]
    wrong = await owner.post(form.action, {**form.values, "again_key": office["member"].key})
    assert wrong.status_code == 401
    assert "another key" in check_page(wrong).words
    assert (await owner.page(path)).words
    reply = await owner.post(form.action, {**form.values, "again_key": office["owner"].key})
    assert (reply.status_code, reply.headers["location"]) == (303, "/app/keys?did=deleted")
    await owner.page(path, 404)


async def test_unknown_foreign_and_malformed_ids_are_one_404(owner: Browser, office: Office):
    foreign = (await office.ok("stranger", "POST", "/keys", {"name": "theirs"}))["data"]["id"]
    said = set()
    for key_id in (foreign, "key_unknown", "x", "key_%00", "key_'--", "k" * 300):
        page = await owner.page(f"/app/keys/{key_id}", 404)
        said.add(page.words.split("No such key")[1].split("req_")[0])
        reply = await owner.post(f"/app/keys/{key_id}/disable", {"csrf": await owner.token()})
        assert reply.status_code == 404
    assert len(said) == 1
    stays = (await office.ok("stranger", "GET", f"/keys/{foreign}"))["data"]
    assert stays["disabled"] is False


async def test_names_of_others_are_text(owner: Browser, office: Office):
    names = [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "</title>",
        "{{ 7 * 7 }}",
    ]
    for name in names:
        made = await office.ok("owner", "POST", "/keys", {"name": name})
        for path in (
            "/app/keys",
            f"/app/keys/{made['data']['id']}",
            f"/app/keys/{made['data']['id']}/edit",
        ):
            reply = await owner.get(path)
            page = check_page(reply)
            assert "<" not in name or reply.text.count(name) == (name == "</title>")
            if not path.endswith("edit"):
                assert name in page.words
