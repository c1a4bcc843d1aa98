"""Alerts on their way: real receivers, a real mail server, and a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gwd.alerts import deliveries, destinations, queue, raise_
from gwd.alerts.deliveries import DeliveryFilter, DeliveryRecord
from gwd.alerts.destinations import DestinationInput, DestinationRecord
from gwd.alerts.service import NewAlert, Severity
from gwd.channels import ChannelSender, Mailer, MailServer
from gwd.core.clock import US_PER_S
from gwd.core.errors import Conflict
from gwd.credentials.keyring import KeyRing
from gwd.credentials.vault import Vault
from gwd.jobs.deliveries import DeliveryJob
from gwd.orgs import members
from gwd.orgs.members import NewMember
from gwd.orgs.organizations import CreatedOrganization
from gwd.outbound import OutboundClient
from gwd.outbound.signature import signature
from gwd.store import Connection, Store
from tests.support import people
from tests.support.listener import LOOPBACK, answers
from tests.support.receivers import MailBox, Receiver, open_mail_box, open_receiver
from tests.support.store import NOW_US, open_store

VAULT = Vault(KeyRing(active="k1", keks={"k1": b"k" * 32}, pepper=b"p" * 32))
APP = "https://gate.example"


class StandingClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.us = NOW_US

    def now_us(self) -> int:
        return self.us

    def monotonic_s(self) -> float:
        return self.us / US_PER_S


class Scene:
    """One organization, its receivers, and the job that tells them."""

    def __init__(
        self, store: Store, receiver: Receiver, box: MailBox, made: CreatedOrganization
    ) -> None:
        self.store, self.receiver, self.box = store, receiver, box
        self.clock = StandingClock()
        self.made = made
        self.organization_id = made.organization.id
        self.tasks: list[asyncio.Task[None]] = []
        self.job = self.new_job()

    def new_job(self) -> DeliveryJob:
        """A job as after a restart: it remembers nothing."""
        mailer = Mailer(
            MailServer(host="127.0.0.1", port=self.box.port, tls="none", sender="gw@gate.example")
        )
        sender = ChannelSender(
            self.store,
            OutboundClient(LOOPBACK, user_agent="gwd/test", resolver=answers("127.0.0.1")),
            VAULT,
            mailer,
            self.clock,
            app_url=APP,
        )
        return DeliveryJob(self.store, sender, self.clock, app_url=APP, spawn=self.spawn)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def tick(self, *, seconds: float = 0.0) -> None:
        """Move the clock, run the job once, and wait for what it began."""
        self.clock.us += int(seconds * US_PER_S)
        await self.job.run()
        await asyncio.gather(*self.tasks)
        self.tasks.clear()

    async def add(self, **fields: Any) -> tuple[DestinationRecord, str | None]:
        """A destination and its secret."""
        body = DestinationInput(**{"type": "webhook", "name": "ops", **fields})
        made = await self.store.write(
            destinations.create,
            VAULT,
            self.organization_id,
            body,
            rules=LOOPBACK,
            sends_mail=True,
            now_us=self.clock.us,
        )
        return made.record, made.secret

    async def alert(self, number: int = 1, **fields: Any) -> str | None:
        """One alert that tells of itself."""
        return await self.store.write(
            raise_, self.organization_id, new_alert(number, **fields), now_us=self.clock.us
        )

    async def switch(self, record: DestinationRecord, *, enabled: bool) -> None:
        await self.store.write(
            destinations.switch,
            self.organization_id,
            record.id,
            enabled=enabled,
            now_us=self.clock.us,
        )

    async def delete(self, record: DestinationRecord) -> None:
        await self.store.write(
            destinations.delete, self.organization_id, record.id, now_us=self.clock.us
        )

    async def redeliver(self, delivery_id: str) -> DeliveryRecord:
        return await self.store.write(
            deliveries.redeliver, self.organization_id, delivery_id, now_us=self.clock.us
        )

    async def destination(self, destination_id: str) -> DestinationRecord:
        return await self.store.read(destinations.get, self.organization_id, destination_id)

    async def deliveries(self, **wanted: Any) -> list[DeliveryRecord]:
        """What is on record, oldest first."""
        rows, _ = await self.store.read(
            deliveries.list_,
            self.organization_id,
            DeliveryFilter(**wanted),
            limit=1_000,
            offset=0,
        )
        return [deliveries.record(row) for row in rows][::-1]


def new_alert(
    number: int = 1, *, severity: Severity = "info", title: str = "", type_: str = "model.available"
) -> NewAlert:
    return NewAlert(
        category="model_availability",
        type=type_,
        severity=severity,
        title=title or f"Alert {number}",
        message=f"What happened, number {number}.",
        url=f"{APP}/models/demo/chat",
        data={"number": number},
    )


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    def begin(connection: Connection) -> None:
        found.append(people.organization(connection))

    found: list[CreatedOrganization] = []
    async with (
        open_store(tmp_path, begin) as store,
        open_receiver() as receiver,
        open_mail_box() as box,
    ):
        yield Scene(store, receiver, box, found[0])


async def test_a_webhook_is_signed_over_the_bytes_that_are_sent(scene: Scene) -> None:
    record, secret = await scene.add(url=scene.receiver.url())
    assert secret is not None
    assert record.secret_hint == f"…{secret[-4:]}"
    event_id = await scene.alert(severity="critical")
    await scene.tick()
    [got] = scene.receiver.received
    [delivery] = await scene.deliveries()
    assert got.headers["x-gw-event"] == "model.available"
    assert got.headers["x-gw-delivery-id"] == delivery.id
    assert got.headers["content-type"] == "application/json"
    timestamp = int(got.headers["x-gw-timestamp"])
    assert timestamp == scene.clock.us // US_PER_S
    assert got.headers["x-gw-signature"] == signature(secret, timestamp, got.body)
    assert got.json["id"] == event_id
    assert set(got.json) == {
        *("id", "type", "severity", "title", "message", "url", "data"),
        *("organization_id", "created_at"),
    }
    assert (delivery.status, delivery.response_status, delivery.attempt) == ("delivered", 204, 1)


async def test_the_schedule_signs_anew_and_the_fifth_failure_disables_and_mails_the_owner(
    scene: Scene,
) -> None:
    record, _ = await scene.add(url=scene.receiver.url())
    await scene.add(name="other", url=scene.receiver.url("/other"))
    scene.receiver.answer = lambda got: b"500 Broken" if got.path == "/hook" else b"200 OK"
    await scene.alert(1)
    await scene.tick()
    await scene.alert(2)  # in the bad minute: it waits behind the first
    for place, wait_s in enumerate(queue.WAITS_S):
        await scene.tick(seconds=wait_s * 0.8)
        assert len(scene.receiver.on("/hook")) == place + 1
        await scene.tick(seconds=wait_s * 0.4)
        assert len(scene.receiver.on("/hook")) == place + 2
    tried = scene.receiver.on("/hook")
    assert {got.json["data"]["number"] for got in tried} == {1}
    assert len({got.headers["x-gw-delivery-id"] for got in tried}) == 1
    assert len({got.headers["x-gw-signature"] for got in tried}) == 5
    found = await scene.destination(record.id)
    assert (found.enabled, found.consecutive_failures) == (False, 5)
    assert "500" in (found.disabled_reason or "")
    await scene.tick(seconds=1)
    [told] = [g for g in scene.receiver.on("/other") if g.json["type"].startswith("alert.")]
    assert told.json["type"] == "alert.destination_disabled"
    assert told.json["data"]["destination_id"] == record.id
    [mail] = scene.box.to("owner@acme.example")
    assert mail["Subject"] == "The webhook destination ops is disabled"
    # What waited is kept, and goes out when somebody enables the destination.
    assert [d.status for d in await scene.deliveries(destination_id=record.id)] == [
        "failed",
        "pending",
    ]
    scene.receiver.answer = lambda _: b"200 OK"
    await scene.tick(seconds=3_600)
    assert len(scene.receiver.on("/hook")) == 5
    await scene.switch(record, enabled=True)
    await scene.tick()
    assert scene.receiver.on("/hook")[-1].json["data"]["number"] == 2
    assert (await scene.destination(record.id)).consecutive_failures == 0


async def test_a_burst_in_a_short_outage_does_not_disable(scene: Scene) -> None:
    record, _ = await scene.add(url=scene.receiver.url())
    scene.receiver.answer = lambda _: b"503 Busy"
    for number in range(20):
        await scene.alert(number)
    await scene.tick()
    await scene.tick()
    assert len(scene.receiver.received) == 1
    scene.receiver.answer = lambda _: b"200 OK"
    await scene.tick(seconds=6)
    numbers = [got.json["data"]["number"] for got in scene.receiver.received[1:]]
    assert numbers == list(range(20))
    assert (await scene.destination(record.id)).enabled


async def test_retry_after_is_kept_where_it_is_longer(scene: Scene) -> None:
    await scene.add(url=scene.receiver.url())
    scene.receiver.answer = lambda _: b"429 Slow\r\nretry-after: 120"
    await scene.alert()
    await scene.tick()
    await scene.tick(seconds=100)
    assert len(scene.receiver.received) == 1
    await scene.tick(seconds=21)
    assert len(scene.receiver.received) == 2


async def test_gone_disables_at_once(scene: Scene) -> None:
    record, _ = await scene.add(url=scene.receiver.url())
    scene.receiver.answer = lambda _: b"410 Gone"
    await scene.alert()
    await scene.tick()
    assert not (await scene.destination(record.id)).enabled
    await scene.tick(seconds=9_000)
    assert len(scene.receiver.received) == 1


async def test_a_redirect_is_not_followed(scene: Scene) -> None:
    await scene.add(url=scene.receiver.url())
    scene.receiver.answer = lambda _: b"307 Elsewhere\r\nlocation: /elsewhere"
    await scene.alert()
    await scene.tick()
    assert scene.receiver.on("/elsewhere") == []
    [delivery] = await scene.deliveries()
    assert "not followed" in (delivery.error or "")


async def test_a_receiver_that_hangs_holds_up_nobody_else(scene: Scene) -> None:
    await scene.add(name="slow", url=scene.receiver.url("/slow"))
    await scene.add(name="quick", url=scene.receiver.url("/quick"))
    scene.receiver.hangs.add("/slow")
    for number in range(5):
        await scene.alert(number)
    await scene.job.run()
    async with asyncio.timeout(10):
        while len(scene.receiver.on("/quick")) < 5:
            await asyncio.sleep(0.01)
            await scene.job.run()
    assert len(scene.receiver.on("/slow")) == 1
    for task in scene.tasks:
        task.cancel()
    await asyncio.gather(*scene.tasks, return_exceptions=True)


async def test_what_is_older_than_three_days_is_closed_and_not_sent(scene: Scene) -> None:
    await scene.add(url=scene.receiver.url())
    await scene.alert()
    await scene.tick(seconds=3 * 86_400 + 1)
    assert scene.receiver.received == []
    [delivery] = await scene.deliveries()
    assert (delivery.status, delivery.error) == ("expired", queue.EXPIRED)


async def test_people_are_told_many_of_a_kind_in_one_message(scene: Scene) -> None:
    await scene.add(type="email", name="ops", address="ops@acme.example")
    await scene.add(type="chat", name="room", url=scene.receiver.url("/chat"))
    for number in range(30):
        await scene.alert(number)
    await scene.tick()
    await scene.alert(30)
    await scene.alert(31)
    await scene.tick(seconds=20)
    await scene.tick(seconds=20)
    [mail] = scene.box.to("ops@acme.example")
    assert mail["Subject"] == "30 alerts of one kind: Alert 0 …"
    body = mail.get_body(("plain",))
    assert body is not None
    assert "and 10 more" in body.get_content()
    await scene.tick(seconds=21)
    assert [m["Subject"] for m in scene.box.to("ops@acme.example")][1:] == [
        "2 alerts of one kind: Alert 30 …"
    ]
    assert len(scene.receiver.on("/chat")) == 2
    assert {d.status for d in await scene.deliveries()} == {"delivered"}


async def test_a_category_that_is_muted_or_below_the_severity_is_not_told(scene: Scene) -> None:
    await scene.add(name="loud", url=scene.receiver.url("/loud"))
    await scene.add(name="calm", url=scene.receiver.url("/calm"), min_severity="critical")
    await scene.add(name="money", url=scene.receiver.url("/money"), events=["low_balance"])
    await scene.alert(severity="warning")
    await scene.tick()
    assert [got.path for got in scene.receiver.received] == ["/loud"]


async def test_nothing_that_a_user_typed_is_markup(scene: Scene) -> None:
    await scene.add(type="email", name="ops", address="ops@acme.example")
    await scene.add(type="chat", name="slack", url=scene.receiver.url("/slack"))
    await scene.add(type="chat", name="teams", url=scene.receiver.url("/teams"), format="teams")
    nasty = 'Key <!channel> & <img src=x onerror="a()">\r\nBcc: all@acme.example [x](http://evil)'
    await scene.alert(title=nasty)
    await scene.tick()
    [mail] = scene.box.to("ops@acme.example")
    assert "\n" not in mail["Subject"]
    assert mail["Bcc"] is None
    html = mail.get_body(("html",))
    assert html is not None
    assert "<img" not in html.get_content()
    [slack] = scene.receiver.on("/slack")
    text = slack.json["text"]
    assert "<!channel>" not in text
    assert "&lt;!channel&gt; &amp;" in text
    [teams] = scene.receiver.on("/teams")
    card = teams.json["attachments"][0]["content"]
    # Only a TextBlock reads Markdown; what a run of text holds is shown as it stands.
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert "[x](http://evil)" in card["body"][0]["inlines"][0]["text"]


async def test_mail_without_a_server_says_which_setting(scene: Scene) -> None:
    scene.job._sender._mailer = None
    await scene.store.write(
        members.join,
        scene.organization_id,
        NewMember(email="ada@acme.example", role="admin"),
        now_us=scene.clock.us,
    )
    alert = msgspec.structs.replace(new_alert(), category="provider_key")
    await scene.store.write(raise_, scene.organization_id, alert, now_us=scene.clock.us)
    await scene.tick()
    found = await scene.deliveries()
    assert {d.status for d in found} == {"failed"}
    assert all("[smtp] host" in (d.error or "") for d in found)


async def test_a_refused_mail_address_is_tried_again_and_given_up(scene: Scene) -> None:
    record, _ = await scene.add(type="email", name="ops", address="ops@acme.example")
    scene.box.refuses.add("ops@acme.example")
    await scene.alert()
    await scene.tick()
    for wait_s in queue.WAITS_S:
        await scene.tick(seconds=wait_s * 1.2)
    [delivery] = await scene.deliveries(destination_id=record.id)
    assert (delivery.status, delivery.attempt, delivery.response_status) == ("failed", 5, 550)
    assert not (await scene.destination(record.id)).enabled


async def test_an_overlap_signs_with_both_secrets_and_then_with_the_new_one(scene: Scene) -> None:
    record, old = await scene.add(url=scene.receiver.url())
    made = await scene.store.write(
        destinations.rotate_secret,
        VAULT,
        scene.organization_id,
        record.id,
        overlap_s=3_600,
        now_us=scene.clock.us,
    )
    assert old is not None
    assert made.secret is not None
    await scene.alert()
    await scene.tick()
    got = scene.receiver.received[-1]
    stamp = int(got.headers["x-gw-timestamp"])
    both = f"{signature(made.secret, stamp, got.body)},{signature(old, stamp, got.body)}"
    assert got.headers["x-gw-signature"] == both
    await scene.alert()
    await scene.tick(seconds=3_601)
    got = scene.receiver.received[-1]
    stamp = int(got.headers["x-gw-timestamp"])
    assert got.headers["x-gw-signature"] == signature(made.secret, stamp, got.body)


async def test_what_was_in_flight_when_the_node_died_is_sent_again_with_the_same_ids(
    scene: Scene,
) -> None:
    await scene.add(url=scene.receiver.url())
    scene.receiver.hangs.add("/hook")
    await scene.alert()
    await scene.job.run()
    async with asyncio.timeout(10):
        while not scene.receiver.received:
            await asyncio.sleep(0.01)
    for task in scene.tasks:
        task.cancel()
    await asyncio.gather(*scene.tasks, return_exceptions=True)
    scene.tasks.clear()
    scene.receiver.hangs.clear()
    scene.job = scene.new_job()
    await scene.tick()
    first, second = scene.receiver.received
    assert first.json["id"] == second.json["id"]
    assert first.headers["x-gw-delivery-id"] == second.headers["x-gw-delivery-id"]


async def test_an_alert_is_sent_again_by_choice(scene: Scene) -> None:
    record, _ = await scene.add(url=scene.receiver.url())
    for number in range(3):
        await scene.alert(number)
    await scene.tick()
    wanted = DeliveryFilter(destination_id=record.id, status="delivered")
    count = await scene.store.write(
        deliveries.redeliver_range, scene.organization_id, wanted, now_us=scene.clock.us
    )
    await scene.tick()
    ids = [got.json["id"] for got in scene.receiver.received]
    assert (count, len(ids)) == (3, 6)
    assert ids[:3] == ids[3:]
    assert len({got.headers["x-gw-delivery-id"] for got in scene.receiver.received}) == 6


async def test_sending_again_waits_for_a_disabled_destination_and_not_for_a_deleted_one(
    scene: Scene,
) -> None:
    record, _ = await scene.add(url=scene.receiver.url())
    await scene.alert()
    await scene.tick()
    [sent] = await scene.deliveries()
    await scene.switch(record, enabled=False)
    again = await scene.redeliver(sent.id)
    await scene.tick()
    assert await scene.store.read(queue.due, now_us=scene.clock.us) == []
    assert (again.status, len(scene.receiver.received)) == ("pending", 1)
    await scene.switch(record, enabled=True)
    await scene.tick()
    assert len(scene.receiver.received) == 2
    await scene.delete(record)
    with pytest.raises(Conflict, match="deleted"):
        await scene.redeliver(sent.id)


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_an_attempt_that_fails_while_its_destination_goes_leaves_nothing_due(
    scene: Scene, *, is_deleted: bool
) -> None:
    record, _ = await scene.add(url=scene.receiver.url())
    await scene.alert()
    message = await scene.store.read(queue.next_message, record.id, held=(), now_us=scene.clock.us)
    assert message is not None
    await (scene.delete(record) if is_deleted else scene.switch(record, enabled=False))
    await scene.store.write(
        queue.note,
        message,
        queue.Outcome(error="the receiver answered 500", response_status=500),
        jitter=0.0,
        app_url=APP,
        now_us=scene.clock.us,
    )
    [delivery] = await scene.deliveries()
    assert delivery.next_attempt_at is None
    assert delivery.status == ("failed" if is_deleted else "pending")
    assert (delivery.finished_at is not None) == is_deleted


async def test_mail_is_sent_again_to_members_only(scene: Scene) -> None:
    member = await scene.store.write(
        members.join,
        scene.organization_id,
        NewMember(email="ada@acme.example", role="admin"),
        now_us=scene.clock.us,
    )
    lost = msgspec.structs.replace(new_alert(), category="provider_key")
    await scene.store.write(raise_, scene.organization_id, lost, now_us=scene.clock.us)
    await scene.tick()
    [sent] = [d for d in await scene.deliveries() if d.recipient == "ada@acme.example"]
    await scene.redeliver(sent.id)
    await scene.tick(seconds=61)
    assert len(scene.box.to("ada@acme.example")) == 2
    await scene.store.write(
        members.remove,
        scene.organization_id,
        member.id,
        actor=people.caller(scene.made, "owner"),
        now_us=scene.clock.us,
    )
    with pytest.raises(Conflict, match="no member"):
        await scene.redeliver(sent.id)
