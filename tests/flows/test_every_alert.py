"""Every alert from its real cause, on three channels at once, with a clock that the test moves: each arrives once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gwd.alerts import node_alerts, samples
from gwd.core.clock import US_PER_DAY
from gwd.jobs.catalog_watch import CatalogWatch
from tests.faults.restart_storm import UNAUTHORIZED
from tests.flows.clock import MovableClock
from tests.limits.price import cents
from tests.support.node import PRICES, Gateway, open_gateway
from tests.support.receivers import MailBox, Receiver, open_mail_box, open_receiver
from tests.unit.alerts.test_samples import FIELDS

START = datetime(2032, 3, 1, 12, tzinfo=UTC)
PLACE = "/notifications/destinations"
MAIL = "ops@acme.example"


class Told:
    """A node with a destination of each kind, and what they heard."""

    def __init__(
        self, gateway: Gateway, receiver: Receiver, box: MailBox, clock: MovableClock
    ) -> None:
        self.gateway, self.receiver, self.box, self.clock = gateway, receiver, box, clock
        self.watch: CatalogWatch = gateway.running._catalog_watch()

    async def begin(self) -> None:
        for kind, field, where in (
            ("webhook", "url", self.receiver.url("/hook")),
            ("chat", "url", self.receiver.url("/chat")),
            ("email", "address", MAIL),
        ):
            await self.add(type=kind, name=kind, **{field: where})

    async def add(self, **fields: Any) -> str:
        made = await self.gateway.manage("POST", PLACE, fields)
        destination_id: str = made["data"]["id"]
        return destination_id

    async def all_told(self) -> None:
        """Wait until nothing waits; what is held back to be told together is due after a minute."""
        place = "/notifications/deliveries?status=pending"
        async with asyncio.timeout(60):
            while (await self.gateway.manage("GET", place))["total_count"]:
                await asyncio.sleep(0.15)
                self.clock.pass_by(61)

    async def look(self, **later: float) -> None:
        """Let time go by, look at the catalog, and tell what there is."""
        if later:
            moment = datetime.fromtimestamp(self.clock.now_us() / 1e6, UTC)
            self.clock.wait_until(moment + timedelta(**later))
        await self.watch.run()
        await self.all_told()

    async def events(self) -> list[Any]:
        data = (await self.gateway.manage("GET", "/notifications/events?limit=100"))["data"]
        return [each for each in data if each["type"] != "alert.test"]


@pytest.fixture
async def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Told]:
    monkeypatch.setattr("gwd.wiring.DELIVERIES_S", 0.05)
    clock = MovableClock(START)
    async with open_receiver() as receiver, open_mail_box() as box:
        environment = {
            "GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]',
            "GWD_WEBHOOKS_ALLOW_HTTP": "true",
            "GWD_BACKUP_DIRECTORY": str(tmp_path / "missing"),
            "GWD_SMTP_HOST": "127.0.0.1",
            "GWD_SMTP_PORT": str(box.port),
            "GWD_SMTP_TLS": "none",
            "GWD_SMTP_FROM": "gateway@example.com",
        }
        async with open_gateway(tmp_path, clock, environment=environment) as gateway:
            made = Told(gateway, receiver, box, clock)
            await made.begin()
            yield made


async def money(told: Told) -> None:
    """A key's limit, a hard and a soft budget, the low balance, a top-up that fails."""
    manage = told.gateway.manage
    await manage("PATCH", "/organization/settings", {"low_balance_threshold": 9.95})
    key, key_id = await told.gateway.new_key(limit=0.1, alert_thresholds=[80])
    for kind in ("hard", "soft"):
        body = {
            "scope": "key",
            "scope_id": key_id,
            "interval": "lifetime",
            "kind": kind,
            "limit": 0.1,
            "alert_thresholds": [80],
        }
        await manage("POST", "/budgets", body)
    told.receiver.answer = lambda got: b"503 No" if got.path == "/pay" else b"204 Fine"
    hook = {"threshold": 9.95, "amount": 20, "hook_url": told.receiver.url("/pay"), "enabled": True}
    await manage("PATCH", "/credits/auto-topup", hook)
    told.gateway.vendor.script.next(cents(9))
    reply = await told.gateway.chat(headers={"authorization": f"Bearer {key}"}, max_tokens=10)
    assert reply.status_code == 200
    async with asyncio.timeout(30):
        while not told.receiver.on("/pay"):
            await asyncio.sleep(0.05)
    await manage("PATCH", "/credits/auto-topup", {"enabled": False})
    await told.all_told()


async def catalog(told: Told) -> None:
    """A price that is announced and comes, an alias that moves, an outage, a retirement in its stages."""
    manage, path = told.gateway.manage, "/catalog/models/demo/chat"
    await told.gateway.add_model("demo/next", pricing=PRICES)
    await told.look()
    announced = {"pricing": {**PRICES, "prompt": "0.000003"}, "effective_at": _iso(2)}
    await manage("PATCH", path, announced)
    await told.look()
    await told.look(days=2, minutes=1)
    await manage("PATCH", path, {"aliases": ["default"]})
    await told.look()
    await manage("PATCH", path, {"aliases": []})
    await manage("PATCH", "/catalog/models/demo/next", {"aliases": ["default"]})
    await told.look()
    [endpoint] = (await manage("GET", "/catalog/endpoints?model=demo/chat"))["data"]
    for disabled in (True, False):
        await manage("PATCH", f"/catalog/endpoints/{endpoint['id']}", {"disabled": disabled})
        await told.look()
        await told.look(seconds=121)
    retirement = {"deprecated_at": _iso(3), "retired_at": _iso(20), "successor": "demo/next"}
    await manage("PATCH", path, retirement)
    for _ in range(20):
        await told.look(days=1)


async def node(told: Told) -> None:
    """The ledger in quarantine, a certificate that ends, no copies, a receiver that is gone, a key that is refused."""
    about: dict[str, Any] = {"app_url": "https://gate.example", "now_us": told.clock.now_us()}
    write = told.gateway.store.write
    await write(node_alerts.quarantined, "I1 does not hold", **about)
    await write(node_alerts.quarantined, "I1 does not hold", **about)
    ends_us = told.clock.now_us() + 5 * US_PER_DAY
    await write(node_alerts.certificate, ends_us=ends_us, names=["gate.example"], **about)
    await write(node_alerts.certificate, ends_us=ends_us, names=["gate.example"], **about)
    assert told.gateway.running.node.backups is not None
    copies = told.gateway.running._backups(told.gateway.running.node.backups)
    await copies.make()
    await copies.watch()
    await told.all_told()
    told.receiver.answer = lambda got: b"410 Gone" if got.path == "/gone" else b"204 Fine"
    gone = await told.add(
        type="webhook", name="gone", url=told.receiver.url("/gone"), events=["key_limit"]
    )
    key, _ = await told.gateway.new_key(limit=0.0000001, alert_thresholds=[100])
    headers = {"authorization": f"Bearer {key}"}
    assert (await told.gateway.chat(headers=headers, model="demo/chat-b")).status_code == 200
    async with asyncio.timeout(30):
        while (await told.gateway.manage("GET", f"{PLACE}/{gone}"))["data"]["enabled"]:
            await asyncio.sleep(0.05)
    told.gateway.vendor.script.always(UNAUTHORIZED)
    assert (await told.gateway.chat(model="demo/chat-b")).status_code == 502
    async with asyncio.timeout(30):
        place = "/notifications/events?type=alert.provider_key_failing"
        while not (await told.gateway.manage("GET", place))["data"]:
            await asyncio.sleep(0.05)
    await told.all_told()


async def test_each_alert_reaches_each_channel_once(told: Told) -> None:
    await money(told)
    await catalog(told)
    await node(told)
    events = await told.events()
    raised = Counter(event["type"] for event in events)
    assert raised == {
        "alert.key_limit": 2,  # one of them for the receiver that is gone
        "alert.budget_threshold": 2,
        "alert.low_balance": 1,
        "alert.auto_topup_failed": 1,
        "model.price_changed": 2,
        "model.alias_moved": 1,
        "model.unavailable": 1,
        "model.available": 1,
        "model.deprecated": 1,
        "model.retiring": 3,
        "model.retired": 1,
        "alert.ledger_quarantined": 1,
        "alert.certificate_ending": 1,
        "alert.backup_overdue": 1,
        "alert.destination_disabled": 1,
        "alert.provider_key_failing": 1,
    }
    assert set(raised) == set(samples.TYPES) - {"alert.test"}
    hooked = Counter(got.json["id"] for got in told.receiver.on("/hook"))
    assert hooked == Counter(event["id"] for event in events)
    written = Counter(_of_chat(got.json) for got in told.receiver.on("/chat"))
    assert written == _digested(raised, written)
    mailed = Counter(mail["X-GW-Event"] for mail in told.box.to(MAIL))
    assert mailed == _digested(raised, mailed)
    titles = _titles(told)
    assert titles == sorted(event["title"] for event in events)
    for got in told.receiver.on("/hook"):
        wanted = FIELDS[got.json["type"]][2] | {"organization_id"}
        assert set(got.json["data"]) == wanted, got.json["type"]


def _titles(told: Told) -> list[str]:
    """What mails tell, one by one."""
    found: list[str] = []
    for mail in told.box.to(MAIL):
        body = mail.get_body(("plain",))
        assert body is not None
        lines = body.get_content().splitlines()
        if "alerts of one kind" in mail["Subject"]:
            found += [line[2:] for line in lines if line.startswith("- ")]
        else:
            found.append(lines[0])
    return sorted(found)


def _of_chat(body: Any) -> str:
    """The type that a message names below its text."""
    context: str = body["blocks"][-1]["elements"][0]["text"]
    return context.partition(" · ")[2]


def _digested(raised: Counter[str], told: Counter[str]) -> dict[str, int]:
    """Every type was told of; those that came at one moment may be one message."""
    return {name: min(count, told[name] or 1) for name, count in raised.items()}


def _iso(days: float) -> str:
    return (START + timedelta(days=days)).isoformat().replace("+00:00", "Z")
