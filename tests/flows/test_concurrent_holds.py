"""Many holds at once through the real store: exactly what the balance covers is admitted, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gwd import ledger
from gwd.store import Connection, Store
from tests.support.money import BOOT, ORGANIZATION, USD, add, charge, hold, open_organization
from tests.support.store import NOW_US, open_store

CALLERS = 200


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path) as opened:
        yield opened


def fund(connection: Connection, amount_nano: int) -> None:
    open_organization(connection, now_us=NOW_US)
    add(connection, amount_nano, now_us=NOW_US)


def verify(connection: Connection) -> ledger.Verification:
    return ledger.verify(connection, boot_id=BOOT)


async def test_two_hundred_at_once_cannot_hold_more_than_there_is(store: Store) -> None:
    """There is balance for half of them."""
    await store.write(fund, CALLERS // 2 * USD)
    answers = await asyncio.gather(
        *(store.write(hold, f"gen-{n}", 1 * USD, now_us=NOW_US) for n in range(CALLERS))
    )
    admitted = [f"gen-{n}" for n, answer in enumerate(answers) if answer is not None]
    assert len(admitted) == CALLERS // 2
    settled = await asyncio.gather(
        *(store.write(charge, name, 1 * USD // 3, now_us=NOW_US) for name in admitted),
        *(store.write(charge, name, 1 * USD // 2, now_us=NOW_US) for name in admitted),
    )
    assert sum(settlement.first for settlement in settled) == len(admitted)
    found = await store.read(verify)
    assert found.differences == ()
    credit = await store.read(ledger.balance, ORGANIZATION, now_us=NOW_US)
    assert credit.reserved_nano == 0
    assert credit.total_usage_nano == len(admitted) * (USD // 3)


async def test_a_settlement_lands_although_its_caller_is_cancelled(store: Store) -> None:
    await store.write(fund, 10 * USD)
    await store.write(hold, "gen-1", 2 * USD, now_us=NOW_US)
    caller = asyncio.ensure_future(store.write(charge, "gen-1", 1 * USD, now_us=NOW_US))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    late = await store.write(ledger.settle, "gen-1", 2 * USD, now_us=NOW_US)
    assert (late.first, late.charged_nano) == (False, 1 * USD)
    assert (await store.read(verify)).differences == ()


async def test_a_failed_neighbour_in_the_batch_undoes_only_itself(store: Store) -> None:
    await store.write(fund, 10 * USD)
    results = await asyncio.gather(
        store.write(hold, "gen-1", 2 * USD, now_us=NOW_US),
        store.write(hold, "gen-1", 2 * USD, now_us=NOW_US),
        store.write(hold, "gen-2", 2 * USD, now_us=NOW_US),
        return_exceptions=True,
    )
    assert [isinstance(result, Exception) for result in results] == [False, True, False]
    assert (await store.read(verify)).differences == ()
