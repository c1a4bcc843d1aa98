"""Money on the page: statements that add up to the ledger, budgets, credits that are booked once."""

import csv
import io
import random
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gwd import ledger
from gwd.core.clock import US_PER_S
from gwd.management import sessions
from tests.api.office import Office
from tests.page.browser import Browser, check_page

pytestmark = pytest.mark.asyncio(loop_scope="module")

CREDITS = "/app/settings/credits"


def month() -> str:
    return f"{datetime.now(UTC):%Y-%m}"


def amount_in(text: str) -> Decimal:
    """An exact amount as the page shows it, its last seven places small."""
    plain = re.sub(r"</?small[^>]*>|[$,]", "", text).replace("−", "-")
    return Decimal(plain)


async def random_life(office: Office, seed: int) -> None:
    """Credit of every kind comes, goes and expires while keys are used, rotated, renamed and deleted."""
    chance, gateway = random.Random(seed), office.gateway
    await office.ok("owner", "POST", "/credits/purchases", {"amount": "25.000000001"})
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    grant = {"kind": "promotional", "amount": "0.75", "expires_at": soon}
    await office.ok("operator", "POST", "/credits/grants", grant)
    await office.ok("owner", "POST", "/credits/refunds", {"amount": "1.999999999", "note": "twice"})
    keys = []
    for n in range(4):
        body = {
            "name": f"life-{n}",
            "workspace_id": chance.choice(["default", office.workspace_id]),
        }
        keys.append(await office.ok("owner", "POST", "/keys", body))
    for _ in range(30):
        key = chance.choice(keys)
        model = chance.choice(["demo/chat", "demo/claude", "demo/chat-b", "demo/nothing"])
        headers = {"authorization": f"Bearer {key['key']}"}
        await gateway.chat("hello " * chance.randint(1, 50), model=model, headers=headers)
    rotated = await office.ok("owner", "POST", f"/keys/{keys[0]['data']['id']}/rotate", {})
    await gateway.chat("hi", headers={"authorization": f"Bearer {rotated['key']}"})
    await office.ok("owner", "DELETE", f"/keys/{keys[1]['data']['id']}")
    await gateway.at_rest()


async def test_statement_books_and_analytics_say_the_same(owner: Browser, office: Office):
    await random_life(office, seed=7)
    page = await owner.get(f"/app/statements/{month()}")
    check_page(page)
    file = await owner.get(f"/app/statements/{month()}/csv")
    lines = list(csv.DictReader(io.StringIO(file.text)))
    usd = {
        (line["part"], line["name"]): Decimal(line["usd"])
        for line in lines
        if line["part"] == "balance"
    }
    moved = sum(
        amount for (_, name), amount in usd.items() if name not in ("opening", "closing", "charges")
    )
    charges, closing = usd["balance", "charges"], usd["balance", "closing"]
    assert charges > 0
    assert usd["balance", "opening"] + moved - charges == closing == await office.gateway.balance()
    for part in ("workspace", "key", "model"):
        parts = [line for line in lines if line["part"] == part]
        assert sum(Decimal(line["usd"]) for line in parts) == charges, part
        whole = next(line for line in lines if line["name"] == "charges")
        for column in ("requests", "tokens_in", "cached", "tokens_out"):
            assert sum(int(line[column]) for line in parts) == int(whole[column]), (part, column)
    entries = await office.gateway.store.read(
        lambda connection: connection.rows(
            "SELECT amount_nano FROM entry WHERE type = 'charge' AND organization_id = ?",
            (office.organization_id,),
        )
    )
    assert sum(Decimal(row[0]) for row in entries) / 10**9 == charges
    shown = [
        amount_in(each)
        for each in re.findall(
            r'class="n">(−?\$[\d,]+\.\d\d<small[^<]*</small>|−?\$[\d.,]+<small class="tail">\d{7}</small>)',
            page.text,
        )
    ]
    assert shown.count(charges) == 2
    assert -charges in shown
    assert closing in shown
    asked = {"metrics": ["cost"], "range": {"from": f"{month()}-01T00:00:00Z"}}
    reply = await office.ok("owner", "POST", "/analytics/query", asked)
    assert Decimal(str(reply["data"]["data"][0]["cost"])) == charges
    usage = list(csv.DictReader(io.StringIO((await owner.get("/app/usage/csv?by=key")).text)))
    assert sum(Decimal(line["cost"]) for line in usage) == charges


async def test_a_statement_that_does_not_add_up_is_not_shown(
    owner: Browser, office: Office, monkeypatch: pytest.MonkeyPatch
):
    counted = office.gateway.running.node.counters.statement_mismatches
    real = ledger.owned_nano
    monkeypatch.setattr(ledger, "owned_nano", lambda connection, name: real(connection, name) + 1)
    reply = await owner.get(f"/app/statements/{month()}")
    assert reply.status_code == 500
    page = check_page(reply)
    assert "statement_mismatch" in page.words
    assert "does not add up" in page.words
    assert 'class="tail"' not in reply.text
    assert office.gateway.running.node.counters.statement_mismatches == counted + 1
    assert "does not add up" in (await owner.page("/app/")).words, (
        "its card says so, the rest stands"
    )


async def test_statements_of_months_that_are_none(owner: Browser):
    for text, status in (
        ("2026-13", 400),
        ("2999-01", 400),
        ("x", 400),
        ("2020-01", 404),
        ("2026-1", 400),
    ):
        await owner.page(f"/app/statements/{text}", status)
        reply = await owner.get(f"/app/statements/{text}/csv")
        assert reply.status_code == status


async def test_a_payment_is_booked_once(owner: Browser, office: Office):
    page = await owner.page(f"{CREDITS}/add")
    form = next(each for each in page.forms if each.action == f"{CREDITS}/add")
    before = await office.gateway.balance()
    fields = {**form.values, "amount": "1,5", "note": '"><script>'}
    wrong = await owner.post(f"{CREDITS}/add", fields)
    assert wrong.status_code == 400
    fields["amount"] = "1000.5"
    for _ in range(2):
        reply = await owner.post(f"{CREDITS}/add", fields)
        assert (reply.status_code, reply.headers["location"]) == (303, f"{CREDITS}?did=booked")
    assert await office.gateway.balance() == before + Decimal("1000.5")
    credits_page = await owner.get(CREDITS)
    assert "+$1,000.50" in check_page(credits_page).words
    for amount in ("", "0", "-1", "1.0000000001", "much", "1e9", "9" * 90):
        reply = await owner.press(f"{CREDITS}/add", f"{CREDITS}/add", amount=amount)
        assert reply.status_code == 400, amount
        check_page(reply)
    assert await office.gateway.balance() == before + Decimal("1000.5")


async def test_a_refund_and_a_payment_hook_want_a_fresh_proof(owner: Browser, office: Office):
    await office.ok("owner", "POST", "/credits/purchases", {"amount": "20"})
    late_us = sessions.PROOF_US + US_PER_S
    for path, fields in (
        (f"{CREDITS}/refund", {"amount": "2", "note": "twice"}),
        (f"{CREDITS}/top-up", {"hook_url": "https://pay.example/hook"}),
    ):
        await office.gateway.store.write(
            lambda connection: connection.execute(
                "UPDATE browser_session SET proved_at = proved_at - ?", (late_us,)
            )
        )
        before = await office.gateway.balance()
        reply = await owner.press(path, path, **fields)
        assert "once more" in check_page(reply).words
        assert await office.gateway.balance() == before
        form = next(each for each in check_page(reply).forms if each.action == path)
        reply = await owner.post(path, {**form.values, "again_key": office["owner"].key})
        assert reply.status_code in (200, 303)
    assert "only time it is shown" in check_page(reply).words
    again = await owner.press(f"{CREDITS}/top-up", f"{CREDITS}/top-up", threshold="5")
    assert again.headers["location"] == f"{CREDITS}?did=saved", (
        "the hook stays, and so does its secret"
    )


async def test_who_may_not_book_sees_no_button(office: Office):
    async with Browser(office.gateway) as admin:
        await admin.sign_in(office["admin"].key)
        page = await admin.page(CREDITS)
        assert f"{CREDITS}/add" not in page.links
        await admin.page(f"{CREDITS}/add", 403)


async def test_a_budget_is_made_raised_changed_and_deleted(owner: Browser, office: Office):
    new = "/app/budgets/new"
    for fields in ({"limit": ""}, {"limit": "-1"}, {"scope": "key"}, {"scope": "all"}, {"scope": "tag"},
                   {"interval": "hourly"}, {"alert_thresholds": "half"}, {"alert_thresholds": "500"}):  # fmt: skip
        reply = await owner.press(new, new, **{"limit": "40", **fields})
        assert reply.status_code == 400, fields
        check_page(reply)
    reply = await owner.press(new, new, limit="40", interval="weekly")
    assert reply.status_code == 303
    path = reply.headers["location"].partition("?")[0]

    async def record() -> Any:
        return (await office.ok("owner", "GET", path.removeprefix("/app")))["data"]

    assert ((await record())["limit"], (await record())["kind"]) == (40, "hard")
    low = await owner.press(path, f"{path}/raise", raised="39")
    assert low.status_code == 400
    assert 'id="e-raised"' in low.text
    reply = await owner.press(path, f"{path}/raise", raised="60", hours="72")
    assert reply.headers["location"] == f"{path}?did=raised"
    assert (await record())["limit_in_force"] == 60
    await owner.press(path, f"{path}/end-raise")
    assert (await record())["limit_in_force"] == 40
    await owner.press(f"{path}/edit", f"{path}/edit", limit="45.5", alert_thresholds="70")
    assert ((await record())["limit"], (await record())["alert_thresholds"]) == (45.5, [70])
    reply = await owner.press(path, f"{path}/delete")
    assert reply.headers["location"] == "/app/budgets?did=deleted"
    await owner.page(path, 404)
