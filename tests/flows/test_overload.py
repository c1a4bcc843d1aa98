"""More than the node can do: new inference is refused, what is under way ends as it would, and management answers."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from gwd.demo import Behaviour
from gwd.jobs import memory
from tests.flows.conftest import Opened
from tests.flows.frames import error_of, frames_of, text_of
from tests.flows.started import second_organization
from tests.support.node import Gateway

HANGS = Behaviour(stall_after=2)
BODIES: dict[str, dict[str, Any]] = {
    "/chat/completions": {"model": "demo/chat", "messages": [{"role": "user", "content": "a"}]},
    "/messages": {
        "model": "demo/claude",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "a"}],
    },
    "/responses": {"model": "demo/responses", "input": "a"},
    "/completions": {"model": "demo/chat", "prompt": "a"},
    "/embeddings": {"model": "demo/embed", "input": "a"},
}
CODES = {"/responses": "server_is_overloaded"}


class Hanging:
    """A streamed answer whose vendor has fallen silent."""

    def __init__(self, task: "asyncio.Task[httpx.Response]") -> None:
        self.task = task

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def hanging(
    gateway: Gateway, number: int = 1, content: str = "hello"
) -> AsyncIterator[list[Hanging]]:
    calls = len(gateway.vendor.calls)
    gateway.vendor.script.next(*[HANGS] * number)
    made = [Hanging(asyncio.create_task(gateway.chat(content, stream=True))) for _ in range(number)]
    await gateway.vendor.calls.wait_for(calls + number)
    try:
        yield made
    finally:
        for each in made:
            await each.leave()
        await gateway.at_rest()


async def scraped(gateway: Gateway) -> dict[str, float]:
    url = f"http://127.0.0.1:{gateway.running.port}/metrics"
    lines = (await gateway.operator.get(url)).text.splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if line.startswith("gwd_"))
    }


async def management_answers(gateway: Gateway) -> None:
    root = f"http://127.0.0.1:{gateway.running.port}"
    assert (await gateway.operator.get(f"{root}/healthz")).text == "ok"
    assert (await gateway.operator.get(f"{root}/readyz")).status_code == 200
    made = await gateway.manage("POST", "/keys", {"name": "while it is busy"})
    await gateway.manage("DELETE", f"/keys/{made['data']['id']}", status=200)
    assert (await gateway.client.get("/models")).status_code == 200


async def test_beyond_the_cap_every_dialect_is_told_to_come_again_and_nothing_is_held(
    opened: Opened,
) -> None:
    async with opened(GWD_LIMITS_IN_FLIGHT="2") as gateway:
        async with hanging(gateway, 2) as [first, second]:
            before = await scraped(gateway)
            for path, body in BODIES.items():
                refused = await gateway.client.post(path, json=body)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "1"), path
                error = refused.json()["error"]
                assert "requests under way" in error["message"], path
                assert CODES.get(path, "overloaded") in (error.get("code"), error["type"]) or (
                    error["type"] == "overloaded_error"
                )
                assert refused.headers["x-gw-generation-id"]
            assert error["metadata"] == {"cause": "in_flight"}
            found = await scraped(gateway)
            assert found['gwd_shed_total{cause="in_flight"}'] == len(BODIES)
            assert found["gwd_in_flight"] == found["gwd_open_reservations"] == 2
            assert before["gwd_in_flight"] == 2
            await management_answers(gateway)
            counted = await gateway.client.post("/messages/count_tokens", json=BODIES["/messages"])
            assert counted.status_code == 200
            await first.leave()
            await _until(lambda: gateway.running.node.load.in_flight == 1)
            assert (await gateway.chat()).status_code == 200
            assert not second.task.done()
        assert gateway.running.node.load.in_flight == gateway.running.node.load.body_bytes == 0


async def test_what_was_shed_is_on_record_once_a_key_and_second(opened: Opened) -> None:
    async with opened(GWD_LIMITS_IN_FLIGHT="1") as gateway, hanging(gateway):
        refused = await asyncio.gather(*(gateway.chat() for _ in range(20)))
        assert {reply.status_code for reply in refused} == {503}
        gateway.running.node.refusals.flush()
        await management_answers(gateway)  # written after what was counted
        rows = await gateway.store.read(
            lambda c: list(
                c.rows("SELECT occurrences FROM generation WHERE error_code = 'overloaded'")
            )
        )
        assert sum(count for [count] in rows) == 20
        assert len(rows) < 20


async def test_an_organization_has_a_cap_of_its_own_and_the_others_are_served(
    opened: Opened,
) -> None:
    async with opened(GWD_LIMITS_IN_FLIGHT_PER_ORGANIZATION="1") as gateway:
        _, other = await second_organization(gateway)
        async with hanging(gateway):
            refused = await gateway.chat()
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            error = error_of(refused)
            assert (error["code"], error["metadata"]) == ("too_many_in_flight", {"limit": 1})
            served = await gateway.chat(headers={"authorization": f"Bearer {other}"})
            assert served.status_code == 200
        assert (await gateway.chat()).status_code == 200


async def test_bodies_under_way_have_a_sum_that_small_ones_and_the_first_may_pass(
    opened: Opened,
) -> None:
    large = "word " * 30_000
    async with opened(GWD_LIMITS_BODIES_MAX_BYTES="100000") as gateway:
        async with hanging(gateway, content=large):
            assert (await scraped(gateway))['gwd_body_bytes{state="under_way"}'] > 150_000
            refused = await gateway.chat(large)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert error_of(refused)["metadata"] == {"cause": "bodies"}
            assert (await gateway.chat("small")).status_code == 200
        assert (await gateway.chat(large)).status_code == 200


async def test_a_body_of_many_elements_counts_as_it_is_once_it_is_read(opened: Opened) -> None:
    """300 KB of empty objects become megabytes; alone they are taken all the same."""
    many: dict[str, Any] = {"metadata": {"x": [{}] * 100_000}}
    async with opened(GWD_LIMITS_BODIES_MAX_BYTES="5000000") as gateway:
        assert (await gateway.chat(**many)).status_code == 200
        async with hanging(gateway, content="word " * 30_000):
            refused = await gateway.chat(**many)
            assert refused.status_code == 503
            assert error_of(refused)["metadata"] == {"cause": "bodies"}
        await gateway.at_rest()
        assert gateway.running.node.load.body_bytes == 0


async def test_short_of_memory_new_inference_waits_until_what_is_under_way_has_ended(
    opened: Opened,
) -> None:
    """The stream that was there goes to its end; with nothing under way there is nothing to wait for."""
    async with opened(GWD_LIMITS_MEMORY_MAX_BYTES="1") as gateway:
        vitals = gateway.running.node.vitals
        await _until(lambda: vitals.memory.is_high)
        assert (await gateway.chat()).status_code == 200
        gateway.vendor.script.next(Behaviour(event_delay_s=0.2))
        calls = len(gateway.vendor.calls)
        stream = asyncio.create_task(gateway.chat(stream=True))
        await gateway.vendor.calls.wait_for(calls + 1)
        refused = await gateway.chat()
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert error_of(refused)["metadata"] == {"cause": "memory"}
        counted = await gateway.client.post("/messages/count_tokens", json=BODIES["/messages"])
        assert counted.status_code == 503
        found = await scraped(gateway)
        assert found['gwd_shedding{cause="memory"}'] == 1
        assert found["gwd_memory_share"] > 1
        await management_answers(gateway)
        [check] = [
            each
            for each in (await gateway.manage("GET", "/operator/doctor"))["data"]["checks"]
            if each["name"] == "load"
        ]
        assert check["state"] == "failed"
        vitals.memory_max_bytes = memory.allowed_bytes() * 2
        await _until(lambda: not vitals.memory.is_high)
        assert (await gateway.chat()).status_code == 200
        whole = await stream
        assert whole.status_code == 200
        assert text_of(frames_of(whole.text))
        assert "data: [DONE]" in whole.text


async def test_while_the_loop_is_late_new_inference_is_refused_and_then_served_again(
    opened: Opened,
) -> None:
    async with opened(GWD_LIMITS_LOOP_LAG_S="0.01") as gateway:
        lag = gateway.running.node.vitals.lag
        lag.begins_s = 0.5
        holding_up = asyncio.create_task(_hold_up_the_loop())
        await _until(lambda: lag.is_high)
        refused = await gateway.chat()
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert error_of(refused)["metadata"] == {"cause": "loop_lag"}
        assert (await scraped(gateway))['gwd_shedding{cause="loop_lag"}'] == 1
        await management_answers(gateway)
        holding_up.cancel()
        lag.below, lag.above = 30.0, 60.0
        await _until(lambda: not lag.is_high)
        assert (await gateway.chat()).status_code == 200


async def test_connections_beyond_the_cap_are_for_management(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = gateway.running._listeners[0].front
    monkeypatch.setattr(front, "cap", 1)
    monkeypatch.setattr(front, "reserve", 2)
    async with httpx.AsyncClient(base_url=gateway.base_url, verify=False) as late:
        assert (await gateway.client.get("/models")).status_code == 200  # its connection stays
        await _until(lambda: front.open == 1)
        refused = await late.post(
            "/chat/completions", json=BODIES["/chat/completions"], headers=gateway.client.headers
        )
        assert (refused.status_code, refused.headers["connection"]) == (503, "close")
        assert refused.json()["error"]["metadata"] == {"cause": "connections"}
        shown = await late.get("/auth/key", headers=gateway.operator.headers)
        assert (shown.status_code, shown.headers["connection"]) == (200, "close")


async def test_with_very_little_memory_left_idle_connections_are_closed(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as gateway, hanging(gateway) as [stream]:
        front = gateway.running._listeners[0].front
        assert (await gateway.chat()).status_code == 200
        assert front.open > 1
        gateway.running.node.vitals.memory_max_bytes = 1
        await _until(lambda: front.open == 1)
        assert not stream.task.done()
        gateway.running.node.vitals.memory_max_bytes = memory.allowed_bytes() * 2


def test_what_the_system_says_of_memory_is_believable() -> None:
    before = memory.resident_bytes()
    held = bytearray(64 * memory.MIB)
    held[::4096] = b"a" * len(held[::4096])
    assert memory.resident_bytes() - before > 32 * memory.MIB
    del held
    gc.collect()
    assert memory.allowed_bytes() > before


async def _until(reached: Any) -> None:
    async with asyncio.timeout(60):
        while not reached():
            await asyncio.sleep(0.02)


async def _hold_up_the_loop() -> None:
    while True:
        time.sleep(0.03)
        await asyncio.sleep(0)
