"""`Idempotency-Key` on every POST that writes: a retry cannot make two, and never shows a secret again."""

import asyncio
from typing import Any

import pytest

from gwd.api.routes import ROUTES
from tests.api.cases import CASES
from tests.api.office import Office
from tests.api.test_rights import name_of, path_of

WRITES = [route for route in ROUTES if route.method == "POST" and route.action is not None]
SECRETS = ("key", "management_key", "accept_url", "signing_secret")


@pytest.mark.parametrize("route", WRITES, ids=name_of)
async def test_a_repeated_post_acts_once_and_is_answered_the_same(
    office: Office, route: Any
) -> None:
    operator = office["operator"]
    sent = await CASES[name_of(route)].build(office, operator)
    path, key = path_of(route, sent), {"idempotency-key": "retry-1"}
    first = await office.call(operator, "POST", path, sent.body, headers=key)
    lines = await _lines(office)
    again = await office.call(operator, "POST", path, sent.body, headers=key)
    assert first.is_success, first.text
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["cache-control"] == "no-store"
    assert again.status_code == first.status_code
    shown, repeated = first.json(), again.json()
    if path == "/sign-in-links":  # the only secret that is a field of the record itself
        shown, repeated = (
            {"accept_url": body["data"].pop("url"), **body} for body in (shown, repeated)
        )
    for name in SECRETS:
        if name in shown:
            assert shown[name]
            assert repeated[name] is None
            assert shown[name] not in again.text
    assert _public(repeated) == _public(shown)
    assert await _lines(office) == lines


@pytest.mark.parametrize("route", WRITES, ids=name_of)
async def test_the_same_key_with_another_body_is_a_conflict(office: Office, route: Any) -> None:
    operator = office["operator"]
    sent = await CASES[name_of(route)].build(office, operator)
    path, key = path_of(route, sent), {"idempotency-key": "retry-1"}
    first = await office.call(operator, "POST", path, sent.body, headers=key)
    assert first.is_success, first.text
    other = (await CASES[name_of(route)].build(office, operator)).body
    changed = other if other and other != sent.body else {**(sent.body or {}), "more": 1}
    reply = await office.call(operator, "POST", path, changed, headers=key)
    if changed is other:
        assert reply.status_code == 409
        assert reply.json()["error"]["code"] == "idempotency_conflict"
        assert reply.headers["x-should-retry"] == "false"
    else:
        assert (
            reply.status_code == 400
        )  # no second body is valid here: the unknown field comes first


async def test_twins_sent_at_once_make_one(office: Office) -> None:
    key = {"idempotency-key": "twins"}
    replies = await asyncio.gather(
        *(office.call("owner", "POST", "/keys", {"name": "ci"}, headers=key) for _ in range(8))
    )
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.json()["data"]["id"] for reply in replies}) == 1
    shown = [reply.json()["key"] for reply in replies if reply.json()["key"] is not None]
    assert len(shown) == 1
    listed = await office.ok("owner", "GET", "/keys?name=ci")
    assert listed["total_count"] == 1


async def test_a_refused_request_may_be_repeated_with_the_same_key(office: Office) -> None:
    """Nothing is stored of what did not happen."""
    key = {"idempotency-key": "try"}
    refused = await office.call("owner", "POST", "/keys", {"name": ""}, headers=key)
    assert refused.status_code == 400
    assert (
        await office.call("owner", "POST", "/keys", {"name": "ci"}, headers=key)
    ).status_code == 201


async def test_the_key_belongs_to_who_uses_it_and_to_one_path(office: Office) -> None:
    key = {"idempotency-key": "mine"}
    for person in ("owner", "admin", "stranger"):
        reply = await office.call(person, "POST", "/keys", {"name": "ci"}, headers=key)
        assert reply.status_code == 201
        assert "idempotency-replayed" not in reply.headers
    elsewhere = await office.call("owner", "POST", "/workspaces", {"name": "ci"}, headers=key)
    assert elsewhere.status_code == 409


@pytest.mark.parametrize("name", ["", "x" * 256])
async def test_an_unusable_idempotency_key_is_refused(office: Office, name: str) -> None:
    reply = await office.call(
        "owner", "POST", "/keys", {"name": "ci"}, headers={"idempotency-key": name}
    )
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "Idempotency-Key"


async def test_no_secret_is_kept_for_replays(office: Office) -> None:
    """What is stored for a replay holds no plaintext, so a copy of the database holds none either."""
    key = {"idempotency-key": "secret"}
    made = await office.ok("owner", "POST", "/keys", {"name": "ci"}, headers=key)
    stored = await office.gateway.store.read(
        lambda connection: connection.rows("SELECT body FROM idempotency")
    )
    assert stored
    for (body,) in stored:
        assert made["key"].encode() not in body


async def _lines(office: Office) -> int:
    found = await office.ok("operator", "GET", "/audit", params={"limit": 1})
    return int(found["total_count"])


def _public(body: dict[str, Any]) -> dict[str, Any]:
    """Without secrets, and what only a repeated booking says: that it was booked before."""
    hidden = (*SECRETS, "already_booked_at", "message")
    return {name: value for name, value in body.items() if name not in hidden}
