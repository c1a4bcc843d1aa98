"""Statements of a node with a history: they stay as they are, or are not shown; who reads which, and of which month."""

import json
from datetime import UTC, datetime
from typing import Any, get_args

import httpx
import msgspec
import pytest

from gwd import ledger
from gwd.core.clock import US_PER_DAY
from gwd.ledger import CREDIT_TYPES, EntryType
from gwd.management.statements import statement
from gwd.store import Connection
from tests.flows.clock import MovableClock
from tests.flows.conftest import Opened
from tests.support.node import Gateway
from tests.support.own_keys import attach

JANUARY = datetime(2032, 1, 30, tzinfo=UTC)
FEBRUARY = datetime(2032, 2, 3, tzinfo=UTC)


async def read(gateway: Gateway, month: str, **query: str) -> httpx.Response:
    return await gateway.operator.get(f"/statements/{month}", params=query)


async def shown(gateway: Gateway, month: str, **query: str) -> Any:
    reply = await read(gateway, month, **query)
    assert reply.status_code == 200, reply.text
    return reply.json()["data"]


def moved(found: Any) -> dict[str, int]:
    """How many entries of each type a statement has, where there are any."""
    return {each["type"]: each["entries"] for each in found["movements"] if each["entries"]}


def test_every_entry_that_is_no_requests_has_a_line():
    of_requests = {"reservation", "settlement", "release", "charge"}
    assert set(CREDIT_TYPES) | of_requests == set(get_args(EntryType))
    assert not set(CREDIT_TYPES) & of_requests


async def test_two_months_with_all_that_moves_credit(opened: Opened, clock: MovableClock) -> None:
    """The node's end adds up every month again, from entries and records."""
    clock.set(JANUARY)
    async with opened(clock) as gateway:
        grant = {"kind": "promotional", "amount": 1, "expires_at": "2032-02-02T00:00:00Z"}
        await gateway.manage("POST", "/credits/grants", grant)
        await gateway.manage("POST", "/credits/purchases", {"amount": 5})
        await gateway.manage("POST", "/credits/refunds", {"amount": 0.5, "note": "sent back"})
        key, key_id = await gateway.new_key()
        old = {"authorization": f"Bearer {key}"}
        assert (await gateway.chat(headers=old)).status_code == 200
        await gateway.at_rest()
        rotated = await gateway.manage("POST", f"/keys/{key_id}/rotate", {"overlap": "1h"})
        new = {"authorization": f"Bearer {rotated['key']}"}
        assert (await gateway.chat(headers=new)).status_code == 200
        await attach(gateway)
        assert (await gateway.chat(headers=new)).status_code == 200
        await gateway.at_rest()
        running = await shown(gateway, "2032-01")
        assert running["closed"] is False
        clock.wait_until(FEBRUARY)
        assert (await gateway.chat()).status_code == 200
        await gateway.at_rest()
        now_us = clock.now_us()
        owner = await gateway.organization_id()
        await gateway.store.write(ledger.expire, owner, now_us=now_us, due_us=now_us)
        before = await shown(gateway, "2032-01")
        gone = await gateway.operator.delete(f"/keys/{rotated['data']['id']}")
        assert gone.status_code in (200, 204)
        after = await shown(gateway, "2032-01")
        assert {**before, "read_at": ""} == {**after, "read_at": ""}
        assert (after["closed"], moved(after)["refund"]) == (True, 1)
        (family,) = after["keys"]
        assert (family["requests"], len(family["key_ids"])) == (3, 2)
        assert [each["byok"] for each in after["models"]] == [False, True]
        february = await shown(gateway, "2032-02")
        assert moved(february) == {"expiry": 1}
        assert february["opening_balance"] == after["closing_balance"]
        assert february["charges"]["requests"] == 1


async def test_two_readings_a_year_apart_are_the_same(gateway: Gateway) -> None:
    assert (await gateway.chat()).status_code == 200
    await gateway.at_rest()
    owner = await gateway.organization_id()
    now_us = gateway.running.node.clock.now_us()
    month = datetime.fromtimestamp(now_us // 1_000_000, UTC).strftime("%Y-%m")

    def reading(connection: Connection, days: int) -> dict[str, Any]:
        at_us = now_us + days * US_PER_DAY
        found = statement(connection, owner, month, now_us=at_us, due_us=at_us)
        encoded: dict[str, Any] = json.loads(msgspec.json.encode(found))
        return encoded

    first, second = [await gateway.store.read(reading, days) for days in (40, 405)]
    assert first.pop("read_at") != second.pop("read_at")
    assert first["closed"] is True
    assert json.dumps(first) == json.dumps(second)


async def test_what_does_not_add_up_is_not_shown(gateway: Gateway) -> None:
    assert (await gateway.chat()).status_code == 200
    await gateway.at_rest()
    month = datetime.now(UTC).strftime("%Y-%m")
    await shown(gateway, month)

    def change(connection: Connection, nano: int) -> None:
        connection.execute("UPDATE day_sum SET charged_nano = charged_nano + ?", (nano,))

    await gateway.store.write(change, 1)
    reply = await read(gateway, month)
    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "statement_mismatch")
    assert gateway.running.node.counters.statement_mismatches == 1
    await gateway.store.write(change, -1)
    await shown(gateway, month)


@pytest.mark.parametrize(
    ("month", "status"),
    [("2026-1", 400), ("2026-13", 400), ("november", 400), ("9999-12", 400), ("1999-12", 404)],
)
async def test_a_month_that_is_none(gateway: Gateway, month: str, status: int) -> None:
    reply = await read(gateway, month)
    assert reply.status_code == status
    assert (
        month in reply.json()["error"]["message"] or "YYYY-MM" in reply.json()["error"]["message"]
    )


async def test_an_operator_names_another_organization(gateway: Gateway) -> None:
    made = await gateway.manage(
        "POST", "/organizations", {"name": "globex", "owner_email": "owner@globex.example"}
    )
    other = made["data"]["id"]
    month = datetime.now(UTC).strftime("%Y-%m")
    found = await shown(gateway, month, organization_id=other)
    assert (found["organization_id"], found["closing_balance"]) == (other, 0)
    own = await gateway.organization_id()
    headers = {"authorization": f"Bearer {made['management_key']}"}
    refused = await gateway.client.get(
        f"/statements/{month}", params={"organization_id": own}, headers=headers
    )
    assert refused.status_code == 403
