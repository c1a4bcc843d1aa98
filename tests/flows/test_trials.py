"""What rests is tried by one call at a time, and nobody is refused for the sake of that."""

import asyncio
from typing import Any

import httpx
import pytest

from gwd.demo import Behaviour
from tests.flows.clock import MovableClock
from tests.flows.conftest import ORDER, A, B, Opened, add_backup
from tests.flows.frames import error_of
from tests.support.node import Gateway

BUSY = Behaviour(status=503)
SLOW = Behaviour(delay_s=0.8)
MANY = 12


async def _rested(gateway: Gateway, clock: MovableClock) -> None:
    """A has failed, rested, and its rest is over."""
    clock.stop()
    gateway.vendor.script.next(BUSY, model=A)
    await gateway.chat(provider=ORDER)
    clock.pass_by(11)
    gateway.vendor.calls.clear()


def _asked(gateway: Gateway, number: int = MANY, **fields: Any) -> "list[asyncio.Task[Any]]":
    return [
        asyncio.create_task(gateway.chat(f"request {each}", **fields)) for each in range(number)
    ]


async def _answers(tasks: "list[asyncio.Task[httpx.Response]]") -> list[int]:
    return [reply.status_code for reply in await asyncio.gather(*tasks)]


@pytest.mark.parametrize("stream", [False, True])
async def test_after_a_rest_one_call_is_on_trial_and_the_others_wait_for_it(
    opened: Opened, clock: MovableClock, *, stream: bool
) -> None:
    async with opened(clock) as gateway:
        await _rested(gateway, clock)
        # The answer of the first is long: the others wait for its beginning, not for its end.
        gateway.vendor.script.next(
            Behaviour(delay_s=1, event_delay_s=0.05 if stream else 0, tokens=40), model=A
        )
        tasks = _asked(gateway, stream=stream)
        await asyncio.sleep(0.3)
        assert len(gateway.vendor.calls) == 1
        first = gateway.vendor.calls[0]
        assert await _answers(tasks) == [200] * MANY
        assert len(gateway.vendor.calls) == MANY
        assert not stream or not first.closed_early


async def test_while_one_is_on_trial_the_others_go_elsewhere_at_once(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        await add_backup(gateway)
        await _rested(gateway, clock)
        gateway.vendor.script.next(Behaviour(delay_s=1.5), model=A)
        tasks = _asked(gateway, provider=ORDER)
        await asyncio.sleep(0.5)
        assert [len(gateway.vendor.calls.of(name)) for name in (A, B)] == [1, MANY - 1]
        late = await gateway.chat(provider=ORDER)  # planned when the trial was known
        assert late.status_code == 200
        assert gateway.vendor.calls.last.model == B
        assert await _answers(tasks) == [200] * MANY
        assert (await gateway.chat(provider=ORDER)).status_code == 200
        assert gateway.vendor.calls.last.model == A


async def test_a_trial_that_fails_is_followed_by_the_next_and_each_has_its_own(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        await _rested(gateway, clock)
        calls = gateway.vendor.calls
        gateway.vendor.script.next(*[Behaviour(status=503, delay_s=0.1)] * 3, SLOW, model=A)
        tasks = _asked(gateway)
        while len(calls) < 4:
            assert sum(not call.finished.is_set() for call in calls) <= 1
            await asyncio.sleep(0.005)
        assert sorted(await _answers(tasks)) == [200] * (MANY - 3) + [503] * 3


async def test_also_what_rests_still_is_tried_by_one_at_a_time(gateway: Gateway) -> None:
    gateway.vendor.script.next(BUSY, SLOW, model=A)
    await gateway.chat()
    tasks = _asked(gateway)
    await asyncio.sleep(0.2)
    assert len(gateway.vendor.calls) == 2
    assert await _answers(tasks) == [200] * MANY


@pytest.mark.parametrize("way", ["leaves", "is wrong", "cannot be sent"])
async def test_a_trial_that_says_nothing_gives_its_place_to_the_next(
    opened: Opened, clock: MovableClock, way: str
) -> None:
    async with opened(clock) as gateway:
        await _rested(gateway, clock)
        fields: dict[str, Any] = {"stream": True}
        if way == "leaves":
            gateway.vendor.script.next(Behaviour(stall_after=-1), model=A)
        elif way == "is wrong":
            gateway.vendor.script.next(Behaviour(status=400, delay_s=0.3), model=A)
        else:
            fields = {"messages": [{"role": "tool", "tool_call_id": "none", "content": "x"}]}
        first = asyncio.create_task(gateway.chat("first", **fields))
        await asyncio.sleep(0.15)
        others = _asked(gateway, 3)
        await asyncio.sleep(0.1)
        if way == "leaves":
            assert len(gateway.vendor.calls) == 1
            first.cancel()
        assert await _answers(others) == [200] * 3
        await asyncio.gather(first, return_exceptions=True)


async def test_who_waits_for_a_key_that_is_refused_meanwhile_makes_no_call(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        await _rested(gateway, clock)
        gateway.vendor.script.next(Behaviour(status=401, delay_s=0.3), model=A)
        replies = await asyncio.gather(*_asked(gateway))
        assert len(gateway.vendor.calls) == 1
        assert sorted(error_of(reply)["code"] for reply in replies) == (
            ["no_available_endpoint"] * (MANY - 1) + ["upstream_error"]
        )


async def test_who_waits_for_one_that_is_throttled_meanwhile_is_told_when_it_opens(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        await _rested(gateway, clock)
        throttled = Behaviour(status=429, retry_after="20", delay_s=0.3)
        gateway.vendor.script.next(throttled, model=A)
        replies = await asyncio.gather(*_asked(gateway))
        assert len(gateway.vendor.calls) == 1
        assert {error_of(reply)["code"] for reply in replies} == {"endpoints_throttled"}
        assert {reply.headers["retry-after"] for reply in replies} == {"20"}


async def test_who_has_waited_long_enough_goes_all_the_same(
    opened: Opened, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.pipeline.dispatch.choice.PATIENCE_S", 0.5)
    async with opened(clock) as gateway:
        await _rested(gateway, clock)
        gateway.vendor.script.next(Behaviour(stall_after=-1), model=A)
        hanging = asyncio.create_task(gateway.chat("hangs", stream=True))
        await gateway.vendor.calls.wait_for(1)
        other = asyncio.create_task(gateway.chat("other"))
        await asyncio.sleep(0.25)
        assert len(gateway.vendor.calls) == 1
        assert (await other).status_code == 200
        # The rest is over by that answer, although the first call hangs still.
        assert (await gateway.chat("third")).status_code == 200
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)


async def test_a_key_that_rests_is_on_trial_at_all_its_endpoints_at_once(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        clock.stop()
        gateway.vendor.script.next(Behaviour(status=402, message="Insufficient credits"), model=A)
        await gateway.chat()
        clock.pass_by(901)
        gateway.vendor.calls.clear()
        gateway.vendor.script.next(SLOW, model=A)
        first = asyncio.create_task(gateway.chat())
        await gateway.vendor.calls.wait_for(1)
        other = asyncio.create_task(gateway.chat(model="demo/chat-b"))
        await asyncio.sleep(0.2)
        assert len(gateway.vendor.calls) == 1
        assert [(await each).status_code for each in (first, other)] == [200, 200]


async def test_a_rest_that_ended_long_ago_is_forgotten(opened: Opened, clock: MovableClock) -> None:
    async with opened(clock) as gateway:
        await _rested(gateway, clock)
        clock.pass_by(901)
        gateway.vendor.script.always(SLOW, model=A)
        tasks = _asked(gateway)
        await gateway.vendor.calls.wait_for(MANY)
        assert await _answers(tasks) == [200] * MANY
