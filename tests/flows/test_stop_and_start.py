"""Stopping and starting again: running answers get time, what is left is settled, recovery ends what a crash left."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from gwd import ledger
from gwd.demo import Behaviour
from gwd.pricing.tokens import estimate_text
from gwd.store.lock import AlreadyRunningError
from gwd.wiring import RunningNode
from tests.cases.caserunner.ports import free_port
from tests.flows.frames import error_of, frames_of, text_of
from tests.flows.started import Started, crash, reading, started, stop, vendor

__all__ = ["started", "vendor"]

ROOT = Path(__file__).parents[2]
NANO = 1_000_000_000


async def settled(started: Started) -> tuple[list[Any], Decimal]:
    """All records and what was charged, after another start; the books must add up and nothing may be held."""
    running, gateway = await started.start()
    found = await gateway.manage("GET", "/generations?limit=100")
    await gateway.verify()
    charged_nano = (Decimal(10) - await gateway.balance()) * NANO
    await stop(running, gateway)
    return found["data"], charged_nano


async def test_running_answers_may_finish_before_the_node_stops(started: Started) -> None:
    running, gateway = await started.start(GWD_TIMEOUTS_DRAIN_S="5")
    started.vendor.script.always(Behaviour(event_delay_s=0.02, tokens=25))
    stream = await reading(gateway, stream=True)
    started.vendor.script.always(Behaviour(delay_s=0.5))
    whole = await reading(gateway)
    stopping = asyncio.ensure_future(running.__aexit__(None, None, None))
    await asyncio.sleep(0.1)
    late = await gateway.chat()
    assert (late.status_code, error_of(late)["code"]) == (503, "draining")
    assert late.headers["retry-after"] == "5"
    ready = await gateway.client.get(f"http://127.0.0.1:{running.port}/readyz")
    assert ready.status_code == 503
    assert (await whole).status_code == 200
    assert (await stream).text.endswith("data: [DONE]\n\n")
    await stopping
    await gateway.client.aclose()
    await gateway.operator.aclose()
    records, _ = await settled(started)
    assert sorted(record["status"] for record in records) == ["refused", "succeeded", "succeeded"]


@pytest.mark.alone
async def test_what_has_not_finished_in_time_ends_in_band_and_is_settled(
    started: Started,
) -> None:
    running, gateway = await started.start(GWD_TIMEOUTS_DRAIN_S="0.3")
    started.vendor.script.always(Behaviour(event_delay_s=0.05, tokens=500))
    stream = await reading(gateway, stream=True)
    started.vendor.script.always(Behaviour(stall_after=0))
    silent = await reading(gateway, stream=True)
    started.vendor.script.always(Behaviour(delay_s=30))
    whole = await reading(gateway)
    began_s = time.monotonic()
    await stop_while(running, stream, silent, whole)
    assert time.monotonic() - began_s < 20  # the vendor would take thirty
    await gateway.client.aclose()
    await gateway.operator.aclose()
    cut = stream.result()
    assert error_of(cut)["code"] == "draining"
    assert cut.text.endswith("data: [DONE]\n\n")
    for other in (silent.result(), whole.result()):
        assert (other.status_code, error_of(other)["code"]) == (503, "draining")
        assert other.headers["retry-after"] == "5"
    records, charged_nano = await settled(started)
    by_id = {record["id"]: record for record in records}
    record = by_id[cut.headers["x-gw-generation-id"]]
    assert (record["status"], record["error"]["code"]) == ("incomplete", "draining")
    assert record["tokens_completion"] >= estimate_text(text_of(frames_of(cut.text))) > 0
    for other in (silent.result(), whole.result()):
        record = by_id[other.headers["x-gw-generation-id"]]
        assert (record["status"], record["total_cost"]) == ("failed", 0)
    total = sum(Decimal(str(record["total_cost"])) for record in records)
    assert charged_nano == total * NANO > 0


async def stop_while(running: RunningNode, *tasks: "asyncio.Task[httpx.Response]") -> None:
    await asyncio.gather(running.__aexit__(None, None, None), *tasks)


# Holds that outlive their process


async def test_hold_of_a_call_that_delivered_nothing_is_given_back(started: Started) -> None:
    """Reserved, or dispatched with nothing delivered."""
    running, gateway = await started.start()
    started.vendor.script.always(Behaviour(stall_after=0))
    asking = await reading(gateway, stream=True)
    assert len(await running.store.read(ledger.open_reservations)) == 1
    await crash(running, gateway)
    with pytest.raises(httpx.TransportError):
        await asking
    [record], charged_nano = await settled(started)
    assert record["status"] == "failed"
    assert charged_nano == 0


async def test_hold_of_a_stream_is_settled_by_its_last_checkpoint_and_once(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.wiring.CHECKPOINT_S", 0.1)
    running, gateway = await started.start()
    started.vendor.script.always(Behaviour(event_delay_s=0.02, tokens=500))
    asking = await reading(gateway, stream=True)
    await asyncio.sleep(0.6)
    [hold] = await running.store.read(ledger.open_reservations)
    assert hold.progress is not None
    checkpoint = msgspec.json.decode(hold.progress)
    await crash(running, gateway)
    with pytest.raises(httpx.TransportError):
        await asking
    [record], charged_nano = await settled(started)
    assert (record["status"], record["finish_reason"]) == ("incomplete", "error")
    assert record["tokens_completion"] >= checkpoint["usage"]["output"] > 0
    cost = record["tokens_prompt"] * 2_000 + record["tokens_completion"] * 8_000
    assert charged_nano == cost == Decimal(str(record["total_cost"])) * NANO
    [again], still_nano = await settled(started)
    assert (again, still_nano) == (record, charged_nano)


async def test_hold_that_nothing_owns_is_swept_while_the_node_runs(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hold may not outlive the longest request by more than a minute."""
    monkeypatch.setattr("gwd.wiring.SWEEP_S", 0.1)
    monkeypatch.setattr("gwd.jobs.sweep.SLACK_US", 500_000)  # its owner ends by itself before that
    running, gateway = await started.start(GWD_TIMEOUTS_TOTAL_S="1.5")
    started.vendor.script.always(Behaviour(stall_after=0))
    asking = await reading(gateway, stream=True)
    [owned] = await running.store.read(ledger.open_reservations)
    await running.store.write(_many, owned, 3)
    await asyncio.sleep(0.3)
    assert len(await running.store.read(ledger.open_reservations)) == 4
    assert (await asking).status_code == 503
    for _ in range(100):
        if not await running.store.read(ledger.open_reservations):
            break
        await asyncio.sleep(0.05)
    await gateway.verify()
    await stop(running, gateway)
    records, charged_nano = await settled(started)
    assert [record["status"] for record in records] == ["failed"] * 4
    assert charged_nano == 0


@pytest.mark.alone
async def test_ten_thousand_open_holds_are_resolved_within_two_seconds(started: Started) -> None:
    running, gateway = await started.start()
    started.vendor.script.always(Behaviour(stall_after=0))
    asking = await reading(gateway, stream=True)
    [hold] = await running.store.read(ledger.open_reservations)
    await crash(running, gateway)
    with pytest.raises(httpx.TransportError):
        await asking
    other = started.nodes.running()
    await other.__aenter__()
    await other.store.write(_many, hold, 10_000)
    await other.__aexit__(None, None, None)
    began_s = time.process_time()
    running, gateway = await started.start()
    took_s = time.process_time() - began_s
    await gateway.verify()
    await stop(running, gateway)
    print(f"ready {took_s:.2f} s after 10,000 open holds")
    assert took_s < 6  # two seconds on a machine of its own


def _many(connection: Any, hold: ledger.OpenReservation, count: int) -> None:
    for number in range(count):
        generation_id = f"gen-{number:022d}"
        assert hold.context is not None
        context = hold.context.replace(hold.generation_id.encode(), generation_id.encode())
        ledger.reserve(
            connection,
            ledger.NewReservation(
                generation_id=generation_id,
                organization_id=hold.organization_id,
                workspace_id=hold.workspace_id,
                key_id=hold.key_id,
                family_id=hold.family_id,
                amount_nano=1_000,
                boot_id=hold.boot_id,
                context=context,
            ),
            now_us=hold.created_at_us,
        )


# The process


async def test_second_instance_is_refused_while_the_first_serves(started: Started) -> None:
    running, gateway = await started.start()
    second = started.nodes.running()
    with pytest.raises(AlreadyRunningError, match=f"pid {os.getpid()}"):
        await second.__aenter__()
    assert (await gateway.chat()).status_code == 200
    await gateway.verify()
    await stop(running, gateway)


async def test_sigterm_with_an_open_stream_ends_with_zero_and_nothing_held(
    started: Started,
) -> None:
    running, gateway = await started.start()
    await stop(running, gateway)
    port = free_port()
    started.vendor.script.always(Behaviour(event_delay_s=0.05, tokens=500))
    child = subprocess.Popen(
        [
            *(sys.executable, "-m", "gwd", "serve", "--config"),
            *(str(started.nodes.directory / "node" / "gwd.toml"), "--port", str(port)),
        ],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "GWD_TIMEOUTS_DRAIN_S": "0.3",
        },
        stderr=subprocess.DEVNULL,
    )
    try:
        base_url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=base_url, timeout=20) as client:
            await ready(client)
            body = {"model": "demo/chat", "stream": True}
            asking = asyncio.ensure_future(
                client.post(
                    "/api/v1/chat/completions",
                    json={**body, "messages": [{"role": "user", "content": "hello"}]},
                    headers={"authorization": f"Bearer {started.key}"},
                )
            )
            await started.vendor.calls.wait_for(1)
            await asyncio.sleep(0.3)
            child.send_signal(signal.SIGTERM)
            reply = await asking
        assert error_of(reply)["code"] == "draining"
        assert await asyncio.to_thread(child.wait, 10) == 0
    finally:
        child.kill()
        child.wait()
    [record], charged_nano = await settled(started)
    assert record["status"] == "incomplete"
    assert charged_nano == Decimal(str(record["total_cost"])) * NANO > 0


async def ready(client: httpx.AsyncClient) -> None:
    for _ in range(400):
        try:
            if (await client.get("/readyz")).status_code == 200:
                return
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.02)
    raise AssertionError("the node did not start")
