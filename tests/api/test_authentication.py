"""Who is let in at all: one text for every wrong key, and a limit that spares valid ones."""

from typing import Any

import pytest

from gwd.api.auth import FAILURES_PER_MINUTE
from gwd.keys import secret
from tests.api.office import Office

UNKNOWN = secret.generate("management")


def wrong_keys() -> dict[str, str]:
    good = secret.generate("management")
    return {
        "unknown": UNKNOWN,
        "checksum": good[:-1] + ("A" if good[-1] != "A" else "B"),
        "relabelled": "gwi_" + good[4:],
        "short": good[:-1],
        "long": good + "0",
        "foreign": "sk-ant-0123456789",
        "hash": "ab" * 32,
    }


async def test_every_wrong_key_gets_the_same_answer_and_none_is_repeated(office: Office) -> None:
    answers = set()
    for key in wrong_keys().values():
        reply = await office.client.get("/keys", headers={"authorization": f"Bearer {key}"})
        assert reply.status_code == 401
        assert key not in reply.text
        answers.add(reply.text)
    assert len(answers) == 1


async def test_neither_the_public_hash_nor_the_stored_digest_opens_anything(
    office: Office,
) -> None:
    record = (await office.ok("owner", "GET", "/keys?limit=1"))["data"][0]
    for credential in (record["hash"], record["id"], f"gwm_{record['hash'][:49]}"):
        reply = await office.client.get("/keys", headers={"authorization": f"Bearer {credential}"})
        assert reply.status_code == 401


async def test_the_gateways_key_counts_beside_a_foreign_bearer(office: Office) -> None:
    """Agents send a vendor's bearer beside ours; two different ones of ours are refused."""
    owner, admin = office["owner"].key, office["admin"].key
    assert owner is not None
    assert admin is not None
    for headers, status in (
        ({"x-api-key": owner}, 200),
        ({"authorization": "Bearer sk-vendor", "x-api-key": owner}, 200),
        ({"authorization": f"Bearer {owner}", "x-api-key": owner}, 200),
        ({"authorization": f"Bearer {owner}", "x-api-key": admin}, 401),
        ({"authorization": f"Basic {owner}"}, 401),
    ):
        reply = await office.client.get("/organization", headers=headers)
        assert reply.status_code == status, headers


async def test_an_address_that_keeps_failing_waits_but_valid_keys_never_do(office: Office) -> None:
    wrong = {"authorization": f"Bearer {UNKNOWN}"}
    statuses = [
        (await office.client.get("/keys", headers=wrong)).status_code
        for _ in range(FAILURES_PER_MINUTE + 5)
    ]
    assert statuses == [401] * FAILURES_PER_MINUTE + [429] * 5
    reply = await office.client.get("/keys", headers=wrong)
    assert reply.json()["error"]["code"] == "rate_limit_exceeded"
    assert 1 <= int(reply.headers["retry-after"]) <= 60
    for person in ("owner", "member", "operator", "stranger"):
        for _ in range(3):
            assert (await office.call(person, "GET", "/organization")).status_code == 200
    inference = await office.call("inference", "GET", "/auth/key")
    assert inference.status_code == 200


async def test_a_valid_key_of_the_wrong_kind_or_role_is_no_failed_attempt(office: Office) -> None:
    for _ in range(FAILURES_PER_MINUTE + 5):
        assert (await office.call("inference", "GET", "/keys")).status_code == 403
        assert (await office.call("member", "GET", "/operator/status")).status_code == 403
    wrong = await office.client.get("/keys", headers={"authorization": f"Bearer {UNKNOWN}"})
    assert wrong.status_code == 401


@pytest.mark.parametrize("path", ["/chat/completions", "/messages", "/responses", "/embeddings"])
async def test_a_management_key_runs_no_model(office: Office, path: str) -> None:
    reply = await office.call("owner", "POST", path, {"model": "demo/chat"})
    body: Any = reply.json()
    assert reply.status_code == 403
    assert "inference key" in body["error"]["message"]


async def test_who_made_a_request_does_not_come_from_the_host_header(office: Office) -> None:
    """Authority is judged on the matched route, never on a rebuilt address."""
    for host in ("a/api/v1/models?x=", "evil.example", "127.0.0.1/v1/models#"):
        reply = await office.client.get("/keys", headers={"host": host})
        assert reply.status_code in (400, 401), host
