"""A vendor that is slow takes no places from the others, and being full is no mark against it."""

import asyncio

import pytest

from gwd.demo import Behaviour
from tests.flows.conftest import ORDER, A, B, Opened
from tests.flows.frames import error_of, receipt_of
from tests.support.node import Gateway
from tests.vendor import StrictVendor

HANGS = Behaviour(stall_after=-1)


async def _hanging(gateway: Gateway, number: int) -> "list[asyncio.Task[object]]":
    """So many calls that the vendor does not answer."""
    gateway.vendor.script.next(*[HANGS] * number, model=A)
    calls = len(gateway.vendor.calls)
    tasks: list[asyncio.Task[object]] = [
        asyncio.create_task(gateway.chat("hangs", stream=True, provider=ORDER))
        for _ in range(number)
    ]
    await gateway.vendor.calls.wait_for(calls + number)
    return tasks


async def test_what_finds_no_place_goes_to_the_next_endpoint(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.upstream.origins.WAIT_S", 0.1)
    async with opened(GWD_UPSTREAM_MAX_IN_FLIGHT_PER_ORIGIN="3") as gateway, StrictVendor() as far:
        await gateway.add_provider("backup", "openai_chat", far.openai_url, "sk-backup-1")
        await gateway.add_endpoint("demo/chat", "backup", B)
        hanging = await _hanging(gateway, 3)
        url = f"http://127.0.0.1:{gateway.running.port}/metrics"
        metrics = (await gateway.operator.get(url)).text
        assert 'gwd_upstream_in_flight{provider="openai-chat"} 3.0' in metrics
        assert 'gwd_upstream_in_flight{provider="backup"} 0.0' in metrics
        reply = await gateway.chat(provider=ORDER, headers={"x-gw-metadata": "enabled"})
        assert (reply.status_code, len(far.calls)) == (200, 1)
        [fallback] = receipt_of(reply)["routing"]["fallbacks"]
        assert fallback["reason"] == "overloaded"
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        await gateway.at_rest()
        # It was our own limit: nothing rests, and the first is first again.
        assert gateway.running.node.state.health._rests._pairs == {}
        assert (await gateway.chat(provider=ORDER)).status_code == 200
        assert len(far.calls) == 1


async def test_where_nothing_else_is_left_it_is_told_and_a_free_place_is_used(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.upstream.origins.WAIT_S", 0.1)
    async with opened(GWD_UPSTREAM_MAX_IN_FLIGHT_PER_ORIGIN="1") as gateway:
        [hanging] = await _hanging(gateway, 1)
        refused = await gateway.chat()
        assert (refused.status_code, error_of(refused)["code"]) == (503, "upstream_unavailable")
        monkeypatch.setattr("gwd.upstream.origins.WAIT_S", 10)
        waiting = asyncio.create_task(gateway.chat())
        await asyncio.sleep(0.1)
        assert len(gateway.vendor.calls) == 1
        hanging.cancel()
        assert (await waiting).status_code == 200
        await asyncio.gather(hanging, return_exceptions=True)
