"""/credits over HTTP: purchases, refunds, grants, the ledger, automatic top-up."""

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.api.office import Office, people, working
from tests.support.node import open_gateway

TOPUP = "/credits/auto-topup"
HOOK = {"threshold": 5, "amount": 20, "monthly_cap": 100, "hook_url": "https://pay.example/hook"}


@pytest_asyncio.fixture
async def hosted(tmp_path: Path) -> AsyncIterator[Office]:
    """A node that hosts other people's organizations: they do not book their own purchases."""
    hosting = {"GWD_CREDITS_SELF_SERVICE": "false"}
    async with (
        open_gateway(tmp_path, environment=hosting, begin=people) as made,
        working(made) as office,
    ):
        yield office


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
    guarded_office: Office, changes: dict[str, Any], param: str
) -> None:
    await guarded_office.ok("billing", "PATCH", TOPUP, HOOK)
    before = await guarded_office.ok("billing", "GET", TOPUP)
    reply = await guarded_office.call("billing", "PATCH", TOPUP, changes)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text
    assert await guarded_office.ok("billing", "GET", TOPUP) == before


async def test_the_books_are_verified_by_whoever_may(office: Office) -> None:
    for person in ("owner", "billing", "operator"):
        found = (await office.ok(person, "POST", "/ledger/verify", {}))["data"]
        assert found["ok"] is True
        assert found["differences"] == []
    assert (await office.call("owner", "POST", "/ledger/verify", {"all": True})).status_code == 403
    everything = await office.ok("operator", "POST", "/ledger/verify", {"all": True})
    assert everything["data"]["ok"] is True


BOOKINGS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("purchases", {"amount": 3}, {"amount": 4}),
    ("grants", {"kind": "granted", "amount": 3}, {"kind": "granted", "amount": 4}),
    ("grants", {"kind": "promotional", "amount": 3}, {"kind": "granted", "amount": 3}),
    ("grants", {"kind": "purchased", "amount": 3}, {"kind": "purchased", "amount": 2}),
    ("refunds", {"amount": 1, "note": "unused"}, {"amount": 2, "note": "unused"}),
    ("adjustments", {"amount": 2, "reason": "twice"}, {"amount": -2, "reason": "twice"}),
    ("adjustments", {"amount": -1.5, "reason": "wrong"}, {"amount": 1.5, "reason": "wrong"}),
)


async def test_every_booking_counts_once_by_its_reference_and_says_when_it_was(
    office: Office,
) -> None:
    """A repetition, under whatever Idempotency-Key, moves nothing and leaves no amount in the audit trail.

    Another amount, direction or kind under the same reference is a conflict; blanks around it are the same one.
    """
    differences: list[Any] = []
    for number, (path, sent, other) in enumerate(BOOKINGS):
        path, reference = f"/credits/{path}", f"case {number}"
        first = await office.call("operator", "POST", path, {**sent, "reference": reference})
        after = await credit(office)
        lines = (await office.ok("operator", "GET", "/audit"))["total_count"]
        for headers, written in (
            ({}, reference),
            ({"idempotency-key": f"k{number}"}, f" {reference} "),
        ):
            body = {**sent, "reference": written}
            again = await office.call("operator", "POST", path, body, headers=headers)
            reported = again.json()
            if (
                again.status_code != 200
                or again.headers.get("idempotency-replayed") != "true"
                or reported["data"] != first.json()["data"]
                or reported["already_booked_at"] != first.json()["data"]["created_at"]
                or not reported["message"].startswith(
                    f"already booked on {reported['already_booked_at']}"
                )
            ):
                differences.append((path, sent, again.status_code, again.text))
        changed = {**other, "reference": reference}
        conflict = await office.call("operator", "POST", path, changed)
        if (conflict.status_code, conflict.json()["error"].get("param")) != (409, "reference"):
            differences.append((path, other, conflict.status_code, conflict.text))
        now = (await office.ok("operator", "GET", "/audit"))["total_count"]
        if await credit(office) != after or now != lines:
            differences.append((path, "moved", after, await credit(office)))
    assert differences == []


async def test_a_reference_is_one_for_each_kind_of_booking_and_organization(
    office: Office,
) -> None:
    named = {"reference": "INV-1"}
    before = Decimal(str((await credit(office))["balance"]))
    await office.ok("operator", "POST", "/credits/purchases", {"amount": 5, **named})
    await office.ok(
        "operator", "POST", "/credits/grants", {"kind": "granted", "amount": 1, **named}
    )
    await office.ok(
        "operator", "POST", "/credits/adjustments", {"amount": -2, "reason": "x", **named}
    )
    there = {"amount": 7, "organization_id": office.stranger_organization_id, **named}
    await office.ok("operator", "POST", "/credits/purchases", there)
    assert Decimal(str((await credit(office))["balance"])) - before == 4
    assert (await credit(office, "stranger"))["balance"] == 7


async def test_an_idempotency_key_s_replay_says_when_it_was_booked(office: Office) -> None:
    key, body = {"idempotency-key": "inv-2041"}, {"amount": 2}
    first = await office.ok("owner", "POST", "/credits/purchases", body, headers=key)
    again = await office.ok("owner", "POST", "/credits/purchases", body, headers=key)
    assert "already_booked_at" not in first
    assert again["data"] == first["data"]
    assert again["already_booked_at"] == first["data"]["created_at"]


async def test_an_adjustment_is_one_more_entry_with_its_reason(office: Office) -> None:
    """What it takes has to be free, in the order in which credit pays or of one kind."""
    give = {"kind": "promotional", "amount": 3}
    await office.ok("operator", "POST", "/credits/grants", give)
    taken = await office.ok(
        "operator", "POST", "/credits/adjustments", {"amount": -5, "reason": "booked twice"}
    )
    assert (taken["data"]["type"], taken["data"]["amount"]) == ("adjustment", -5)
    assert taken["data"]["bucket"] is None  # it came from two kinds
    now = await credit(office)
    assert (now["promotional"], now["purchased"], now["balance"]) == (0, 8, 8)
    given = await office.ok(
        "operator", "POST", "/credits/adjustments", {"amount": 1.5, "reason": "put right"}
    )
    assert (given["data"]["bucket"], given["data"]["note"]) == ("granted", "put right")
    refused = []
    for body, param in (
        ({"amount": -100, "reason": "x"}, "amount"),
        ({"amount": -1, "reason": "x", "kind": "promotional"}, "amount"),
        ({"amount": 0, "reason": "x"}, "amount"),
        ({"amount": 1}, "reason"),
        ({"amount": 1, "reason": "  "}, "reason"),
        ({"amount": 1, "reason": "x", "note": "y"}, "note"),
    ):
        reply = await office.call("operator", "POST", "/credits/adjustments", body)
        if (reply.status_code, reply.json()["error"]["param"]) != (400, param):
            refused.append((body, reply.text))
    assert refused == []
    reply = await office.call("owner", "POST", "/credits/adjustments", {"amount": 1, "reason": "x"})
    assert reply.status_code == 403
    lines = (await office.ok("billing", "GET", "/credits/ledger?type=adjustment"))["data"]
    assert [line["amount"] for line in lines] == [1.5, -2, -3]
    details = (await office.ok("owner", "GET", "/audit?action=credit.adjust"))["data"]
    assert [line["details"]["amount_nano"] for line in details] == [1_500_000_000, -5_000_000_000]


async def test_nothing_is_given_to_an_organization_that_was_deleted(office: Office) -> None:
    there = {"amount": 5, "organization_id": office.stranger_organization_id}
    await office.ok("operator", "POST", "/credits/purchases", there)
    gone = await office.ok(
        "operator", "DELETE", f"/organizations/{office.stranger_organization_id}"
    )
    assert (gone["balance"], gone["keys_ended"]) == (5, 1)
    assert (await office.call("operator", "POST", "/credits/purchases", there)).status_code == 404
    back = await office.ok("operator", "POST", "/credits/refunds", {**there, "note": "closed"})
    assert back["data"]["balance_after"] == 0
