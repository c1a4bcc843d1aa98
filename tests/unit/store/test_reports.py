"""Reports: one that takes too long is ended inside SQLite, and holds up nobody else meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gwd.core.errors import Overloaded, ReportTooLarge
from gwd.store import Connection, Store
from tests.support.store import open_store

FOR_EVER = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
HOUR_S = 3_600.0


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path) as opened:
        yield opened


def for_ever(connection: Connection) -> None:
    connection.row(FOR_EVER)


def quickly(connection: Connection) -> int:
    row = connection.row("SELECT 1")
    assert row is not None
    return int(row[0])


async def begun(store: Store, count: int) -> None:
    """Wait until so many reports are being read."""
    while len(store.reports._running) < count:
        await asyncio.sleep(0.001)


async def test_one_that_takes_too_long_is_ended_and_its_connection_goes_on(store: Store) -> None:
    for _ in range(3):
        with pytest.raises(ReportTooLarge) as refused:
            await store.reports.read("org", 0.02, for_ever)
        assert "shorter range" in refused.value.message
        assert await store.reports.read("org", HOUR_S, quickly) == 1


async def test_one_whose_client_has_left_is_ended(store: Store) -> None:
    for _ in range(5):
        asked = asyncio.create_task(store.reports.read("org", HOUR_S, for_ever))
        await begun(store, 1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    assert await store.reports.read("org", HOUR_S, quickly) == 1


async def test_reports_of_one_owner_leave_a_place_for_others_and_ordinary_reads(
    store: Store,
) -> None:
    busy = [asyncio.create_task(store.reports.read("busy", HOUR_S, for_ever)) for _ in range(10)]
    await begun(store, 1)
    assert await store.reports.read("quiet", HOUR_S, quickly) == 1
    assert await store.read(quickly) == 1
    assert await store.write(quickly) == 1
    assert len(store.reports._running) == 1
    for each in busy:
        each.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    assert await store.reports.read("busy", HOUR_S, quickly) == 1


async def test_one_that_waits_too_long_may_be_asked_again(store: Store) -> None:
    first = asyncio.create_task(store.reports.read("org", HOUR_S, for_ever))
    await begun(store, 1)
    with pytest.raises(Overloaded) as refused:
        await store.reports.read("org", 0.02, quickly)
    assert refused.value.retry_after_s == 5
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


async def test_a_report_reads_and_never_writes(store: Store) -> None:
    def write(connection: Connection) -> None:
        connection.execute("DELETE FROM organization")

    with pytest.raises(Exception, match="readonly"):
        await store.reports.read("org", HOUR_S, write)


async def test_closing_ends_what_runs(store: Store) -> None:
    asked = asyncio.create_task(store.reports.read("org", HOUR_S, for_ever))
    await begun(store, 1)
    await store.close()
    with pytest.raises(ReportTooLarge):
        await asked
