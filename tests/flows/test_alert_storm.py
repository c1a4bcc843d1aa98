"""A thousand requests at once that cross every threshold: each is told once, to a webhook and by mail."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gwd.core.clock import SystemClock
from gwd.orgs import members
from gwd.orgs.members import NewMember
from gwd.store import Connection
from tests.limits.price import cents
from tests.support.node import Gateway, open_gateway
from tests.support.receivers import MailBox, Receiver, open_mail_box, open_receiver

KEYS = 5
REQUESTS = 1_000
AT_ONCE = 100
PERCENTS = [50, 80, 90, 100]
PEOPLE = {"owner@acme.example", "ada@acme.example"}
SETTINGS = {
    "GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]',
    "GWD_WEBHOOKS_ALLOW_HTTP": "true",
    "GWD_SMTP_HOST": "127.0.0.1",
    "GWD_SMTP_TLS": "none",
    "GWD_SMTP_FROM": "gateway@example.com",
    "GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "1000000",
}


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with open_receiver() as made:
        yield made


@pytest.fixture
async def box() -> AsyncIterator[MailBox]:
    async with open_mail_box() as made:
        yield made


@pytest.fixture
async def gateway(
    tmp_path: Path, box: MailBox, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Gateway]:
    monkeypatch.setattr("gwd.jobs.deliveries.TOGETHER_S", 2.0)
    environment = {**SETTINGS, "GWD_SMTP_PORT": str(box.port)}
    async with open_gateway(tmp_path, credit="100", environment=environment) as made:
        yield made


async def settled(gateway: Gateway) -> list[Any]:
    """Every delivery, once none waits."""
    place = "/notifications/deliveries"
    async with asyncio.timeout(240):
        while (await gateway.manage("GET", f"{place}?status=pending"))["total_count"]:
            await asyncio.sleep(0.2)
    rows: list[Any] = []
    while True:
        page = (await gateway.manage("GET", f"{place}?limit=100&offset={len(rows)}"))["data"]
        if not page:
            return rows
        rows += page


async def test_each_threshold_of_each_window_is_told_once_and_mailed_from_80_percent(
    gateway: Gateway, receiver: Receiver, box: MailBox
) -> None:
    await gateway.manage("PATCH", "/organization/settings", {"low_balance_threshold": None})
    await gateway.store.write(_join_admin, await gateway.organization_id())
    hook = {"type": "webhook", "name": "ops", "url": receiver.url()}
    await gateway.manage("POST", "/notifications/destinations", hook)
    # One cent a request: two hundred for each key, a thousand for the organization.
    each = REQUESTS // KEYS
    keys = []
    for number in range(KEYS):
        fields: dict[str, Any] = {"name": f"key {number}", "limit": each / 100}
        if number % 2:
            fields["limit_reset"] = "daily"
        key, key_id = await gateway.new_key(**fields)
        keys.append(key)
        await gateway.manage(
            "POST",
            "/budgets",
            {
                "scope": "key",
                "scope_id": key_id,
                "interval": "lifetime",
                "kind": "soft",
                "limit": each / 100,
            },
        )
    for interval, limit in (("daily", REQUESTS / 200), ("monthly", REQUESTS / 100)):
        await gateway.manage(
            "POST",
            "/budgets",
            {
                "scope": "organization",
                "interval": interval,
                "kind": "soft",
                "limit": limit,
            },
        )
    gateway.vendor.script.always(cents(1))
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(number: int) -> int:
        async with gate:
            headers = {"authorization": f"Bearer {keys[number % KEYS]}"}
            return (await gateway.chat(headers=headers, max_tokens=10)).status_code

    statuses = Counter(await asyncio.gather(*(ask(number) for number in range(REQUESTS))))
    assert statuses == {200: REQUESTS}
    await gateway.at_rest()
    rows = await settled(gateway)
    assert {row["status"] for row in rows} == {"delivered"}
    told = Counter(_cause(got.json) for got in receiver.received)
    # No charge of one cent crosses two thresholds, so each of the four is an alert of its own.
    assert len(told) == (KEYS + KEYS + 2) * len(PERCENTS)
    assert set(told.values()) == {1}
    assert {cause[2] for cause in told} == set(PERCENTS)
    assert len({got.json["id"] for got in receiver.received}) == len(receiver.received)
    loud = Counter(
        got.json["type"] for got in receiver.received if got.json["data"]["threshold_percent"] >= 80
    )
    for person in PEOPLE:
        mailed: Counter[str] = Counter()
        for mail in box.to(person):
            mailed[mail["X-GW-Event"]] += _titles(mail)
        assert mailed == loud, person
    assert {address for address, _ in box.mails} == PEOPLE
    await gateway.verify()


def _join_admin(connection: Connection, organization_id: str) -> None:
    ada = NewMember(email="ada@acme.example", role="admin")
    members.join(connection, organization_id, ada, now_us=SystemClock().now_us())


def _cause(alert: Any) -> tuple[str, str, int]:
    data = alert["data"]
    subject = data.get("budget_id") or data["key_id"]
    return alert["type"], subject, data["threshold_percent"]


def _titles(mail: Any) -> int:
    """How many alerts a mail tells of: listed one by one, and counted where the list had to end."""
    text = mail.get_body(("plain",)).get_content()
    if "alerts of one kind" not in mail["Subject"]:
        return 1
    more = re.search(r"^and (\d+) more$", text, re.MULTILINE)
    listed = len(re.findall(r"^- ", text, re.MULTILINE))
    return listed + (int(more[1]) if more else 0)
