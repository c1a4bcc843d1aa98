"""Requests on an organization's own vendor keys: only the fee is charged, to the nano, and every side says the same."""

import asyncio
import random
import shutil
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import pytest

from gwd import proof
from gwd.activity.row import GenerationRow
from gwd.demo import Behaviour
from gwd.node.backup import backup
from gwd.spend import totals
from gwd.store import Connection
from tests.limits.conftest import Opened
from tests.limits.price import bearer, cents, spend
from tests.limits.till import NANO, Till, bill, request
from tests.limits.watch import Watch
from tests.support.node import PRICES, Gateway, Nodes
from tests.support.own_keys import OWN, attach, change, secrets_sent, set_fee
from tests.vendor import StrictVendor

DIALECTS = ("chat", "messages", "responses", "gemini", "completions", "embeddings")
PLATFORM = "sk-demo-0000"
REFUSED = Behaviour(status=401, message="Incorrect API key provided")


def fee(list_price: Decimal, percent: str) -> Decimal:
    """The fee of a list price, rounded down to a nano."""
    return (list_price * Decimal(percent) / 100).quantize(NANO, ROUND_FLOOR)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_side_names_the_fee_and_the_list_price(
    till: Till, dialect: str, *, stream: bool
) -> None:
    gateway, stream = till.gateway, stream and dialect != "embeddings"
    for provider in ("openai-chat", "openai-embeddings"):
        await attach(gateway, provider=provider)
    await set_fee(gateway, 7.25)
    sale = await till.buy(dialect, stream=stream)
    prices = {"prompt": "0.0000001"} if dialect == "embeddings" else PRICES
    list_price = bill(sale.row, prices)
    assert sale.total == fee(list_price, "7.25")
    cost = sale.receipt["cost"]
    assert (cost["byok"], cost["platform_fee"]) == (True, sale.total)
    assert sale.row.byok
    record = await till.record(sale.row.id)
    assert (record["is_byok"], record["upstream_inference_cost"]) == (True, list_price)
    assert sale.usage["is_byok"] is True
    assert sale.usage["cost_details"]["upstream_inference_cost"] == list_price
    assert secrets_sent(gateway) == [OWN]


@pytest.mark.parametrize(("percent", "list_nano", "charged_nano"), [
    (0, 12_345, 0), (0.01, 9_999, 0), (0.01, 10_000, 1), (5, 19, 0), (5, 20, 1), (100, 12_345, 12_345),
])  # fmt: skip
async def test_a_fee_is_rounded_down_to_a_nano(
    till: Till, percent: float, list_nano: int, charged_nano: int
) -> None:
    gateway = till.gateway
    await attach(gateway)
    await set_fee(gateway, percent)
    pricing = {"prompt": "0", "completion": "0.000000001"}
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"pricing": pricing, "accept": True})
    gateway.vendor.script.next(Behaviour(text="fine", completion_tokens=list_nano))
    sale = await till.buy(max_tokens=16_000)
    assert sale.row.cost_completion_nano == list_nano
    assert sale.total == charged_nano * NANO


async def test_without_a_fee_an_own_key_serves_although_there_is_no_credit(opened: Opened) -> None:
    async with opened(credit=None) as gateway:
        await attach(gateway, is_required=True)
        await set_fee(gateway, 0)
        assert (await gateway.chat()).status_code == 200
        await set_fee(gateway, 5)
        assert (await gateway.chat()).status_code == 402
        await gateway.verify()


async def test_the_hold_covers_the_platform_s_fallback_unless_the_own_key_is_required(
    till: Till,
) -> None:
    gateway = till.gateway
    plain = await till.buy(max_tokens=1_000)
    held = [-e["amount"] for e in await till.entries(plain.row.id) if e["type"] == "reservation"]
    key_id = await attach(gateway)
    both = await till.buy(max_tokens=1_000)
    await change(gateway, key_id, is_required=True)
    required = await till.buy(max_tokens=1_000)
    for sale, expected in ((both, held[0]), (required, fee(held[0], "5"))):
        entries = await till.entries(sale.row.id)
        assert [-e["amount"] for e in entries if e["type"] == "reservation"] == [expected]
        assert sale.receipt["cost"]["byok"] is True


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (REFUSED, "auth_invalid"),
        (Behaviour(status=429, retry_after="20"), "rate_limited"),
        (Behaviour(status=402, message="Insufficient credits"), "quota_exhausted"),
        (Behaviour(status=500), "upstream_error"),
        (Behaviour(malformed="empty_body"), "upstream_error"),
        (Behaviour(cut="close", cut_after=-1), "network"),
    ],
    ids=["401", "429", "402", "500", "empty", "cut"],
)
async def test_where_an_own_key_fails_the_platform_serves_at_the_official_price(
    till: Till, fault: Behaviour, reason: str, *, stream: bool
) -> None:
    gateway = till.gateway
    await attach(gateway)
    gateway.vendor.script.next(fault)
    sale = await till.buy(stream=stream)
    assert sale.total == bill(sale.row, PRICES) > 0
    cost, routing = sale.receipt["cost"], sale.receipt["routing"]
    assert (cost["byok"], cost["platform_fee"]) == (False, 0)
    (fallback,) = routing["fallbacks"]
    assert (fallback["byok"], fallback["reason"]) == (True, reason)
    assert (routing["attempt"], routing["eligible_endpoints"]) == (2, 1)
    assert secrets_sent(gateway) == [OWN, PLATFORM]
    assert OWN not in str(sale.receipt)


async def test_a_required_key_fails_alone_and_says_whose_it_is(till: Till) -> None:
    gateway = till.gateway
    await attach(gateway, is_required=True)
    gateway.vendor.script.next(Behaviour(status=401, message=f"Incorrect API key provided: {OWN}"))
    before = await gateway.balance()
    for _ in range(2):  # tried, then known to be refused
        reply = await gateway.chat(headers={"x-gw-metadata": "enabled"})
        assert reply.status_code in (502, 503)
        assert "your organization" in reply.json()["error"]["message"]
        assert OWN not in reply.text
    assert secrets_sent(gateway) == [OWN]
    await gateway.at_rest()
    assert await gateway.balance() == before


async def test_an_insured_answer_of_an_own_key_costs_no_fee(till: Till) -> None:
    await attach(till.gateway)
    till.gateway.vendor.script.next(Behaviour(empty=True, finish="none"))
    sale = await till.buy()
    assert sale.total == 0
    assert sale.row.byok
    assert sale.row.insured


async def test_priced_extras_raise_the_fee(till: Till) -> None:
    gateway = till.gateway
    await attach(gateway)
    pricing = {**PRICES, "price_modifiers": {"service_tier": {"default": "1.5"}}}
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"pricing": pricing, "accept": True})
    sale = await till.buy(service_tier="default")
    assert sale.row.price_modifiers is not None
    dearer = {name: str(Decimal("1.5") * Decimal(price)) for name, price in PRICES.items()}
    assert sale.total == fee(bill(sale.row, dearer), "5")


async def test_a_stream_whose_client_leaves_pays_the_fee_of_what_came(till: Till) -> None:
    gateway = till.gateway
    await attach(gateway)
    gateway.vendor.script.next(Behaviour(tokens=200, event_delay_s=0.02))
    async with gateway.client.stream(
        "POST", "/chat/completions", json=request("chat", "hello", stream=True)
    ) as reply:
        async for line in reply.aiter_lines():
            if "content" in line:
                break
    await gateway.at_rest()
    row = await till.last_row()
    assert (row.status, row.byok) == ("cancelled", True)
    assert await till.partial(row) == fee(bill(row, PRICES), "5") > 0


async def test_after_a_crash_the_fee_of_the_last_checkpoint_is_charged(
    opened: Opened, watch: Watch, tmp_path: Path
) -> None:
    async with opened() as gateway:
        await attach(gateway)
        gateway.vendor.script.next(Behaviour(tokens=120, event_delay_s=0.03))
        body = request("chat", "hello", stream=True)
        streaming = asyncio.create_task(gateway.client.post("/chat/completions", json=body))
        async with asyncio.timeout(10):
            while not await gateway.store.read(_has_progress):
                await asyncio.sleep(0.05)
        copy = tmp_path / "copy.db"
        await asyncio.to_thread(backup, gateway.running.settings, copy)
        shutil.copytree(tmp_path / "node", tmp_path / "dead" / "node")
        streaming.cancel()
        await asyncio.gather(streaming, return_exceptions=True)
    for name in ("gwd.db", "gwd.db-wal", "gwd.db-shm"):
        (tmp_path / "dead" / "node" / name).unlink(missing_ok=True)
    copy.rename(tmp_path / "dead" / "node" / "gwd.db")
    async with StrictVendor() as vendor, Nodes(tmp_path / "dead").running(watch) as running:
        risen = Gateway(running, vendor, gateway.management_key)
        till = Till(risen)
        try:
            row = await till.last_row()
            assert (row.status, row.byok, row.fee_bps) == ("incomplete", True, 500)
            assert await till.partial(row) == fee(bill(row, PRICES), "5") > 0
            await risen.verify()
        finally:
            await risen.close()


def _has_progress(connection: Connection) -> bool:
    row = connection.row("SELECT COUNT(*) FROM reservation_context WHERE progress IS NOT NULL")
    return bool(row and row[0])


async def test_a_key_s_limit_counts_own_keys_only_where_it_says_so(gateway: Gateway) -> None:
    """Five per cent of a cent at a time; with own keys included the list price counts, too."""
    await attach(gateway)
    plain, plain_id = await gateway.new_key(limit=0.015)
    counting, counting_id = await gateway.new_key(limit=0.015, include_byok_in_limit=True)
    for _ in range(4):
        assert (await spend(gateway, 1, **bearer(plain))).status_code == 200
    statuses = [(await spend(gateway, 1, **bearer(counting))).status_code for _ in range(3)]
    assert statuses == [200, 200, 402]
    shown = [
        (await gateway.manage("GET", f"/keys/{key_id}"))["data"]
        for key_id in (plain_id, counting_id)
    ]
    named = ("usage", "byok_usage", "byok_usage_daily", "byok_usage_monthly", "limit_remaining")
    assert [[each[name] for name in named] for each in shown] == [
        [0.002, 0.04, 0.04, 0.04, 0.013],
        [0.001, 0.02, 0.02, 0.02, 0],
    ]


async def test_a_strict_key_s_limit_that_counts_own_keys_is_never_overshot(
    gateway: Gateway,
) -> None:
    """Many at once: the list price of those that run has its place, too."""
    await attach(gateway)
    key, key_id = await gateway.new_key(limit=0.01, include_byok_in_limit=True, strict=True)
    gateway.vendor.script.always(Behaviour(tokens=100, delay_s=0.2))
    replies = await asyncio.gather(
        *(gateway.chat(headers=bearer(key), max_tokens=200) for _ in range(12))
    )
    statuses = sorted(reply.status_code for reply in replies)
    assert {200, 402} == set(statuses), statuses
    await gateway.at_rest()
    shown = (await gateway.manage("GET", f"/keys/{key_id}"))["data"]
    assert shown["byok_usage"] > 0
    assert shown["usage"] + shown["byok_usage"] <= 0.01


@pytest.mark.parametrize("include_byok", [False, True])
async def test_a_budget_counts_own_keys_only_where_it_says_so(
    gateway: Gateway, *, include_byok: bool
) -> None:
    await attach(gateway)
    scope = {"scope": "organization", "scope_id": await gateway.organization_id()}
    made = await gateway.manage(
        "POST",
        "/budgets",
        {**scope, "interval": "monthly", "limit": 0.015, "include_byok": include_byok},
    )
    statuses = [(await spend(gateway, 1)).status_code for _ in range(3)]
    assert statuses == ([200, 200, 402] if include_byok else [200, 200, 200])
    shown = (await gateway.manage("GET", f"/budgets/{made['data']['id']}"))["data"]
    assert shown["spend"] == (0.021 if include_byok else 0.0015)


TRAFFIC = (
    Behaviour(),
    Behaviour(),
    Behaviour(tokens=30, reasoning_tokens=7, cached_tokens=3, prompt_tokens=40),
    REFUSED,
    Behaviour(status=429),
    Behaviour(status=500),
    Behaviour(status=503),
    Behaviour(status=402, message="Insufficient credits"),
    Behaviour(empty=True, finish="none"),
    Behaviour(error="server_error", error_after=3),
    Behaviour(cut="close", cut_after=4),
    Behaviour(usage="missing"),
    Behaviour(usage="huge"),
)


@pytest.mark.parametrize("seed", range(3))
async def test_random_traffic_adds_up_everywhere(opened: Opened, seed: int) -> None:
    """Own keys of all kinds, a vendor that fails: records, ledger, spend and proof agree."""
    chance = random.Random(seed)
    async with opened() as gateway:
        await gateway.add_provider("backup", "openai_chat", gateway.vendor.openai_url, "sk-back-9")
        await gateway.add_endpoint("demo/chat", "backup", "gpt-demo-mini")
        for percent, provider, fields in (
            (chance.choice((0.01, 5, 33.33, 100)), "openai-chat", {}),
            (None, "openai-chat", {"sort_order": -1, "is_fallback": chance.random() < 0.5}),
            (None, "backup", {"is_required": chance.random() < 0.5}),
        ):
            await attach(
                gateway, f"sk-own-{provider}-{chance.random()}", provider=provider, **fields
            )
            if percent is not None:
                await set_fee(gateway, percent)
        keys = [await gateway.new_key(include_byok_in_limit=n == 1, limit=5) for n in range(2)]

        async def one() -> None:
            for _ in range(chance.choice((0, 0, 1, 2))):
                gateway.vendor.script.next(chance.choice(TRAFFIC))
            dialect = chance.choice(("chat", "messages", "responses"))
            body = request(dialect, f"q{chance.random()}", stream=chance.random() < 0.6)
            path = {"chat": "/chat/completions"}.get(dialect, f"/{dialect}")
            key = chance.choice(keys)[0]
            await gateway.client.post(path, json=body, headers=bearer(key))

        for _ in range(12):
            await asyncio.gather(*(one() for _ in range(4)))
            gateway.vendor.script.clear()
            if chance.random() < 0.3:
                await gateway.running.node.state.reload()  # refused keys get a new chance
        # One at least of each kind, whatever has failed: nobody has an own key for demo/claude.
        await gateway.running.node.state.reload()
        for model in ("demo/claude", "demo/chat"):
            reply = await gateway.chat(model=model, headers=bearer(keys[0][0]))
            assert reply.status_code == 200
        await gateway.at_rest()
        found = await gateway.store.read(proof.verify)
        assert found.ok, found.differences
        rows = await gateway.store.read(_rows)
        assert {row["byok"] for row in rows if row["charged_nano"]} == {0, 1}
        for row in rows:
            own_nano = row["list_nano"] * row["fee_bps"] // 10_000
            owed = own_nano if row["byok"] else row["list_nano"]
            assert row["cost_total_nano"] == (0 if row["insured"] else owed), row
            assert row["charged_nano"] == row["cost_total_nano"], row
        owner = await gateway.organization_id()
        now_us = gateway.running.node.clock.now_us()
        spent = await gateway.store.read(totals, owner, ("lifetime",), at_us=now_us)
        assert spent["lifetime"] == (
            sum(row["cost_total_nano"] for row in rows),
            sum(row["list_nano"] for row in rows if row["byok"]),
        )
        usage = [(await gateway.manage("GET", f"/keys/{key_id}"))["data"] for _, key_id in keys]
        assert sum(Decimal(str(each["byok_usage"])) for each in usage) == (
            spent["lifetime"][1] * NANO
        )
        listed = (await gateway.manage("GET", "/credits"))["data"]
        assert Decimal(str(listed["total_usage"])) == spent["lifetime"][0] * NANO


_LIST = " + ".join(
    f"g.cost_{name}_nano"
    for name in (
        *("prompt", "cache_read", "cache_write", "completion", "reasoning"),
        *("request_fee", "web_search"),
    )
)


def _rows(connection: Connection) -> list[dict[str, Any]]:
    names = ("byok", "fee_bps", "insured", "cost_total_nano", "list_nano", "charged_nano")
    rows = connection.rows(
        f"SELECT g.byok, g.fee_bps, g.insured, g.cost_total_nano, {_LIST},"
        " (SELECT COALESCE(SUM(e.amount_nano), 0) FROM entry AS e"
        " WHERE e.generation_id = g.id AND e.type = 'charge')"
        " FROM generation AS g"
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


async def test_proof_finds_an_own_key_s_charge_that_was_changed(opened: Opened) -> None:
    async with opened() as gateway:
        await attach(gateway)
        gateway.vendor.script.next(cents(1))
        await gateway.chat()
        await gateway.at_rest()
        tampered: list[str] = []

        def tamper(connection: Connection) -> None:
            connection.execute("SAVEPOINT tampering")
            for (name,) in connection.rows("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute("UPDATE generation SET fee_bps = 400 WHERE byok = 1")
            tampered.extend(d.invariant for d in proof.verify(connection).differences)
            connection.execute("ROLLBACK TO tampering")
            connection.execute("RELEASE tampering")

        await gateway.store.write(tamper)
        assert "I10" in tampered


async def test_a_batch_of_records_shows_who_paid_the_vendor(till: Till) -> None:
    """The activity's records hold own keys and the platform's side by side."""
    key_id = await attach(till.gateway)
    own = await till.buy()
    await change(till.gateway, key_id, disabled=True)
    platform = await till.buy()
    rows: list[GenerationRow] = [own.row, platform.row]
    records = [await till.record(row.id) for row in rows]
    assert [each["is_byok"] for each in records] == [True, False]
    assert records[1]["upstream_inference_cost"] is None
    assert own.total == fee(platform.total, "5")
