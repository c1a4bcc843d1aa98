"""A disk that is full, broken, or locked by somebody else: nothing acknowledged is lost, nothing is charged twice."""

import asyncio
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import apsw
import httpx
import pytest

from gwd import ledger
from gwd.core.errors import StorageUnavailable
from gwd.demo import Behaviour
from gwd.pipeline import inference
from gwd.store import Connection, Store, writer
from tests.cases.caserunner.ports import free_port
from tests.flows.conftest import Opened
from tests.flows.disk import Disk
from tests.flows.frames import error_of, frames_of, text_of
from tests.support.money import USD, add, hold, open_organization
from tests.support.node import Gateway, Nodes
from tests.support.store import NOW_US, open_store

ROOT = Path(__file__).parents[2]
NANO = 1_000_000_000


@pytest.fixture
async def store(disk: Disk, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path, _fund) as opened:
        yield opened


def _fund(connection: Connection) -> None:
    open_organization(connection, now_us=NOW_US)
    add(connection, 100 * USD, now_us=NOW_US)


def _large(connection: Connection) -> None:
    connection.execute(
        "UPDATE organization SET name = ?", ("x" * 2_000_000,)
    )  # two megabytes that the disk has no room for


async def charged_nano(gateway: Gateway) -> Decimal:
    return (Decimal(10) - await gateway.balance()) * NANO


# The batch


async def test_full_disk_takes_from_a_batch_only_what_does_not_fit(
    disk: Disk, store: Store
) -> None:
    disk.free = 1_000_000
    results = await asyncio.gather(
        *(store.write(hold, f"gen-{n}", 1 * USD, now_us=NOW_US) for n in range(5)),
        store.write(_large),
        *(store.write(hold, f"gen-{n}", 1 * USD, now_us=NOW_US) for n in range(5, 10)),
        return_exceptions=True,
    )
    failed = [result for result in results if isinstance(result, BaseException)]
    assert [type(error) for error in failed] == [StorageUnavailable]
    assert isinstance(results[5], StorageUnavailable)
    assert (await store.read(ledger.verify)).ok
    assert len(await store.read(ledger.open_reservations)) == 10


async def test_full_disk_fails_all_of_a_batch_and_the_next_write_works(
    disk: Disk, store: Store
) -> None:
    disk.free = 0
    results = await asyncio.gather(
        *(store.write(hold, f"gen-{n}", 1 * USD, now_us=NOW_US) for n in range(10)),
        return_exceptions=True,
    )
    assert {type(result) for result in results} == {StorageUnavailable}
    assert await store.read(ledger.open_reservations) == []
    disk.free = None
    assert await store.write(hold, "gen-next", 1 * USD, now_us=NOW_US) == 99 * USD
    assert not store.failed
    assert (await store.read(ledger.verify)).ok


async def test_after_an_io_error_nothing_is_written_any_more(disk: Disk, store: Store) -> None:
    """Not even if the disk comes back."""
    disk.broken = True
    with pytest.raises(StorageUnavailable):
        await store.write(hold, "gen-1", 1 * USD, now_us=NOW_US)
    disk.broken = False
    assert store.failed
    with pytest.raises(StorageUnavailable):
        await store.write(hold, "gen-2", 1 * USD, now_us=NOW_US)
    assert await store.read(ledger.open_reservations) == []


@pytest.mark.parametrize("step", ["run", "commit"])
async def test_writer_that_breaks_itself_answers_everybody_and_gives_up(
    disk: Disk, store: Store, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Callers do not wait for ever when the writer fails unexpectedly."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(store._writer, step, broken)
    results = await asyncio.wait_for(
        asyncio.gather(
            *(store.write(hold, f"gen-{n}", 1 * USD, now_us=NOW_US) for n in range(3)),
            return_exceptions=True,
        ),
        5,
    )
    assert {type(result) for result in results} == {StorageUnavailable}
    assert store.failed


@pytest.mark.alone
async def test_locked_file_fails_the_whole_batch_after_one_wait(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait for each function of the batch would be a hang."""
    monkeypatch.setattr(writer, "BUSY_TIMEOUT_MS", 300)
    other = apsw.Connection(store.path)
    other.execute("BEGIN IMMEDIATE")
    began_s = time.monotonic()
    results = await asyncio.gather(
        *(store.write(hold, f"gen-{n}", 1 * USD, now_us=NOW_US) for n in range(40)),
        return_exceptions=True,
    )
    assert {type(result) for result in results} == {StorageUnavailable}
    assert time.monotonic() - began_s < 8  # a wait for each would be 12 s
    other.execute("ROLLBACK")
    other.close()
    assert await store.write(hold, "gen-next", 1 * USD, now_us=NOW_US) == 99 * USD


# The line


async def test_requests_on_a_full_disk_are_503s_and_every_answer_given_is_charged(
    disk: Disk, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "SETTLE_WAIT_S", 0.5)
    monkeypatch.setattr("gwd.pipeline.settle.settle_wait.LONGEST_PAUSE_S", 0.1)
    replies = [await gateway.chat() for _ in range(3)]
    disk.free = 100_000
    replies += await asyncio.gather(*(gateway.chat() for _ in range(30)))
    statuses = Counter(reply.status_code for reply in replies)
    assert set(statuses) == {200, 503}
    refused = [reply for reply in replies if reply.status_code == 503]
    assert {error_of(reply)["code"] for reply in refused} == {"storage_unavailable"}
    assert all("retry-after" in reply.headers for reply in refused)
    disk.free = None
    assert (await gateway.chat()).status_code == 200
    await gateway.at_rest()
    costs = [
        (await gateway.generation(reply))["total_cost"]
        for reply in replies
        if reply.status_code == 200
    ]
    last = (await charged_nano(gateway)) - sum(Decimal(str(cost)) for cost in costs) * NANO
    assert 0 < last < 1_000_000  # the one after the disk had room again, and no other


async def test_settlement_waits_for_room_on_the_disk(disk: Disk, gateway: Gateway) -> None:
    """No settlement of a request in flight is lost."""
    gateway.vendor.script.next(Behaviour(first_event_delay_s=0.3))
    asking = asyncio.ensure_future(gateway.chat(stream=True))
    await gateway.vendor.calls.wait_for(1)
    disk.free = 0
    await asyncio.sleep(0.7)
    assert not asking.done()
    disk.free = None
    reply = await asking
    assert reply.text.endswith("data: [DONE]\n\n")
    assert [f for f in frames_of(reply.text) if "error" in f] == []
    record = await gateway.generation(reply)
    assert record["status"] == "succeeded"
    assert await charged_nano(gateway) == Decimal(str(record["total_cost"])) * NANO > 0


async def test_stream_whose_settlement_is_late_ends_with_an_error_and_is_settled_later(
    disk: Disk, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "SETTLE_WAIT_S", 0.3)
    monkeypatch.setattr("gwd.pipeline.settle.settle_wait.LONGEST_PAUSE_S", 0.1)
    gateway.vendor.script.next(Behaviour(first_event_delay_s=0.2))
    asking = asyncio.ensure_future(gateway.chat(stream=True))
    await gateway.vendor.calls.wait_for(1)
    disk.free = 0
    reply = await asking
    assert error_of(reply)["code"] == "storage_unavailable"
    assert text_of(frames_of(reply.text))
    assert gateway.running.node.line.live
    disk.free = None
    await gateway.at_rest()
    record = await gateway.generation(reply)
    assert await charged_nano(gateway) == Decimal(str(record["total_cost"])) * NANO > 0


async def test_whole_answer_whose_settlement_is_late_is_a_503_and_never_charged(
    disk: Disk, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failed requests are never charged, whatever the disk does afterwards."""
    monkeypatch.setattr(inference, "SETTLE_WAIT_S", 0.3)
    monkeypatch.setattr("gwd.pipeline.settle.settle_wait.LONGEST_PAUSE_S", 0.1)
    gateway.vendor.script.next(Behaviour(delay_s=0.2))
    asking = asyncio.ensure_future(gateway.chat())
    await gateway.vendor.calls.wait_for(1)
    disk.free = 0
    reply = await asking
    assert (reply.status_code, error_of(reply)["code"]) == (503, "storage_unavailable")
    disk.free = None
    await gateway.at_rest()
    record = await gateway.generation(reply)
    assert (record["status"], record["total_cost"]) == ("failed", 0)
    assert await charged_nano(gateway) == 0


async def test_whole_answer_given_up_while_the_writer_is_busy_is_not_charged_behind_its_client(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "SETTLE_WAIT_S", 0.2)
    gateway.vendor.script.next(Behaviour(delay_s=0.2))
    asking = asyncio.ensure_future(gateway.chat())
    await gateway.vendor.calls.wait_for(1)
    commit = gateway.store._writer.commit

    def slow_commit() -> None:
        time.sleep(1)
        commit()

    monkeypatch.setattr(gateway.store._writer, "commit", slow_commit)
    blocking = asyncio.ensure_future(gateway.store.write(lambda _: None))
    reply = await asking
    assert reply.status_code == 503
    monkeypatch.setattr(gateway.store._writer, "commit", commit)
    await blocking
    await gateway.at_rest()
    assert (await gateway.generation(reply))["status"] == "failed"
    assert await charged_nano(gateway) == 0


async def test_locked_file_is_a_503_before_anything_is_dispatched(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BUSY_TIMEOUT_MS", 200)
    async with opened() as gateway:
        other = apsw.Connection(gateway.store.path)
        other.execute("BEGIN IMMEDIATE")
        replies = await asyncio.gather(*(gateway.chat() for _ in range(10)))
        assert {reply.status_code for reply in replies} == {503}
        assert {error_of(reply)["code"] for reply in replies} == {"storage_unavailable"}
        assert gateway.vendor.calls == []
        health = await gateway.client.get(f"http://127.0.0.1:{gateway.running.port}/healthz")
        assert health.status_code == 200
        other.execute("ROLLBACK")
        other.close()
        assert (await gateway.chat()).status_code == 200
        assert (await charged_nano(gateway)) > 0


# The process


CHILD = """
import os, signal, sys
from pathlib import Path
from gwd import settings
from gwd.node.serve import serve
from tests.flows.disk import Disk

disk = Disk()
signal.signal(signal.SIGUSR1, lambda *_: setattr(disk, "broken", True))
read = settings.load(Path(sys.argv[1]), os.environ, "127.0.0.1", int(sys.argv[2]))
raise SystemExit(serve(read, os.environ))
"""


@pytest.mark.alone
async def test_broken_disk_ends_the_daemon_at_once_with_a_failure(tmp_path: Path) -> None:
    """Stop admitting, exit non-zero within a second, recover on restart."""
    nodes = Nodes(tmp_path)
    management_key = nodes.init()
    port = free_port()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "node" / "gwd.toml"), str(port)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers={"authorization": f"Bearer {management_key}"},
        ) as client:
            for _ in range(400):
                try:
                    assert (await client.get("/readyz")).status_code == 200
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
            child.send_signal(signal.SIGUSR1)
            await asyncio.sleep(0.1)
            began_s = time.monotonic()
            refused = await client.post("/api/v1/keys", json={"name": "after"})
            assert refused.status_code == 503
            code = await asyncio.to_thread(child.wait, 30)
            assert (code, time.monotonic() - began_s < 20) == (1, True)
    finally:
        child.kill()
        child.wait()
        assert child.stderr is not None
        said = child.stderr.read()
        child.stderr.close()
    assert "the disk failed" in said
    async with nodes.running() as running:
        assert (await running.store.read(ledger.verify)).ok


# The log


async def test_a_long_log_is_moved_into_the_file_while_writing_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LONG_LOG_PAGES", 50)
    log = Path(f"{store.path}-wal")
    for n in range(100):
        await store.write(hold, f"gen-{n}", USD // 10, now_us=NOW_US)
    assert log.stat().st_size < 300 * 4_120
    assert (await store.read(ledger.verify)).ok


async def test_the_log_gets_its_length_before_it_is_needed(store: Store) -> None:
    log = Path(f"{store.path}-wal")
    length = Path(store.path).stat().st_size
    await store.reserve_log()
    reserved = log.stat().st_size
    assert reserved >= 4_000 * 4_096
    assert Path(store.path).stat().st_size == length
    await store.write(hold, "gen-1", USD, now_us=NOW_US)
    assert log.stat().st_size == reserved
    assert (await store.read(ledger.verify)).ok


async def test_a_disk_without_room_for_the_log_is_written_to_all_the_same(
    disk: Disk, store: Store
) -> None:
    disk.free = 1_000_000
    await store.reserve_log()
    await store.write(hold, "gen-1", USD, now_us=NOW_US)
    assert (await store.read(ledger.verify)).ok
