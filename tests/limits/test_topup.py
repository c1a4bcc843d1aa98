"""Automatic top-up of a running node, with a receiver that checks what it gets, and the alert auto_topup."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from gwd import wiring
from tests.limits.conftest import Opened
from tests.limits.price import spend
from tests.limits.raised_alerts import RaisedAlert, raised_alerts
from tests.limits.watch import Watch
from tests.support.listener import Listener, listener
from tests.support.node import Gateway

__all__ = ["listener"]

ALLOWED = {
    "GWD_WEBHOOKS_ALLOW_NETWORKS": "127.0.0.0/8",
    "GWD_WEBHOOKS_ALLOW_HTTP": "true",
}
BUSY = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"
DECLINED = b"HTTP/1.1 402 Declined\r\ncontent-length: 0\r\n\r\n"


class Hook:
    """The payment hook of one organization: what it was asked, each call checked like a receiver should."""

    def __init__(self, gateway: Gateway, listener: Listener, watch: Watch) -> None:
        self.gateway = gateway
        self.listener = listener
        self.watch = watch
        self.secret = ""

    async def set_up(self, **fields: Any) -> None:
        body = {
            "enabled": True,
            "threshold": 9.9,
            "amount": 5,
            "hook_url": f"http://127.0.0.1:{self.listener.port}/pay",
            **fields,
        }
        made = await self.gateway.manage("PATCH", "/credits/auto-topup", body)
        self.secret = made["signing_secret"]

    async def calls(self, count: int) -> list[dict[str, Any]]:
        """That many calls came and no more: their bodies, with the headers that name and sign them."""
        async with asyncio.timeout(10):
            while len(self.listener.requests) < count:
                await asyncio.sleep(0.02)
        await self.settled()
        assert len(self.listener.requests) == count
        return [self._checked(request) for request in self.listener.requests]

    async def settled(self) -> None:
        """The job has looked again since."""
        await asyncio.sleep(0.3)

    async def state(self) -> Any:
        return (await self.gateway.manage("GET", "/credits/auto-topup"))["data"]["last_attempt"]

    def _checked(self, request: bytes) -> dict[str, Any]:
        head, _, body = request.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        assert lines[0] == "POST /pay HTTP/1.1"
        sent = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])
        }
        signed = f"{sent['x-gw-timestamp']}.".encode() + body
        mac = hmac.new(self.secret.encode(), signed, hashlib.sha256).hexdigest()
        assert sent["x-gw-signature"] == f"v1={mac}"
        assert sent["x-gw-event"] == "topup.requested"
        asked: dict[str, Any] = json.loads(body)
        assert sent["idempotency-key"] == asked["id"]
        return asked | {"timestamp": int(sent["x-gw-timestamp"])}


@pytest.fixture
async def hook(
    opened: Opened, watch: Watch, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Hook]:
    monkeypatch.setattr(wiring, "TOPUP_S", 0.05)
    async with opened(**ALLOWED) as gateway:
        yield Hook(gateway, listener, watch)


async def balance(gateway: Gateway) -> Decimal:
    return Decimal(str((await gateway.manage("GET", "/credits"))["data"]["balance"]))


async def failures(hook: Hook) -> list[RaisedAlert]:
    return await raised_alerts(hook.gateway, "auto_topup")


async def test_a_charge_below_the_threshold_buys_credit_once(hook: Hook) -> None:
    gateway = hook.gateway
    await hook.set_up()
    assert (await spend(gateway, 10)).status_code == 200
    await hook.settled()
    assert await hook.calls(0) == [], "9.90 is not below 9.90"
    assert (await spend(gateway, 1)).status_code == 200
    [asked] = await hook.calls(1)
    assert asked["amount"] == 5
    assert (asked["type"], asked["currency"], asked["attempt"]) == ("topup.requested", "USD", 1)
    assert asked["created_at"].startswith("2026-11-25T12:00")
    assert await balance(gateway) == Decimal("14.89")
    [bought, _] = (await gateway.manage("GET", "/credits/ledger?type=purchase"))["data"]
    assert (bought["amount"], bought["bucket"]) == (5, "purchased")
    assert bought["reference"] == asked["id"]
    state = await hook.state()
    assert (state["status"], state["error"]) == ("succeeded", None)
    for _ in range(3):
        assert (await spend(gateway, 1)).status_code == 200
    await hook.calls(1)
    assert await failures(hook) == []


async def test_credit_that_is_low_already_is_bought_when_top_up_is_switched_on(
    hook: Hook,
) -> None:
    await hook.set_up(threshold=12)
    await hook.calls(1)
    assert await balance(hook.gateway) == 15


async def test_the_monthly_cap_ends_buying_until_the_next_month(hook: Hook) -> None:
    gateway = hook.gateway
    await hook.set_up(threshold=100, amount=4, monthly_cap=9)
    for _ in range(4):
        assert (await spend(gateway, 1)).status_code == 200
        await hook.settled()
    await hook.calls(2)
    assert await balance(gateway) == 18 - Decimal("0.04")
    hook.watch.set("2026-12-01T00:00:00Z")
    for count in (3, 4, 4):
        assert (await spend(gateway, 1)).status_code == 200
        await hook.calls(count)
    assert await balance(gateway) == 26 - Decimal("0.07")


async def test_each_failed_try_is_told_once_with_the_time_of_the_next(hook: Hook) -> None:
    """The same attempt is tried after 1, 5 and 30 minutes with the same key and a fresh signature."""
    gateway, watch = hook.gateway, hook.watch
    hook.listener.answer = BUSY
    await hook.set_up()
    assert (await spend(gateway, 11)).status_code == 200
    await hook.calls(1)
    assert (await hook.state())["status"] == "retrying"
    for tries, gap_s in ((2, 60), (3, 300), (4, 1_800)):
        alerts = await failures(hook)
        assert len(alerts) == tries - 1
        assert alerts[-1].data["next_attempt_at"] is not None
        watch.pass_by(gap_s - 30)
        await hook.settled()
        assert len(hook.listener.requests) == tries - 1
        watch.pass_by(31)
        await hook.calls(tries)
    asked = await hook.calls(4)
    assert len({one["id"] for one in asked}) == 1
    assert [one["attempt"] for one in asked] == [1, 2, 3, 4]
    assert len({one["timestamp"] for one in asked}) == 4
    alerts = await failures(hook)
    assert [one.data["attempt"] for one in alerts] == [1, 2, 3, 4]
    last = alerts[-1]
    assert (last.type, last.severity) == ("alert.auto_topup_failed", "critical")
    assert last.recipients == ("owner@acme.example",)
    assert last.data == {
        "organization_id": last.data["organization_id"],
        "amount": 5,
        "threshold": Decimal("9.9"),
        "balance": Decimal("9.89"),
        "attempt": 4,
        "reason": "the hook answered 503",
        "next_attempt_at": None,
    }
    assert (await hook.state())["status"] == "failed"
    # For an hour nothing is tried, however much is spent; then the next request begins anew.
    assert (await spend(gateway, 1)).status_code == 200
    await hook.calls(4)
    watch.pass_by(3_601)
    hook.listener.answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    assert (await spend(gateway, 1)).status_code == 200
    asked = await hook.calls(5)
    assert asked[4]["id"] != asked[0]["id"]
    assert await balance(gateway) == Decimal("14.87")
    assert len(await failures(hook)) == 4


async def test_a_clear_no_is_told_and_not_asked_again(hook: Hook) -> None:
    hook.listener.answer = DECLINED
    await hook.set_up()
    for _ in range(2):
        assert (await spend(hook.gateway, 11)).status_code == 200
    await hook.calls(1)
    [alert] = await failures(hook)
    assert (alert.data["reason"], alert.data["next_attempt_at"]) == ("the hook answered 402", None)
    hook.watch.pass_by(1_800)
    await hook.calls(1)


async def test_changed_settings_are_tried_at_once_after_a_failure(hook: Hook) -> None:
    hook.listener.answer = DECLINED
    await hook.set_up()
    assert (await spend(hook.gateway, 11)).status_code == 200
    await hook.calls(1)
    hook.listener.answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    await hook.gateway.manage("PATCH", "/credits/auto-topup", {"amount": 6})
    asked = await hook.calls(2)
    assert asked[1]["amount"] == 6
    assert await balance(hook.gateway) == Decimal("15.89")


async def test_a_refused_request_begins_a_top_up_where_no_charge_can(hook: Hook) -> None:
    """Credit that was refunded or has expired leaves nothing to charge, so nothing else would ever begin one."""
    gateway = hook.gateway
    await hook.set_up()
    await gateway.manage("POST", "/credits/refunds", {"amount": 10, "note": "out"})
    await hook.calls(0)
    assert (await gateway.chat(max_tokens=10)).status_code == 402
    await hook.calls(1)
    assert (await gateway.chat(max_tokens=10)).status_code == 200


async def test_switched_off_nothing_is_bought(hook: Hook) -> None:
    await hook.set_up(enabled=False)
    assert (await spend(hook.gateway, 50)).status_code == 200
    await hook.calls(0)
