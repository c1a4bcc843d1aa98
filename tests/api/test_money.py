"""/credits over HTTP: purchases, refunds, grants, the ledger, automatic top-up (spec 2.9; api.md 8.5)."""

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gwd.demo import SimulatedVendor
from tests.api.office import Office
from tests.support.node import Gateway, Nodes

TOPUP = "/credits/auto-topup"
HOOK = {"threshold": 5, "amount": 20, "monthly_cap": 100, "hook_url": "https://pay.example/hook"}


@pytest_asyncio.fixture
async def hosted(tmp_path: Path) -> AsyncIterator[Office]:
    """A node that hosts other people's organizations: they do not book their own purchases."""
    nodes = Nodes(tmp_path)
    management_key = nodes.init()
    nodes.environment["GWD_CREDITS_SELF_SERVICE"] = "false"
    async with SimulatedVendor() as vendor, nodes.running() as running:
        made = Office(Gateway(running, vendor, management_key))
        try:
            await made.move_in()
            yield made
        finally:
            await made.close()
            await made.gateway.client.aclose()
            await made.gateway.operator.aclose()


async def credit(office: Office, person: str = "owner") -> Any:
    return (await office.ok(person, "GET", "/credits"))["data"]


async def test_a_purchase_counts_once_by_its_reference(office: Office) -> None:
    """The payment's own number makes a retry harmless even without an Idempotency-Key."""
    before = await credit(office)
    paid = {"amount": 12.345678901, "reference": "pay_77"}
    first = await office.ok("billing", "POST", "/credits/purchases", paid)
    again = await office.ok("billing", "POST", "/credits/purchases", paid)
    assert again["data"]["id"] == first["data"]["id"]
    after = await credit(office)
    assert Decimal(str(after["balance"])) - Decimal(str(before["balance"])) == Decimal(
        "12.345678901"
    )
    other = await office.call("billing", "POST", "/credits/purchases", {**paid, "amount": 13})
    assert other.status_code == 409


async def test_only_purchased_credit_is_refunded(office: Office) -> None:
    await office.ok("operator", "POST", "/credits/grants", {"kind": "promotional", "amount": 50})
    too_much = await office.call("owner", "POST", "/credits/refunds", {"amount": 10.5, "note": "x"})
    assert (too_much.status_code, too_much.json()["error"]["param"]) == (400, "amount")
    assert "10" in too_much.json()["error"]["message"]
    done = await office.ok("owner", "POST", "/credits/refunds", {"amount": 4, "note": "unused"})
    assert (done["data"]["type"], done["data"]["bucket"]) == ("refund", "purchased")
    assert done["data"]["amount"] == -4
    now = await credit(office)
    assert (now["purchased"], now["promotional"], now["balance"]) == (6, 50, 56)


async def test_every_movement_is_an_entry_with_the_balance_after_it(office: Office) -> None:
    await office.ok("owner", "POST", "/credits/purchases", {"amount": 5, "note": "invoice 7"})
    await office.ok("owner", "POST", "/credits/refunds", {"amount": 2, "note": "back"})
    listed = await office.ok("billing", "GET", "/credits/ledger")
    assert [(one["type"], one["amount"], one["balance_after"]) for one in listed["data"]] == [
        ("refund", -2, 13),
        ("purchase", 5, 15),
        ("purchase", 10, 10),
    ]
    bought = await office.ok("billing", "GET", "/credits/ledger?type=purchase&limit=1")
    assert (bought["total_count"], bought["data"][0]["note"]) == (2, "invoice 7")
    wrong = await office.call("billing", "GET", "/credits/ledger?type=gift")
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "type")


async def test_a_lead_reads_the_ledger_of_its_workspace_only(busy_office: Office) -> None:
    office, chat = (
        busy_office,
        {"model": "demo/chat", "messages": [{"role": "user", "content": "hello"}]},
    )
    for person in ("owner", "lead"):
        made = await office.ok(person, "POST", "/keys", {"name": "ci"})
        key = {"authorization": f"Bearer {made['key']}"}
        reply = await office.client.post("/chat/completions", json=chat, headers=key)
        assert reply.status_code == 200
    await office.gateway.at_rest()
    seen = (await office.ok("lead", "GET", "/credits/ledger"))["data"]
    assert {one["workspace_id"] for one in seen} == {office.workspace_id}
    everything = (await office.ok("owner", "GET", "/credits/ledger"))["data"]
    assert len(everything) > len(seen) >= 2


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("purchases", {"amount": 0}, "amount"),
        ("purchases", {"amount": -5}, "amount"),
        ("purchases", {"amount": 0.00000000001}, "amount"),
        ("purchases", {"amount": 10**11}, "amount"),
        ("purchases", {}, "amount"),
        ("purchases", {"amount": 1, "note": "a\nb"}, "note"),
        ("refunds", {"amount": 1}, "note"),
        ("refunds", {"amount": 1, "note": ""}, "note"),
        ("grants", {"amount": 1, "kind": "gift"}, "kind"),
        ("grants", {"amount": 1, "kind": "granted", "expires_at": "2099-01-01"}, "expires_at"),
        (
            "grants",
            {"amount": 1, "kind": "granted", "expires_at": "2020-01-01T00:00:00Z"},
            "expires_at",
        ),
    ],
)
async def test_an_amount_or_note_that_cannot_be_moves_nothing(
    office: Office, path: str, body: dict[str, Any], param: str
) -> None:
    before = await credit(office)
    reply = await office.call("operator", "POST", f"/credits/{path}", body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text
    assert await credit(office) == before


async def test_the_operator_books_for_other_organizations_and_nobody_else_does(
    office: Office,
) -> None:
    there = {"amount": 7, "organization_id": office.stranger_organization_id}
    await office.ok("operator", "POST", "/credits/purchases", there)
    assert (await credit(office, "stranger"))["balance"] == 7
    assert (await office.call("owner", "POST", "/credits/purchases", there)).status_code == 403
    absent = {"amount": 7, "organization_id": "org_nowhere"}
    assert (await office.call("operator", "POST", "/credits/purchases", absent)).status_code == 404


async def test_where_others_are_hosted_only_the_operator_books_purchases(hosted: Office) -> None:
    """A payment hook of an owner's own would be money for nothing, so it is the operator's there too."""
    purchase, refund = {"amount": 1}, {"amount": 1, "note": "x"}
    for person in ("owner", "billing", "stranger"):
        for method, path, body in (
            ("POST", "/credits/purchases", purchase),
            ("POST", "/credits/refunds", refund),
            ("PATCH", TOPUP, HOOK),
        ):
            reply = await hosted.call(person, method, path, body)
            assert reply.status_code == 403, (person, path)
    await hosted.ok("operator", "POST", "/credits/purchases", purchase)
    await hosted.ok("operator", "PATCH", TOPUP, HOOK)


async def test_topup_is_off_until_it_is_whole(office: Office) -> None:
    assert (await office.ok("member", "GET", TOPUP))["data"] == {
        "enabled": False,
        "threshold": None,
        "amount": None,
        "monthly_cap": None,
        "hook_url": None,
        "last_attempt": None,
    }
    reply = await office.call("billing", "PATCH", TOPUP, {"enabled": True, "threshold": 5})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "amount")
    set_up = await office.ok("billing", "PATCH", TOPUP, HOOK)
    assert {name: set_up["data"][name] for name in HOOK} == HOOK
    assert set_up["signing_secret"]
    enabled = await office.ok("billing", "PATCH", TOPUP, {"enabled": True})
    assert enabled["data"]["enabled"] is True
    assert "signing_secret" not in enabled
    shown = await office.call("billing", "GET", TOPUP)
    assert set_up["signing_secret"] not in shown.text
    off = await office.ok("billing", "PATCH", TOPUP, {"enabled": False, "hook_url": None})
    assert off["data"]["hook_url"] is None


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"threshold": -1}, "threshold"),
        ({"amount": 0}, "amount"),
        ({"monthly_cap": 10}, "monthly_cap"),
        ({"hook_url": "http://pay.example/hook"}, "hook_url"),
        ({"hook_url": "file:///etc/passwd"}, "hook_url"),
        ({"hook_url": "https://user:secret@pay.example/"}, "hook_url"),
        ({"hook_url": "https://127.0.0.1/hook"}, "hook_url"),
        ({"hook_url": "https://[::ffff:7f00:1]/hook"}, "hook_url"),
        ({"hook_url": "https://169.254.169.254/hook"}, "hook_url"),
    ],
)
async def test_topup_that_cannot_be_names_its_field(
    office: Office, changes: dict[str, Any], param: str
) -> None:
    await office.ok("billing", "PATCH", TOPUP, HOOK)
    before = await office.ok("billing", "GET", TOPUP)
    reply = await office.call("billing", "PATCH", TOPUP, changes)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text
    assert await office.ok("billing", "GET", TOPUP) == before


async def test_the_books_are_verified_by_whoever_may(office: Office) -> None:
    for person in ("owner", "billing", "operator"):
        found = (await office.ok(person, "POST", "/ledger/verify", {}))["data"]
        assert found["ok"] is True
        assert found["differences"] == []
    assert (await office.call("owner", "POST", "/ledger/verify", {"all": True})).status_code == 403
    everything = await office.ok("operator", "POST", "/ledger/verify", {"all": True})
    assert everything["data"]["ok"] is True
