"""What the sweep finds: one that cannot be dealt with keeps no other back."""

import asyncio
from typing import Any

import pytest

from gwd import ledger
from gwd.demo import Behaviour
from gwd.pipeline.dispatch.dispatch import Dispatch
from tests.flows.started import (
    Started,
    change,
    reading,
    second_organization,
    started,
    stop,
    vendor,
)

__all__ = ["started", "vendor"]


async def test_the_sweep_leaves_out_a_hold_that_cannot_be_resolved(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.wiring.SWEEP_S", 0.05)
    monkeypatch.setattr("gwd.jobs.sweep.SLACK_US", 0)
    running, gateway = await started.start(GWD_TIMEOUTS_TOTAL_S="1")
    started.vendor.script.always(Behaviour(stall_after=0))
    asked = [await reading(gateway, stream=True) for _ in range(2)]
    first, second = await running.store.read(ledger.open_reservations)
    live = dict(running.node.line.live)
    running.node.line.live.clear()
    for generation in live.values():
        generation._on_record = True  # it will never settle what it holds
        assert generation.task is not None
        generation.task.cancel()
    change(
        started,
        f"UPDATE reservation_context SET context = x'7b' WHERE generation_id = '{first.generation_id}'",
    )
    async with asyncio.timeout(5):
        while len(held := await running.store.read(ledger.open_reservations)) > 1:
            await asyncio.sleep(0.05)
    assert [hold.generation_id for hold in held] == [first.generation_id]
    assert running.node.status.quarantine is None
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await running.store.write(_put_back, first)
    async with asyncio.timeout(5):
        while await running.store.read(ledger.open_reservations):
            await asyncio.sleep(0.05)
    assert (await running.store.read(ledger.verify)).ok
    await stop(running, gateway)
    assert second.generation_id != first.generation_id


async def test_credit_of_one_expires_although_anothers_cannot(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.wiring.SWEEP_S", 0.05)
    running, gateway = await started.start()
    organization_id, _ = await second_organization(gateway)
    real, broken = ledger.expire, await gateway.organization_id()

    def expire(connection: Any, name: str, **times: int) -> Any:
        if name == broken:
            raise RuntimeError("not this one")
        return real(connection, name, **times)

    monkeypatch.setattr("gwd.jobs.sweep.ledger.expire", expire)
    await gateway.store.write(_let_expire, running.node.clock.now_us())
    async with asyncio.timeout(5):
        while (await gateway.store.read(_pool, organization_id)) != 0:
            await asyncio.sleep(0.02)
    assert (await gateway.store.read(_pool, broken)) > 0
    await stop(running, gateway)


def _let_expire(connection: Any, now_us: int) -> None:
    connection.execute("UPDATE lot SET expires_at = ?", (now_us,))
    connection.execute("UPDATE account SET next_expiry_at = ?", (now_us,))


def _pool(connection: Any, organization_id: str) -> int:
    row = connection.row(
        "SELECT pool_nano FROM account WHERE organization_id = ?", (organization_id,)
    )
    return int(row[0])


def _put_back(connection: Any, hold: ledger.OpenReservation) -> None:
    connection.execute(
        "UPDATE reservation_context SET context = ? WHERE generation_id = ?",
        (hold.context, hold.generation_id),
    )


@pytest.mark.parametrize(
    ("hears", "slack_us"),
    [(True, 1_000_000), (False, 1_000_000), (False, 0)],
    ids=["ends when told", "is given up", "is given up untold"],
)
async def test_a_request_past_its_deadline_is_ended_and_gives_back_its_hold(
    started: Started, monkeypatch: pytest.MonkeyPatch, *, hears: bool, slack_us: int
) -> None:
    """Whether a generation ends when it is stopped or not: its client is told, and it does not keep its hold."""
    monkeypatch.setattr("gwd.wiring.SWEEP_S", 0.05)
    monkeypatch.setattr("gwd.jobs.sweep.SLACK_US", slack_us)
    released = asyncio.Event()

    async def hangs(*_: Any) -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                if hears:
                    raise

    monkeypatch.setattr(Dispatch, "run", hangs)
    running, gateway = await started.start(GWD_TIMEOUTS_TOTAL_S="1")
    try:
        asked = asyncio.ensure_future(gateway.chat())
        async with asyncio.timeout(5):
            while not await running.store.read(ledger.open_reservations):
                await asyncio.sleep(0.02)
        [generation_id] = running.node.line.live
        async with asyncio.timeout(5):
            while await running.store.read(ledger.open_reservations):
                await asyncio.sleep(0.05)
        async with asyncio.timeout(5):
            reply = await asked
        assert reply.status_code == 502
        assert "deadline" in reply.json()["error"]["message"]
        assert (generation_id in running.node.line.live) != hears
    finally:
        released.set()  # what hears nothing would outlive the test
    await gateway.at_rest()
    assert (await running.store.read(ledger.verify)).ok
    await stop(running, gateway)


async def test_a_jump_of_the_wall_clock_ends_no_running_request(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.wiring.SWEEP_S", 0.05)
    running, gateway = await started.start()
    started.vendor.script.next(Behaviour(tokens=20, event_delay_s=0.03))
    asked = await reading(gateway, stream=True)
    clock = running.node.clock
    monkeypatch.setattr(type(clock), "now_us", lambda _, real=clock.now_us: real() + 86_400_000_000)
    reply = await asked
    assert reply.text.endswith("data: [DONE]\n\n")
    assert "error" not in reply.text
    await gateway.at_rest()
    await stop(running, gateway)
