"""Whatever is changed in the file of a node with a real history is found, and named.

Every row of the table is plain SQL on that file. A change behind which all hashes were computed anew is whole in
itself: only a head that was kept elsewhere finds it, and says so.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from gwd import ledger, proof
from gwd.credentials import keyring
from gwd.credentials.vault import Vault
from gwd.demo import Behaviour
from gwd.store.connection import Connection, open_connection, transaction
from tests.flows.tampering import FOUND, ONLY_BY_A_HEAD, Tampering
from tests.limits.price import served_by_own_key
from tests.support.node import PRICES, Gateway, open_gateway


async def test_every_tampering_is_found_by_name(tmp_path: Path) -> None:
    path, ring = await _history(tmp_path)
    vault = Vault(keyring.read(ring))
    connection = open_connection(str(path), "writer")
    connection.execute("PRAGMA foreign_keys=OFF")
    connection.execute("PRAGMA ignore_check_constraints=ON")
    connection.raw.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        untouched = proof.verify(connection)
        assert untouched.differences == ()
        head = proof.take(connection, vault, now_us=0)
        assert proof.verify(connection, head=proof.read(_read_back(head), vault)).ok
        missed = []
        for name, tampering, invariant, words in FOUND:
            with _tampered(connection, tampering):
                found = proof.verify(connection).differences
            if not any(each.invariant == invariant and words in each.message for each in found):
                said = [(each.invariant, each.message) for each in found][:6]
                missed.append(f"{name}: wanted {invariant} {words!r}, said {said}")
        for name, rewriting, words in ONLY_BY_A_HEAD:
            with _tampered(connection, rewriting):
                alone = proof.verify(connection).differences
                found = proof.verify(connection, head=head).differences
            if alone:
                missed.append(f"{name}: the rewritten history should be whole, said {alone[:3]}")
            if [each.invariant for each in found] != ["head"] or words not in found[0].message:
                missed.append(f"{name}: wanted the head's {words!r}, said {found[:3]}")
        assert not missed, "\n".join(missed)
        assert proof.verify(connection).ok
    finally:
        connection.raw.close()


def _read_back(head: proof.Head) -> Any:
    return msgspec.json.decode(msgspec.json.encode(head))


@contextmanager
def _tampered(connection: Connection, tampering: Tampering) -> Iterator[None]:
    """The file with the change, the triggers that forbid it in place again; all of it is undone."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("PRAGMA writable_schema=ON")
        schema = isinstance(tampering, str) and (
            "sqlite_master" in tampering or tampering.startswith(("DROP", "CREATE"))
        )
        triggers = (
            []
            if schema
            else connection.rows("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        )
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        if callable(tampering):
            tampering(connection)
        else:
            before = connection.raw.total_changes()
            connection.raw.execute(tampering)
            assert schema or connection.raw.total_changes() > before, (
                f"nothing was changed: {tampering}"
            )
        for _, sql in triggers:
            connection.execute(sql)
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA writable_schema=RESET")


async def _history(directory: Path) -> tuple[Path, Path]:
    """The file of a stopped node that has seen some life, with one request still running, and its key ring."""
    async with open_gateway(directory) as gateway:
        await _live(gateway)
        database, ring = gateway.running.settings.database, gateway.running.settings.keyring
        owner, key_id = await gateway.organization_id(), gateway.key_id
    connection = open_connection(str(database), "writer")
    try:
        with transaction(connection, "IMMEDIATE"):
            row = connection.row("SELECT last_at FROM account WHERE organization_id = ?", (owner,))
            assert row is not None
            hold = ledger.NewReservation(
                generation_id="gen-running",
                organization_id=owner,
                workspace_id=None,
                key_id=key_id,
                family_id=key_id,
                amount_nano=1_000_000,
                boot_id="boot_1",
                context=b"{}",
            )
            assert ledger.reserve(connection, hold, now_us=row[0] + 1) is not None
    finally:
        connection.raw.close()
    return database, ring


async def _live(gateway: Gateway) -> None:
    manage = gateway.manage
    await manage("POST", "/credits/purchases", {"amount": 3, "reference": "inv-1"})
    promo = {"kind": "promotional", "amount": 1, "expires_at": "2090-01-01T00:00:00Z"}
    await manage("POST", "/credits/grants", {**promo, "reference": "promo"})
    await manage("POST", "/credits/refunds", {"amount": 0.5, "note": "sent back"})
    await manage("POST", "/credits/adjustments", {"amount": -0.25, "reason": "typed wrong"})
    await manage("POST", "/budgets", {"scope": "organization", "interval": "daily", "limit": 100})
    other = {"name": "Other", "owner_email": "owner@other.example"}
    other_id = (await manage("POST", "/organizations", other))["data"]["id"]
    grant = {"kind": "granted", "amount": 2, "organization_id": other_id}
    await manage("POST", "/credits/grants", grant)
    vendor = gateway.vendor.script
    for model in ("demo/chat", "demo/claude", "demo/responses"):
        for stream in (False, True):
            vendor.next(Behaviour(prompt_tokens=1_000, completion_tokens=400))
            assert (await gateway.chat(model=model, stream=stream)).status_code == 200
    said = [{"role": "user", "content": "hi"}]
    for path, body in (
        ("/messages", {"model": "demo/claude", "max_tokens": 50, "messages": said}),
        ("/responses", {"model": "demo/responses", "max_output_tokens": 50, "input": "hi"}),
        ("/embeddings", {"model": "demo/embed", "input": "hi"}),
    ):
        assert (await gateway.client.post(path, json=body)).status_code == 200
    vendor.next(Behaviour(empty=True, finish="error", completion_tokens=0))
    await gateway.chat()
    vendor.always(Behaviour(status=500))
    assert (await gateway.chat()).status_code >= 500
    vendor.clear()
    await served_by_own_key(gateway, gateway.key_id, list_price="0.05", fee="0.0025")
    dearer = {**PRICES, "price_modifiers": {"service_tier": {"priority": "2", "default": "3"}}}
    tiers = [{"above_prompt_tokens": 500, "pricing": {"prompt": "0.000004"}}]
    await manage("PATCH", "/catalog/models/demo/chat", {"pricing": dearer, "pricing_tiers": tiers})
    vendor.next(Behaviour(prompt_tokens=900))
    assert (await gateway.chat(service_tier="priority")).status_code == 200
    await gateway.at_rest()
    organization_id = await gateway.organization_id()
    soon_us = gateway.running.node.clock.now_us() + 50_000
    credit = ledger.NewCredit(
        kind="promotional", type="grant", amount_nano=7, expires_at_us=soon_us
    )
    await gateway.store.write(ledger.add_credit, organization_id, credit, now_us=soon_us - 10)
    expired = await gateway.store.write(ledger.expire, organization_id, now_us=soon_us + 10)
    assert [entry.type for entry in expired] == ["expiry"]
