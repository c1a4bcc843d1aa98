"""What the writer remembers: kept by functions that note their changes, forgotten after everything else."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import pytest

from gwd import ledger
from gwd.core.clock import SystemClock
from gwd.core.errors import StorageUnavailable
from gwd.ledger import account
from gwd.store import Connection, Store, cached, maintains_cache
from gwd.store.connection import open_connection
from gwd.store.migrations import migrate
from tests.flows.disk import Disk
from tests.support.money import ORGANIZATION, USD, add, hold, open_organization
from tests.support.node import Gateway
from tests.support.store import NOW_US, open_store

WRITE_FROM_OUTSIDE = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("UPDATE node_fact SET value = x'02' WHERE name = 'tested'")
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path, _begin) as opened:
        yield opened


def _begin(connection: Connection) -> None:
    open_organization(connection, now_us=NOW_US)
    add(connection, 100 * USD, now_us=NOW_US)
    connection.execute("INSERT INTO node_fact VALUES ('tested', x'01')")


@cached("fact")
def row_value(connection: Connection) -> bytes:
    row = connection.row("SELECT value FROM node_fact WHERE name = 'tested'")
    assert row is not None
    return bytes(row[0])


@maintains_cache
def cached_value(connection: Connection) -> bytes:
    return row_value(connection)


@maintains_cache
def is_cached(connection: Connection) -> bool:
    return row_value.peek(connection) is not None


@maintains_cache
def changed_and_put(connection: Connection) -> None:
    connection.execute("UPDATE node_fact SET value = x'03' WHERE name = 'tested'")
    row_value.put(connection, b"\x03")


@maintains_cache
def changed_and_broken(connection: Connection) -> None:
    changed_and_put(connection)
    raise ValueError("too late")


def found_before_and_after_a_change(connection: Connection) -> tuple[bytes, bytes]:
    before = row_value(connection)
    connection.execute("UPDATE node_fact SET value = x'04' WHERE name = 'tested'")
    return before, row_value(connection)


async def test_a_row_is_found_once(store: Store) -> None:
    assert not await store.write(is_cached)
    assert await store.write(cached_value) == b"\x01"
    assert await store.write(is_cached)
    await store.write(changed_and_put)
    assert await store.write(cached_value) == b"\x03"


async def test_other_functions_neither_see_cached_rows_nor_leave_any(store: Store) -> None:
    await store.write(cached_value)
    assert await store.write(found_before_and_after_a_change) == (b"\x01", b"\x04")
    assert not await store.write(is_cached)
    assert await store.write(cached_value) == b"\x04"


async def test_functions_of_one_batch_keep_to_it_too(store: Store) -> None:
    seen = tuple(
        await asyncio.gather(
            store.write(cached_value),
            store.write(found_before_and_after_a_change),
            store.write(cached_value),
        )
    )
    assert seen == (b"\x01", (b"\x01", b"\x04"), b"\x04")


async def test_a_function_that_fails_leaves_no_cached_row(store: Store) -> None:
    await store.write(cached_value)
    with pytest.raises(ValueError, match="too late"):
        await store.write(changed_and_broken)
    assert await store.write(cached_value) == b"\x01"


async def test_a_change_by_another_process_is_seen(store: Store) -> None:
    await store.write(cached_value)
    await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", WRITE_FROM_OUTSIDE, store.path], check=True
    )
    assert await store.write(cached_value) == b"\x02"


async def test_a_batch_that_the_disk_refuses_leaves_no_cached_row(disk: Disk, store: Store) -> None:
    await store.write(_remember_account)
    disk.free = 0
    held = await asyncio.gather(
        *(store.write(_hold, f"gen-{n}") for n in range(3)), return_exceptions=True
    )
    assert all(isinstance(error, StorageUnavailable) for error in held)
    disk.free = None
    owned, known = await store.write(_remember_account)
    assert (owned, known) == (100 * USD, False)
    await store.write(_hold, "gen-4")
    assert (await store.read(ledger.verify)).ok


@maintains_cache
def _remember_account(connection: Connection) -> tuple[int, bool]:
    known = account.stored.peek(connection, ORGANIZATION) is not None
    return account.stored(connection, ORGANIZATION).pool_nano, known


@maintains_cache
def _hold(connection: Connection, generation_id: str) -> None:
    hold(connection, generation_id, 1 * USD, now_us=NOW_US)


def test_a_reader_remembers_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "gwd.db")
    migrate(path, SystemClock())
    reader = open_connection(path, "reader")
    reader_finds = cached("found by a reader")(lambda connection: connection is reader)
    assert reader_finds(reader)
    assert reader_finds.peek(reader) is None
    reader.raw.close()


async def test_a_lot_that_moved_unseen_stops_the_charge(store: Store) -> None:
    await store.write(_hold, "gen-1")
    with pytest.raises(ledger.LedgerBroken, match="changed under its own transaction"):
        await store.write(_charge_after_a_lot_moved)
    assert (await store.read(ledger.verify)).ok


@maintains_cache
def _charge_after_a_lot_moved(connection: Connection) -> None:
    account.lots_with_credit(connection, ORGANIZATION)
    connection.execute("UPDATE lot SET remaining_nano = remaining_nano - 1")
    ledger.settle(connection, "gen-1", USD // 2, now_us=NOW_US)


async def test_changes_of_keys_budgets_and_settings_hold_at_the_next_request(
    gateway: Gateway,
) -> None:
    """Each is changed while the writer remembers what it was."""
    assert (await gateway.chat("hello")).status_code == 200
    key = f"/keys/{gateway.key_id}"
    assert (await gateway.operator.patch(key, json={"disabled": True})).status_code == 200
    assert (await gateway.chat("hello")).status_code == 401
    assert (await gateway.operator.patch(key, json={"disabled": False})).status_code == 200
    assert (await gateway.chat("hello")).status_code == 200
    assert (await gateway.operator.patch(key, json={"limit": 0.000000001})).status_code == 200
    refused = await gateway.chat("hello")
    assert refused.json()["error"]["code"] == "key_limit_exceeded"
    assert (await gateway.operator.patch(key, json={"limit": None})).status_code == 200
    budget = {"scope": "organization", "interval": "lifetime", "kind": "hard"}
    made = await gateway.operator.post("/budgets", json={**budget, "limit": 0.000000001})
    assert made.status_code == 201
    refused = await gateway.chat("hello")
    assert refused.json()["error"]["code"] == "budget_exceeded"
    budget_id = made.json()["data"]["id"]
    assert (await gateway.operator.delete(f"/budgets/{budget_id}")).status_code == 200
    assert (await gateway.chat("hello")).status_code == 200
    spent = Decimal(10) - await gateway.balance()
    assert spent > 0
