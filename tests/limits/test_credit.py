"""Credit over HTTP: which lot pays, what expires, what comes back, and that the numbers add up."""

import asyncio
from decimal import Decimal
from typing import Any

from gwd.demo import Behaviour
from tests.limits.conftest import Opened
from tests.limits.price import spend
from tests.limits.till import Till, decoded
from tests.limits.watch import Watch
from tests.support.node import Gateway

SLOW = Behaviour(text="fine", prompt_tokens=1_000, completion_tokens=1_000, delay_s=0.8)
CENT = Decimal("0.01")


async def credit(gateway: Gateway) -> dict[str, Any]:
    """GET /credits, whose numbers always add up."""
    found: dict[str, Any] = decoded((await gateway.operator.get("/credits")).content)["data"]
    assert found["balance"] == found["available"] + found["reserved"]
    buckets = found["promotional"] + found["granted"] + found["purchased"]
    assert buckets == max(0, found["balance"])
    assert found["currency"] == "USD"
    return found


async def grant(gateway: Gateway, kind: str, amount: float, expires_at: str | None = None) -> str:
    """A lot of credit; what its entry is called."""
    body = {"kind": kind, "amount": amount, "note": f"{kind} until {expires_at}"}
    if expires_at is not None:
        body["expires_at"] = expires_at
    made = await gateway.manage("POST", "/credits/grants", body)
    assert made["data"]["bucket"] == kind
    return str(body["note"])


async def test_promotional_pays_before_granted_before_purchased_and_what_expires_first(
    opened: Opened, watch: Watch
) -> None:
    """Promotional, then granted, then purchased, each by expiry; a charge may take from several lots (I8)."""
    async with opened() as gateway:
        till = Till(gateway)
        for kind, expires_at in (
            ("granted", None),
            ("granted", "2027-02-01T00:00:00Z"),
            ("promotional", None),
            ("promotional", "2027-03-01T00:00:00Z"),
            ("granted", "2027-01-01T00:00:00Z"),
            ("promotional", "2027-02-15T00:00:00Z"),
        ):
            await grant(gateway, kind, 0.01, expires_at)
        paid = []
        for number, buckets in ((1, 1), (3, 3), (3, 3)):
            gateway.vendor.script.next(
                Behaviour(
                    text="fine", prompt_tokens=1_000 * number, completion_tokens=1_000 * number
                )
            )
            sale = await till.buy()
            charges = [e for e in await till.entries(sale.row.id) if e["type"] == "charge"]
            assert len(charges) == buckets
            paid += [e["bucket"] for e in charges]
        assert paid == ["promotional"] * 3 + ["granted"] * 3 + ["purchased"]
        now = await credit(gateway)
        assert (now["promotional"], now["granted"], now["purchased"]) == (0, 0, 10 - CENT)
        assert await gateway.store.read(_lots_in_order_of_payment) == [
            ("promotional", "2027-02-15"),
            ("promotional", "2027-03-01"),
            ("promotional", None),
            ("granted", "2027-01-01"),
            ("granted", "2027-02-01"),
            ("granted", None),
            ("purchased", None),
        ]


def _lots_in_order_of_payment(connection: Any) -> list[tuple[str, str | None]]:
    rows = connection.rows(
        "SELECT lot.kind, date(lot.expires_at / 1000000, 'unixepoch') FROM entry JOIN lot ON lot.id = entry.lot_id"
        " WHERE entry.type = 'charge' ORDER BY entry.seq"
    )
    return [(row[0], row[1]) for row in rows]


async def test_credit_is_gone_at_its_expiry_and_not_a_moment_before(
    opened: Opened, watch: Watch
) -> None:
    async with opened(credit=None) as gateway:
        await grant(gateway, "promotional", 5, "2026-11-26T00:00:00Z")
        watch.set("2026-11-25T23:59:59.5Z")
        assert (await spend(gateway, 1)).status_code == 200
        assert (await credit(gateway))["balance"] == Decimal("4.99")
        watch.set("2026-11-26T00:00:00Z")
        now = await credit(gateway)
        assert (now["balance"], now["promotional"], now["total_credits"]) == (0, 0, 5)
        refused = await spend(gateway, 1)
        assert refused.json()["error"]["code"] == "insufficient_credits"
        await gateway.manage("POST", "/credits/purchases", {"amount": 1})
        assert (await spend(gateway, 1)).status_code == 200
        listed = await gateway.manage("GET", "/credits/ledger?type=expiry")
        assert [(e["amount"], e["bucket"]) for e in listed["data"]] == [(-4.99, "promotional")]
        assert (await credit(gateway))["balance"] == Decimal("0.99")


async def test_credit_that_a_running_request_holds_does_not_expire_under_it(
    opened: Opened, watch: Watch
) -> None:
    """Only what is free expires; what was promised at admission still pays, and the rest of it goes afterwards."""
    async with opened(credit=None) as gateway:
        till = Till(gateway)
        await grant(gateway, "promotional", 1, "2026-11-26T00:00:00Z")
        gateway.vendor.script.next(SLOW)
        running = asyncio.create_task(gateway.chat(max_tokens=2_000))
        await gateway.vendor.calls.wait_for(1)
        held = (await credit(gateway))["reserved"]
        assert CENT < held < 2 * CENT
        watch.set("2026-11-26T00:00:00Z")
        now = await credit(gateway)
        assert (now["balance"], now["available"]) == (held, 0)
        reply = await running
        await gateway.at_rest()
        row = await till.row(reply.headers["x-gw-generation-id"])
        assert await till.partial(row) == CENT
        assert [e["bucket"] for e in await till.entries(row.id)][-1] == "promotional"
        assert (await credit(gateway))["balance"] == 0
        await gateway.manage("POST", "/credits/purchases", {"amount": 1})
        assert (await spend(gateway, 1)).status_code == 200
        gone = (await gateway.manage("GET", "/credits/ledger?type=expiry"))["data"]
        assert sum(Decimal(str(e["amount"])) for e in gone) == -(1 - CENT)


async def test_only_free_purchased_credit_is_refunded(gateway: Gateway) -> None:
    """Only purchased credit that is free; a refund can take no cover from a running request and none of the gifts."""
    await grant(gateway, "promotional", 0.5)
    await grant(gateway, "granted", 0.5)
    gateway.vendor.script.next(SLOW)
    running = asyncio.create_task(gateway.chat(max_tokens=2_000))
    await gateway.vendor.calls.wait_for(1)
    everything = {"amount": 11, "note": "all of it"}
    refused = await gateway.manage("POST", "/credits/refunds", everything, status=400)
    assert refused["error"]["param"] == "amount"
    await gateway.manage("POST", "/credits/refunds", {"amount": 10, "note": "what is theirs"})
    now = await credit(gateway)
    assert (now["purchased"], now["total_credits"], now["balance"]) == (0, 1, 1)
    assert (await running).status_code == 200
    await gateway.at_rest()
    now = await credit(gateway)
    assert (now["promotional"], now["granted"]) == (Decimal("0.49"), Decimal("0.5"))
    nothing = {"amount": 0.01, "note": "more"}
    assert (await gateway.manage("POST", "/credits/refunds", nothing, status=400))["error"]


async def test_a_payment_counts_once_however_often_and_at_once_it_is_told(
    gateway: Gateway,
) -> None:
    paid = {"amount": 3, "reference": "pay_1"}
    replies = await asyncio.gather(
        *(gateway.operator.post("/credits/purchases", json=paid) for _ in range(10))
    )
    assert {reply.json()["data"]["id"] for reply in replies} == {replies[0].json()["data"]["id"]}
    headers = {"idempotency-key": "once"}
    for _ in range(3):
        reply = await gateway.operator.post(
            "/credits/purchases", json={"amount": 2}, headers=headers
        )
        assert reply.status_code == 201
    now = await credit(gateway)
    assert (now["balance"], now["total_credits"], now["purchased"]) == (15, 15, 15)


async def test_total_usage_is_what_was_ever_charged(gateway: Gateway) -> None:
    for number in (1, 2, 3):
        assert (await spend(gateway, number)).status_code == 200
    now = await credit(gateway)
    assert (now["total_usage"], now["total_credits"]) == (6 * CENT, 10)
    own = decoded((await gateway.client.get("/credits")).content)["data"]
    assert own == now, "an inference key reads the same"


async def test_what_the_balance_cannot_cover_is_refused_with_what_it_could(
    opened: Opened,
) -> None:
    """insufficient_credits names required, available, affordable_completion_tokens and top_up_url."""
    async with opened(credit=None) as gateway:
        await gateway.manage("POST", "/credits/purchases", {"amount": 0.02})
        reply = await gateway.chat()
        assert reply.status_code == 402
        error = reply.json()["error"]
        assert (error["type"], error["code"]) == (
            "insufficient_credits_error",
            "insufficient_credits",
        )
        shown = error["metadata"]
        assert set(shown) == {
            "required",
            "available",
            "affordable_completion_tokens",
            "top_up_url",
        }
        assert shown["available"] == 0.02 < shown["required"]
        assert shown["top_up_url"].endswith("/settings/credits")
        assert not gateway.vendor.calls
        affordable = shown["affordable_completion_tokens"]
        assert 1_000 < affordable < 2_500
        assert (await gateway.chat(max_tokens=affordable + 1)).status_code == 402
        assert (await gateway.chat(max_tokens=affordable)).status_code == 200


async def test_a_dearer_endpoint_is_left_out_where_only_a_cheaper_one_can_be_paid(
    opened: Opened,
) -> None:
    """One hold for the dearest target that the balance covers; 402 only if none fits."""
    async with opened(credit=None) as gateway:
        await gateway.manage("POST", "/credits/purchases", {"amount": 0.02})
        dear = {"prompt": "0.0002", "completion": "0.0008"}
        await gateway.add_endpoint(
            "demo/chat", "openai-chat", "gpt-demo-mini", pricing=dear, tag="dear"
        )
        for _ in range(3):
            reply = await gateway.chat(max_tokens=100)
            assert reply.status_code == 200
            assert gateway.vendor.calls.last.model == "gpt-demo"
            await gateway.at_rest()
