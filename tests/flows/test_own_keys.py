"""Own vendor keys on their way: whom they serve, what a refusal of one says to others, and who hears of it."""

import asyncio
from typing import Any

import httpx
import pytest

from gwd.demo import Behaviour
from gwd.orgs.settings import bump_revision
from gwd.store import Connection
from tests.flows.clock import MovableClock
from tests.flows.conftest import A, Opened
from tests.flows.frames import error_of, receipt_of
from tests.limits.raised_alerts import raised_alerts
from tests.support.node import Gateway
from tests.support.own_keys import OWN, attach, change, on_record, secrets_sent

PLATFORM = "sk-demo-0000"
ASK_RECEIPT = {"x-gw-metadata": "enabled"}
REFUSED = Behaviour(status=401, message="Incorrect API key provided")
EMPTY = Behaviour(status=402, message="Insufficient credits")
NO_MODEL = Behaviour(status=404, message="The model does not exist or you have no access to it.")


class Tenant:
    """Another organization of the node, with credit and an inference key."""

    def __init__(self, gateway: Gateway, organization_id: str, key: str) -> None:
        self.gateway = gateway
        self.organization_id = organization_id
        self.headers = {"authorization": f"Bearer {key}"}

    async def chat(self, content: str = "hello", **fields: Any) -> httpx.Response:
        headers = {**self.headers, **fields.pop("headers", {})}
        return await self.gateway.chat(content, headers=headers, **fields)


async def tenant(gateway: Gateway, name: str) -> Tenant:
    made = await gateway.manage(
        "POST", "/organizations", {"name": name, "owner_email": f"owner@{name}.example"}
    )
    organization_id = made["data"]["id"]
    owner = {"authorization": f"Bearer {made['management_key']}"}
    await gateway.manage(
        "POST",
        "/credits/grants",
        {"amount": 5, "kind": "granted", "organization_id": organization_id},
    )
    reply = await gateway.client.post("/keys", json={"name": "inference"}, headers=owner)
    assert reply.status_code == 201, reply.text
    return Tenant(gateway, organization_id, reply.json()["key"])


async def test_no_organization_ever_uses_another_s_key(gateway: Gateway) -> None:
    """Each secret is a canary: the vendor writes down which one each request came with."""
    tenants = [await tenant(gateway, name) for name in ("globex", "initech")]
    secrets = ["sk-canary-globex-1", "sk-canary-initech-2"]
    for one, secret in zip(tenants, secrets, strict=True):
        await attach(gateway, secret, organization_id=one.organization_id)
    asked = [one for one in (*tenants, None) for _ in range(8)]

    async def ask(one: Tenant | None, number: int) -> None:
        reply = await (one or gateway).chat(f"question {number}", stream=number % 2 == 0)
        assert reply.status_code == 200
        assert not any(secret in reply.text for secret in secrets)

    await asyncio.gather(*(ask(one, number) for number, one in enumerate(asked)))
    sent: dict[str, str] = {}
    for call, secret in zip(gateway.vendor.calls, secrets_sent(gateway), strict=True):
        assert call.body is not None
        sent[call.body["messages"][0]["content"]] = secret
    expected = dict(zip((*tenants, None), (*secrets, PLATFORM), strict=True))
    assert sent == {f"question {number}": expected[one] for number, one in enumerate(asked)}
    for shown in ("/generations", "/audit", "/catalog/credentials", "/notifications/events"):
        text = (await gateway.operator.get(shown)).text
        assert not any(secret in text for secret in secrets)


@pytest.mark.parametrize(
    "fields",
    [
        {"workspace_id": "ws_elsewhere"},
        {"allowed_models": ["other/*", "demo/claude"]},
        {"allowed_api_key_hashes": ["0" * 64]},
        {"allowed_user_ids": ["somebody else"]},
        {"disabled": True},
        {"expires_at": 1},
        {"origin": "http://127.0.0.1:9"},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_a_key_serves_only_what_it_was_attached_for(
    gateway: Gateway, fields: dict[str, Any]
) -> None:
    await attach(gateway, **fields)
    assert (await gateway.chat()).status_code == 200
    assert secrets_sent(gateway) == [PLATFORM]


async def test_a_key_serves_whom_it_names_also_after_their_key_is_rotated(gateway: Gateway) -> None:
    """What a request says of its user does not count: anybody may say anything there."""
    key, key_id = await gateway.new_key()
    record = (await gateway.manage("GET", f"/keys/{key_id}"))["data"]
    limits: dict[str, Any] = {
        "allowed_models": ["demo/*"],
        "allowed_api_key_hashes": [record["hash"]],
    }
    limited = await attach(gateway, **limits, allowed_user_ids=["usr_other"])
    owner = {"authorization": f"Bearer {key}"}
    assert (await gateway.chat()).status_code == 200
    assert (await gateway.chat(headers=owner, user="usr_other")).status_code == 200
    assert secrets_sent(gateway) == [PLATFORM] * 2
    await change(gateway, limited, allowed_user_ids=[record["user_id"]])
    assert (await gateway.chat(headers=owner)).status_code == 200
    rotated = await gateway.manage("POST", f"/keys/{key_id}/rotate", {"overlap": "1h"})
    successor = {"authorization": f"Bearer {rotated['key']}"}
    assert (await gateway.chat(headers=successor)).status_code == 200
    assert secrets_sent(gateway)[2:] == [OWN] * 2


async def test_own_keys_come_first_and_fallbacks_last_whatever_the_order_says(
    two: Gateway,
) -> None:
    await attach(two, "sk-own-backup-1", provider="backup", sort_order=5)
    await attach(two, "sk-own-openai-1")
    await attach(two, "sk-own-fallback", is_fallback=True, sort_order=-9)
    two.vendor.script.always(Behaviour(status=500))
    wanted = {"order": ["backup", "openai-chat"]}
    reply = await two.chat(provider=wanted, headers=ASK_RECEIPT)
    assert reply.status_code == 502
    assert secrets_sent(two) == [
        *("sk-own-backup-1", "sk-own-openai-1", "sk-backup-1", PLATFORM, "sk-own-fallback"),
    ]
    routing = error_of(reply)["metadata"]["gateway_metadata"]["routing"]
    assert [each.get("byok", False) for each in routing["fallbacks"]] == [
        *(True, True, False, False, True),
    ]


async def test_many_failing_own_keys_leave_the_platform_its_attempts(gateway: Gateway) -> None:
    for number in range(9):
        await attach(gateway, f"sk-own-number-{number}", sort_order=number)
    gateway.vendor.script.next(*[Behaviour(status=500)] * 4)
    reply = await gateway.chat(headers=ASK_RECEIPT)
    assert receipt_of(reply)["cost"]["byok"] is False
    assert secrets_sent(gateway) == [*(f"sk-own-number-{n}" for n in range(4)), PLATFORM]


async def test_a_provider_without_platform_keys_serves_its_owners_alone(gateway: Gateway) -> None:
    one, other = await tenant(gateway, "globex"), await tenant(gateway, "initech")
    (platform,) = [
        each
        for each in (await gateway.manage("GET", "/catalog/credentials"))["data"]
        if each["provider"] == "openai-chat"
    ]
    await gateway.manage("DELETE", f"/catalog/credentials/{platform['id']}")
    await attach(gateway, organization_id=one.organization_id)
    assert (await one.chat()).status_code == 200
    reply = await other.chat()
    assert (reply.status_code, error_of(reply)["metadata"]["excluded_by"]) == (
        503,
        ["no_credential"],
    )


@pytest.mark.parametrize(
    "fault",
    [REFUSED, EMPTY, NO_MODEL, Behaviour(status=429, retry_after="60"), Behaviour(status=429)],
    ids=["401", "402", "404", "429 with a hint", "429"],
)
async def test_what_a_vendor_has_against_an_own_key_is_no_fault_of_the_endpoint(
    gateway: Gateway, fault: Behaviour
) -> None:
    one, other = await tenant(gateway, "globex"), await tenant(gateway, "initech")
    await attach(gateway, "sk-own-globex-1", organization_id=one.organization_id, is_required=True)
    await attach(gateway, "sk-own-initech-1", organization_id=other.organization_id)
    gateway.vendor.script.next(*[fault] * 5)
    for number in range(5):
        assert (await one.chat(f"question {number}")).status_code != 200
    gateway.vendor.script.clear()
    node = gateway.running.node
    records = await node.state.endpoint_records(node.clock.now_us())
    (endpoint,) = [each for each in records if each.model == "demo/chat"]
    assert (endpoint.status, endpoint.rests, endpoint.failures) == ("healthy", [], 0)
    for asker, secret in ((other, "sk-own-initech-1"), (gateway, PLATFORM)):
        assert (await asker.chat()).status_code == 200
        assert secrets_sent(gateway)[-1] == secret


async def test_a_change_of_own_keys_counts_from_the_next_request_and_reads_no_one_else(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await tenant(gateway, "globex"), await tenant(gateway, "initech")
    keys = [await attach(gateway, f"sk-own-{n}", organization_id=each.organization_id)
            for n, each in enumerate((one, other))]  # fmt: skip
    for each in (one, other):
        await each.chat()
    read: list[str] = []
    state = gateway.running.node.state
    load = state._load_organization

    async def counted(organization_id: str) -> Any:
        read.append(organization_id)
        return await load(organization_id)

    monkeypatch.setattr(state, "_load_organization", counted)
    await change(gateway, keys[0], disabled=True)
    for each in (one, other, one, other):
        assert (await each.chat()).status_code == 200
    assert secrets_sent(gateway)[2:] == [PLATFORM, "sk-own-1", PLATFORM, "sk-own-1"]
    assert read == [one.organization_id]
    # Where a provider is decides which keys fit: a change of the catalog has all read again, when they ask.
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"name": "Chat"})
    for each in (one, other):
        await each.chat()
    assert read == [one.organization_id, one.organization_id, other.organization_id]


async def test_a_changed_key_gets_a_new_chance_and_nobody_else_s_rest_is_touched(
    two: Gateway,
) -> None:
    """Nor what endpoints rest from for their own sake: what an organization edits says nothing about them."""
    key_id = await attach(two)
    order = {"order": ["openai-chat"]}
    two.vendor.script.next(REFUSED, Behaviour(status=402, message="no credit left"), model=A)
    assert (await two.chat(provider=order)).status_code == 200  # served by the backup
    assert secrets_sent(two) == [OWN, PLATFORM, "sk-backup-1"]
    await two.chat(provider=order)
    assert secrets_sent(two)[3:] == ["sk-backup-1"]
    await change(two, key_id)
    await two.chat(provider=order)
    assert secrets_sent(two)[4:] == [OWN]
    await change(two, key_id, disabled=True)
    await two.chat(provider=order)
    assert secrets_sent(two)[5:] == ["sk-backup-1"], "the platform's key still rests"


async def failing(gateway: Gateway) -> list[Any]:
    """The alerts about keys, once everything is written."""
    gateway.running.node.state.write_trouble()
    await gateway.store.write(lambda connection: None)
    return await raised_alerts(gateway, "provider_key")


async def test_the_owner_of_a_refused_key_is_told_once_and_again_after_it_served(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        one = await tenant(gateway, "globex")
        key_id = await attach(gateway, organization_id=one.organization_id)
        gateway.vendor.script.next(
            Behaviour(status=402, message=f"Insufficient credits for {OWN}"), model=A
        )
        assert (await one.chat()).status_code == 200
        (alert,) = await failing(gateway)
        assert (alert.type, alert.severity) == ("alert.provider_key_failing", "warning")
        data = alert.data
        assert data.pop("first_seen_at").endswith("Z")
        assert data == {
            "organization_id": one.organization_id,
            "provider_key_id": key_id,
            "provider": "openai-chat",
            "label": "…0011",
            "reason": "quota_exhausted",
            "failures": 1,
        }
        assert alert.recipients == ("owner@globex.example",)
        assert OWN not in f"{alert}"
        assert (await on_record(gateway, key_id))["last_error_reason"] == "quota_exhausted"

        clock.pass_by(901)
        gateway.vendor.script.next(EMPTY, model=A)
        await one.chat()
        assert len(await failing(gateway)) == 1, "the same trouble"
        clock.pass_by(901)
        await one.chat()
        assert secrets_sent(gateway)[-1] == OWN
        assert len(await failing(gateway)) == 1
        assert (await on_record(gateway, key_id))["last_error_reason"] is None
        gateway.vendor.script.next(EMPTY, model=A)
        await one.chat()
        assert len(await failing(gateway)) == 2, "it had served meanwhile"
        await change(gateway, key_id)
        gateway.vendor.script.next(REFUSED, model=A)
        await one.chat()
        assert [each.data["reason"] for each in await failing(gateway)] == [
            *("quota_exhausted", "quota_exhausted", "auth_invalid"),
        ]


async def test_of_the_platform_s_keys_the_operator_s_organization_hears(gateway: Gateway) -> None:
    one = await tenant(gateway, "globex")
    gateway.vendor.script.next(REFUSED, model=A)
    assert (await one.chat()).status_code == 502
    (alert,) = await failing(gateway)
    assert alert.data["organization_id"] == await gateway.organization_id()
    assert (alert.data["reason"], alert.recipients) == ("auth_invalid", ("owner@acme.example",))


async def test_one_request_that_is_refused_is_no_failing_key(
    opened: Opened, clock: MovableClock
) -> None:
    """Nor does a model that the account may use end the trouble about one that it may not."""
    async with opened(clock) as gateway:
        await attach(gateway)
        gateway.vendor.script.next(NO_MODEL, model=A)
        await gateway.chat("one")
        assert await failing(gateway) == []
        for question in ("two", "three"):
            await gateway.chat(model="demo/chat-b")
            clock.pass_by(901)
            gateway.vendor.script.next(NO_MODEL, model=A)
            await gateway.chat(question)
            clock.pass_by(61)
            gateway.vendor.script.next(NO_MODEL, model=A)
            await gateway.chat(f"{question} differently")
            (alert,) = await failing(gateway)
            assert alert.data["reason"] == "model_access_denied"


async def test_a_call_under_way_does_not_end_a_trouble_that_began_after_it(
    gateway: Gateway,
) -> None:
    key_id = await attach(gateway)
    gateway.vendor.script.next(Behaviour(first_event_delay_s=0.4), REFUSED, model=A)
    slow = asyncio.create_task(gateway.chat("slow", stream=True))
    await gateway.vendor.calls.wait_for(1)
    assert (await gateway.chat("fast")).status_code == 200
    assert (await slow).status_code == 200
    await gateway.at_rest()
    assert (await on_record(gateway, key_id))["last_error_reason"] == "auth_invalid"


async def test_when_a_key_was_used_is_written_once_a_minute(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        key_id = await attach(gateway)
        assert (await on_record(gateway, key_id))["last_used_at"] is None
        clock.stop()
        await gateway.chat()
        first = (await on_record(gateway, key_id))["last_used_at"]
        clock.pass_by(30)
        await gateway.chat()
        assert (await on_record(gateway, key_id))["last_used_at"] == first
        clock.pass_by(31)
        second = (await on_record(gateway, key_id))["last_used_at"]
        assert 29_000_000 < second - first < 31_000_000


async def test_an_alert_that_cannot_be_raised_leaves_the_record(gateway: Gateway) -> None:
    """The organization was deleted meanwhile: there is nobody to tell."""
    one = await tenant(gateway, "globex")
    key_id = await attach(gateway, organization_id=one.organization_id)
    gateway.vendor.script.next(REFUSED, model=A)
    await one.chat()

    def delete(connection: Connection) -> None:
        connection.execute(
            "UPDATE organization SET deleted_at = 1 WHERE id = ?", (one.organization_id,)
        )
        bump_revision(connection, one.organization_id, now_us=1)

    await gateway.store.write(delete)
    assert (await on_record(gateway, key_id))["last_error_reason"] == "auth_invalid"
    assert await failing(gateway) == []
