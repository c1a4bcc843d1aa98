"""A ledger that does not add up: nothing is served, before any vendor is called, also after a restart."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from gwd import ledger
from gwd.api import money
from gwd.demo import Behaviour
from gwd.jobs.nightly import NightlyCheck
from gwd.ledger import LedgerBroken, quarantine
from gwd.proof import Prover
from gwd.wiring import RunningNode
from tests.flows.clock import MovableClock
from tests.flows.frames import error_of
from tests.flows.started import Started, change, crash, reading, started, stop, vendor
from tests.support.node import Gateway

__all__ = ["started", "vendor"]


def bend(started: Started, by_nano: int) -> None:
    change(started, f"UPDATE lot SET remaining_nano = remaining_nano + {by_nano}")


async def ready(running: RunningNode) -> int:
    async with httpx.AsyncClient() as client:
        return (await client.get(f"http://127.0.0.1:{running.port}/readyz")).status_code


async def is_refused(running: RunningNode, gateway: Gateway) -> None:
    """Every request gets the documented 503, no vendor is called, and whoever asks is told why."""
    calls = len(gateway.vendor.calls)
    for stream in (False, True):
        refused = await gateway.chat(stream=stream)
        assert (refused.status_code, error_of(refused)["code"]) == (503, "ledger_quarantined")
    assert len(gateway.vendor.calls) == calls
    assert await ready(running) == 503
    status = (await gateway.manage("GET", "/operator/status"))["data"]
    assert status["quarantine"] is not None


async def test_books_that_were_changed_are_noticed_before_a_vendor_is_called(
    started: Started,
) -> None:
    running, gateway = await started.start()
    assert (await gateway.chat()).status_code == 200
    assert await ready(running) == 200
    await gateway.at_rest()
    bend(started, -1)
    await is_refused(running, gateway)
    assert running.store.counters.invariant_failures == 1
    assert await running.store.read(ledger.open_reservations) == []
    await stop(running, gateway)

    running, gateway = await started.start()
    await is_refused(running, gateway)
    await stop(running, gateway)

    bend(started, +1)
    running, gateway = await started.start()
    assert await running.store.read(quarantine.noted) is None
    assert (await gateway.chat()).status_code == 200
    await gateway.verify()
    await stop(running, gateway)


async def test_a_settlement_that_would_break_the_books_is_undone_and_stops_the_rest(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.wiring.CHECKPOINT_S", 0.05)
    running, gateway = await started.start()
    started.vendor.script.next(Behaviour(event_delay_s=0.03, tokens=30))
    asking = await reading(gateway, stream=True)
    await asyncio.sleep(0.4)
    bend(started, -1)
    reply = await asking
    assert "ledger_quarantined" in reply.text
    [hold] = await running.store.read(ledger.open_reservations)
    assert hold.progress is not None
    await is_refused(running, gateway)
    await stop(running, gateway)

    running, gateway = await started.start()  # it starts, and serves whoever looks into it
    await is_refused(running, gateway)
    assert len(await running.store.read(ledger.open_reservations)) == 1
    await stop(running, gateway)

    bend(started, +1)
    running, gateway = await started.start()
    await gateway.verify()
    record = await gateway.generation(reply)
    assert (record["status"], record["usage_estimated"]) == ("incomplete", True)
    assert (await gateway.chat()).status_code == 200
    await stop(running, gateway)


async def test_a_hold_that_cannot_be_resolved_keeps_no_other_and_no_start_back(
    started: Started,
) -> None:
    running, gateway = await started.start()
    started.vendor.script.always(Behaviour(stall_after=0))
    asked = [await reading(gateway, stream=True) for _ in range(3)]
    holds = await running.store.read(ledger.open_reservations)
    await crash(running, gateway)
    await asyncio.gather(*asked, return_exceptions=True)
    bad = holds[1].generation_id
    kept = holds[1].context
    assert kept is not None
    spoil = f"UPDATE reservation_context SET context = x'7b' WHERE generation_id = '{bad}'"
    change(started, spoil)

    running, gateway = await started.start()
    [left] = await running.store.read(ledger.open_reservations)
    assert left.generation_id == bad
    await is_refused(running, gateway)
    await stop(running, gateway)

    change(started, spoil.replace("7b", kept.hex()))
    started.vendor.script.clear()
    running, gateway = await started.start()
    await gateway.verify()
    assert (await gateway.chat()).status_code == 200
    await stop(running, gateway)


async def test_a_request_that_was_admitted_when_the_books_broke_calls_no_vendor(
    started: Started,
) -> None:
    running, gateway = await started.start()
    assert (await gateway.chat()).status_code == 200
    calls = len(gateway.vendor.calls)
    real = running.node.line.state.plan_input

    async def broken_meanwhile(*args: Any) -> Any:
        with pytest.raises(LedgerBroken):
            await running.store.write(_breaks)
        return await real(*args)

    object.__setattr__(running.node.line.state, "plan_input", broken_meanwhile)
    refused = await gateway.chat()
    assert (refused.status_code, error_of(refused)["code"]) == (503, "ledger_quarantined")
    assert len(gateway.vendor.calls) == calls
    await gateway.verify()
    await stop(running, gateway)


# The nightly check


async def test_every_night_all_books_are_recomputed_and_a_difference_stops_the_node(
    started: Started,
) -> None:
    """What only a recomputation finds: a spend counter, which no charge looks at."""
    running, gateway = await started.start()
    assert (await gateway.chat()).status_code == 200
    await gateway.verify()
    clock = MovableClock()
    job = NightlyCheck(running.store, running.node.prover, clock, running._quarantine)
    await job.run()
    change(started, "UPDATE spend SET charged_nano = charged_nano + 1 WHERE day = 0")
    await job.run()
    assert running.node.status.quarantine is None, "tonight's turn has been"
    clock.jump(86_400)
    await job.run()
    await is_refused(running, gateway)
    await stop(running, gateway)

    running, gateway = await started.start()
    await is_refused(running, gateway)
    await stop(running, gateway)

    change(started, "UPDATE spend SET charged_nano = charged_nano - 1 WHERE day = 0")
    running, gateway = await started.start()
    assert (await gateway.chat()).status_code == 200
    await gateway.verify()
    await stop(running, gateway)


async def test_a_night_without_a_difference_is_remembered_over_a_restart(started: Started) -> None:
    running, gateway = await started.start()
    clock, reasons, prover = MovableClock(), list[str](), running.node.prover
    await NightlyCheck(running.store, prover, clock, reasons.append).run()
    clock.jump(86_400)
    await NightlyCheck(running.store, prover, clock, reasons.append).run()
    change(started, "UPDATE spend SET charged_nano = charged_nano + 1 WHERE day = 0")
    await NightlyCheck(running.store, prover, clock, reasons.append).run()
    assert reasons == []
    await stop(running, gateway)


async def test_a_long_history_is_proved_by_a_process_of_its_own(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same outcome, a kept head included; and while it runs the writer is free."""
    running, gateway = await started.start()
    head = (await gateway.manage("GET", "/ledger/head"))["data"]
    assert (await gateway.chat()).status_code == 200
    await gateway.at_rest()
    asked: list[dict[str, Any]] = [{}, {"all": True}, {"head": head}]
    here = [await gateway.manage("POST", "/ledger/verify", body, status=200) for body in asked]
    monkeypatch.setattr(money, "SHORT_HISTORY", 0)
    proofs = asyncio.gather(
        *(gateway.manage("POST", "/ledger/verify", body, status=200) for body in asked)
    )
    assert (await gateway.chat()).status_code == 200
    assert not proofs.done()
    apart = await proofs
    assert [found["data"]["ok"] for found in (*here, *apart)] == [True] * 6
    await gateway.at_rest()
    change(started, "UPDATE spend SET charged_nano = charged_nano + 1 WHERE day = 0")
    found = (await gateway.manage("POST", "/ledger/verify", {}, status=200))["data"]
    assert not found["ok"]
    assert {each["invariant"] for each in found["differences"]} == {"I12"}
    change(started, "UPDATE spend SET charged_nano = charged_nano - 1 WHERE day = 0")
    await gateway.verify()
    await stop(running, gateway)


async def test_a_check_that_breaks_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_bytes(b"not a database")
    with pytest.raises(RuntimeError, match="could not be verified"):
        await Prover(str(tmp_path / "no.db")).verify()


def _breaks(_: Any) -> None:
    raise LedgerBroken("the books do not add up")
