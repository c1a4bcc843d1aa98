"""/notifications: destinations, what they hear of, deliveries, and who may do what."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gwd.outbound.signature import signature
from tests.support.node import Gateway, open_gateway
from tests.support.receivers import MailBox, Receiver, open_mail_box, open_receiver

PLACE = "/notifications/destinations"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with open_receiver() as made:
        yield made


@pytest.fixture
async def box() -> AsyncIterator[MailBox]:
    async with open_mail_box() as made:
        yield made


@pytest.fixture
async def gateway(tmp_path: Path, box: MailBox) -> AsyncIterator[Gateway]:
    environment = {
        "GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]',
        "GWD_WEBHOOKS_ALLOW_HTTP": "true",
        "GWD_SMTP_HOST": "127.0.0.1",
        "GWD_SMTP_PORT": str(box.port),
        "GWD_SMTP_TLS": "none",
        "GWD_SMTP_FROM": "gateway@example.com",
    }
    async with open_gateway(tmp_path, environment=environment) as made:
        yield made


async def add(gateway: Gateway, **fields: Any) -> Any:
    return await gateway.manage("POST", PLACE, {"type": "webhook", "name": "ops", **fields})


async def refused(gateway: Gateway, body: dict[str, Any], path: str = PLACE) -> Any:
    reply = await gateway.operator.post(path, json=body)
    assert reply.status_code == 400, reply.text
    return reply.json()["error"]


async def test_a_webhook_from_making_it_to_its_first_signed_alert(
    gateway: Gateway, receiver: Receiver
) -> None:
    made = await add(gateway, url=receiver.url(), events=["key_limit"])
    secret, record = made["signing_secret"], made["data"]
    assert secret.startswith("whsec_")
    assert record["secret_hint"] == f"…{secret[-4:]}"
    shown = await gateway.manage("GET", f"{PLACE}/{record['id']}")
    assert shown == {"data": record}
    key, key_id = await gateway.new_key(limit=0.00001)
    body = {"model": "demo/chat", "messages": [{"role": "user", "content": "hello"}]}
    headers = {"authorization": f"Bearer {key}"}
    assert (
        await gateway.client.post("/chat/completions", json=body, headers=headers)
    ).status_code == 200
    async with asyncio.timeout(20):
        while not receiver.received:
            await asyncio.sleep(0.02)
    [got] = receiver.received
    assert got.json["type"] == got.headers["x-gw-event"] == "alert.key_limit"
    assert got.json["data"]["key_id"] == key_id
    stamp = int(got.headers["x-gw-timestamp"])
    assert got.headers["x-gw-signature"] == signature(secret, stamp, got.body)
    async with asyncio.timeout(20):
        while True:
            rows = (await gateway.manage("GET", f"{PLACE}/{record['id']}/deliveries"))["data"]
            if rows[0]["status"] == "delivered":
                break
            await asyncio.sleep(0.02)
    [row] = rows
    assert (row["event_id"], row["id"]) == (got.json["id"], got.headers["x-gw-delivery-id"])
    again = await gateway.manage("POST", f"/notifications/deliveries/{row['id']}/redeliver", {})
    assert again["data"]["event_id"] == row["event_id"]
    async with asyncio.timeout(20):
        while len(receiver.received) < 2:
            await asyncio.sleep(0.02)
    assert receiver.received[1].json["id"] == got.json["id"]
    event = await gateway.manage("GET", f"/notifications/events/{row['event_id']}")
    assert event["data"] == got.json


async def test_a_test_tells_at_once_how_it_went(gateway: Gateway, receiver: Receiver) -> None:
    record = (await add(gateway, url=receiver.url()))["data"]
    sent = (await gateway.manage("POST", f"{PLACE}/{record['id']}/test", {}))["data"]
    assert (sent["status"], sent["response_status"], sent["type"]) == (
        "delivered",
        204,
        "alert.test",
    )
    receiver.answer = lambda _: b"500 No"
    sent = (await gateway.manage("POST", f"{PLACE}/{record['id']}/test", {}))["data"]
    assert (sent["status"], sent["error"]) == ("failed", "the receiver answered 500")
    shown = (await gateway.manage("GET", f"{PLACE}/{record['id']}"))["data"]
    assert (shown["enabled"], shown["consecutive_failures"]) == (True, 0)


async def test_mail_goes_to_an_address(gateway: Gateway, box: MailBox) -> None:
    record = (await add(gateway, type="email", address="Ops@Example.com"))["data"]
    assert (record["address"], record["url"]) == ("ops@example.com", None)
    await gateway.manage("POST", f"{PLACE}/{record['id']}/test", {})
    [mail] = box.to("ops@example.com")
    assert mail["From"] == "gateway@example.com"
    assert mail["Subject"] == "A test of ops"


async def test_a_chat_address_is_shown_by_its_host_alone(
    gateway: Gateway, receiver: Receiver
) -> None:
    url = receiver.url("/services/T0/B0/very-secret")
    made = await add(gateway, type="chat", url=url)
    assert "signing_secret" not in made
    assert made["data"]["url"] == "http://127.0.0.1/…"
    everything = await gateway.operator.get(PLACE)
    assert "very-secret" not in everything.text
    await gateway.manage("POST", f"{PLACE}/{made['data']['id']}/test", {})
    [got] = receiver.on("/services/T0/B0/very-secret")
    assert got.json["text"].startswith("*A test of ops*")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"url": "https://10.0.0.8/hook"}, "url"),
        ({"url": "http://example.com/hook"}, "url"),
        ({"url": "https://example.com:22/"}, "url"),
        ({"url": "https://user:pw@example.com/"}, "url"),
        ({"url": "https://no-such-name.invalid/hook"}, "url"),
        ({"url": "nonsense"}, "url"),
        ({}, "url"),
        ({"address": "a@example.com", "url": "https://10.0.0.8/"}, "url"),
        ({"type": "email"}, "address"),
        ({"type": "email", "address": "nobody"}, "address"),
        ({"type": "email", "url": "https://example.com/"}, "url"),
        ({"type": "fax", "url": "https://example.com/"}, "type"),
        ({"url": "http://127.0.0.1:9/", "events": ["weather"]}, "events[0]"),
        ({"url": "http://127.0.0.1:9/", "min_severity": "loud"}, "min_severity"),
        ({"url": "http://127.0.0.1:9/", "format": "slack"}, "format"),
        ({"url": "http://127.0.0.1:9/", "name": " "}, "name"),
        ({"url": "http://127.0.0.1:9/", "colour": "red"}, "colour"),
    ],
)
async def test_what_cannot_be_told_is_refused_with_its_field(
    gateway: Gateway, fields: dict[str, Any], param: str
) -> None:
    error = await refused(gateway, {"type": "webhook", "name": "ops", **fields})
    assert error["param"] == param
    assert (await gateway.manage("GET", PLACE))["total_count"] == 0


async def test_the_node_itself_is_no_destination(gateway: Gateway) -> None:
    error = await refused(
        gateway,
        {
            "type": "webhook",
            "name": "loop",
            "url": f"http://127.0.0.1:{gateway.running.port}/api/v1/keys",
        },
    )
    assert error["param"] == "url"


async def test_changes_and_switches(gateway: Gateway, receiver: Receiver) -> None:
    made = await add(gateway, url=receiver.url())
    place = f"{PLACE}/{made['data']['id']}"
    changed = await gateway.manage(
        "PATCH", place, {"name": "night", "events": ["low_balance"], "min_severity": "warning"}
    )
    assert (changed["data"]["name"], changed["data"]["events"]) == ("night", ["low_balance"])
    off = (await gateway.manage("POST", f"{place}/disable", {}))["data"]
    assert (off["enabled"], off["disabled_reason"]) == (False, "somebody disabled it")
    on = (await gateway.manage("POST", f"{place}/enable", {}))["data"]
    assert (on["enabled"], on["disabled_at"]) == (True, None)
    # The secret lives on at another address.
    await gateway.manage("PATCH", place, {"url": f"http://localhost:{receiver.port}/next"})
    await gateway.manage("POST", f"{place}/test", {})
    [got] = receiver.on("/next")
    stamp = int(got.headers["x-gw-timestamp"])
    assert got.headers["x-gw-signature"] == signature(made["signing_secret"], stamp, got.body)
    rotated = await gateway.manage("POST", f"{place}/rotate-secret", {"overlap_s": 60})
    assert rotated["signing_secret"] != made["signing_secret"]
    assert rotated["data"]["old_secret_until"] is not None
    assert (await gateway.manage("DELETE", place))["deleted"] is True
    assert (await gateway.operator.get(place)).status_code == 404


async def test_settings_of_a_category(gateway: Gateway) -> None:
    path = "/notifications/alerts"
    rows = {row["category"]: row for row in (await gateway.manage("GET", path))["data"]}
    assert rows["key_limit"]["email_roles"] == ["owner", "admin"]
    changed = await gateway.manage(
        "PATCH", path, {"category": "key_limit", "thresholds": [80, 50], "email_roles": []}
    )
    assert changed["data"]["thresholds"] == [50, 80]
    muted = await gateway.manage(
        "PATCH", path, {"category": "key_limit", "muted_until": "2999-01-01T00:00:00Z"}
    )
    assert muted["data"]["muted_until"].startswith("2999")
    for body, param in (
        ({"category": "weather"}, "category"),
        ({"category": "key_limit", "thresholds": [0]}, "thresholds"),
        ({"category": "destination", "email_roles": ["admin"]}, "email_roles"),
        ({"category": "key_limit", "muted_until": "soon"}, "muted_until"),
    ):
        reply = await gateway.operator.patch(path, json=body)
        assert reply.status_code == 400
        assert reply.json()["error"]["param"] == param
    unknown = await gateway.operator.patch(
        path, json={"category": "key_limit", "channels": ["dst_unknown"]}
    )
    assert unknown.status_code == 404


async def test_another_organization_sees_nothing(gateway: Gateway, receiver: Receiver) -> None:
    made = await add(gateway, url=receiver.url())
    await gateway.manage("POST", f"{PLACE}/{made['data']['id']}/test", {})
    [row] = (await gateway.manage("GET", "/notifications/deliveries"))["data"]
    other = await gateway.manage(
        "POST", "/organizations", {"name": "Other", "owner_email": "o@other.example"}
    )
    client = httpx.AsyncClient(
        base_url=gateway.base_url,
        headers={"authorization": f"Bearer {other['management_key']}"},
        verify=False,
    )
    async with client:
        assert (await client.get(PLACE)).json()["data"] == []
        assert (await client.get("/notifications/deliveries")).json()["data"] == []
        for path in (
            f"{PLACE}/{made['data']['id']}",
            f"{PLACE}/{made['data']['id']}/deliveries",
            f"/notifications/deliveries/{row['id']}",
            f"/notifications/events/{row['event_id']}",
        ):
            assert (await client.get(path)).status_code == 404
        assert (await client.post(f"{PLACE}/{made['data']['id']}/test", json={})).status_code == 404
