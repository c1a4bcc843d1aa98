"""How endpoints and credentials did outlives the process: what rests goes on resting, what was measured counts."""

import asyncio
import re
from typing import Any

import pytest

from gwd.demo import Behaviour
from gwd.jobs.health import KEEP_S
from gwd.store import Connection
from gwd.wiring import RunningNode
from tests.flows.clock import MovableClock
from tests.flows.conftest import ORDER, A, B, add_backup
from tests.flows.frames import error_of
from tests.flows.started import Started, change, crash, started, stop, vendor
from tests.support.node import Gateway

__all__ = ["started", "vendor"]

REFUSED = Behaviour(status=401)
NO_MODEL = Behaviour(status=404, message="The model does not exist or you have no access to it.")


@pytest.fixture
def clock(started: Started) -> MovableClock:
    """The node's clock in all its lives."""
    made = started.clock = MovableClock()
    return made


async def _again(
    started: Started,
    life: tuple[RunningNode, Gateway],
    *,
    killed: bool = False,
    down_s: float = 2,
    **environment: str,
) -> tuple[RunningNode, Gateway]:
    """Stop or kill the node, let time go by, and start it as after a reboot: with another monotonic clock."""
    await (crash if killed else stop)(*life)
    clock = started.clock
    assert isinstance(clock, MovableClock)
    clock.jump(down_s)
    clock._monotonic_s -= 10_000
    return await started.start(**environment)


async def _served_by(gateway: Gateway, content: str = "hello") -> str:
    reply = await gateway.chat(content, provider=ORDER)
    assert reply.status_code == 200, reply.text
    served: str = gateway.vendor.calls.last.model
    return served


@pytest.mark.parametrize(
    ("fault", "length_s"),
    [
        (Behaviour(status=503), 10),
        (NO_MODEL, 60),
        (Behaviour(status=402, message="Insufficient credits"), 900),
        (Behaviour(status=429, retry_after="100"), 100),
    ],
    ids=["503", "404", "402", "429 with a hint"],
)
async def test_a_rest_goes_on_over_a_restart_and_ends_when_it_would_have(
    started: Started, clock: MovableClock, fault: Behaviour, length_s: int
) -> None:
    running, gateway = await started.start()
    await add_backup(gateway)
    clock.stop()
    started.vendor.script.next(fault, model=A)
    assert await _served_by(gateway) == B
    before = await _resting(gateway)
    running, gateway = await _again(started, (running, gateway), down_s=length_s * 0.5)
    assert _seconds(await _resting(gateway)) == _seconds(before) != []
    assert await _served_by(gateway) == B
    clock.pass_by(length_s * 0.35)
    assert await _served_by(gateway) == B
    clock.pass_by(length_s * 0.2)
    assert await _served_by(gateway) == A
    # What served is awake in the next life, too.
    running, gateway = await _again(started, (running, gateway))
    assert await _resting(gateway) == []
    await stop(running, gateway)


async def _resting(gateway: Gateway) -> list[dict[str, Any]]:
    return [rest for each in await _endpoints(gateway) for rest in each["rests"]]


def _seconds(rests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the fractions that a moment loses between the two clocks."""
    return [
        {name: re.sub(r"\.\d+Z$", "Z", str(value)) for name, value in rest.items()}
        for rest in rests
    ]


async def _endpoints(gateway: Gateway) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await gateway.manage("GET", "/operator/status"))["data"][
        "endpoints"
    ]
    return found


async def test_after_a_restart_what_rested_is_on_trial(
    started: Started, clock: MovableClock
) -> None:
    running, gateway = await started.start()
    clock.stop()
    started.vendor.script.next(Behaviour(status=503), model=A)
    await gateway.chat()
    running, gateway = await _again(started, (running, gateway), down_s=30)
    health = running.node.state.health
    assert len(health._rests._pairs) == 1
    started.vendor.calls.clear()
    started.vendor.script.next(Behaviour(delay_s=0.8), model=A)
    tasks = [asyncio.create_task(gateway.chat()) for _ in range(5)]
    await asyncio.sleep(0.3)
    assert len(started.vendor.calls) == 1
    assert [reply.status_code for reply in await asyncio.gather(*tasks)] == [200] * 5
    running, gateway = await _again(started, (running, gateway), down_s=30)
    assert running.node.state.health._rests._pairs == {}
    await stop(running, gateway)


@pytest.mark.parametrize("killed", [False, True])
async def test_a_refused_key_stays_closed_until_it_is_edited(
    started: Started, clock: MovableClock, *, killed: bool
) -> None:
    running, gateway = await started.start()
    clock.stop()
    started.vendor.script.next(REFUSED, model=A)
    assert (await gateway.chat()).status_code == 502
    running.node.state.write_trouble()
    await running._health_keeper.look()  # at once, not after a while
    for _ in range(2):
        running, gateway = await _again(started, (running, gateway), killed=killed, down_s=90_000)
        calls = len(started.vendor.calls)
        assert error_of(await gateway.chat())["code"] == "no_available_endpoint"
        assert len(started.vendor.calls) == calls
    [key] = (await gateway.manage("GET", "/catalog/credentials?provider=openai-chat"))["data"]
    assert key["last_error"]["reason"] == "auth_invalid"
    clock.pass_by(1)
    await gateway.manage("PATCH", f"/catalog/credentials/{key['id']}", {"key": "sk-another-key"})
    # Killed or not, and whether or not it was written down: an edited key has its new chance.
    running, gateway = await _again(started, (running, gateway), killed=killed)
    assert (await gateway.chat()).status_code == 200
    await stop(running, gateway)


async def test_a_refused_key_from_outside_may_be_another_one_after_a_restart(
    started: Started, clock: MovableClock
) -> None:
    running, gateway = await started.start()
    clock.stop()
    [key] = (await gateway.manage("GET", "/catalog/credentials?provider=openai-chat"))["data"]
    started.nodes.environment["VENDOR_KEY"] = "sk-from-outside"
    await gateway.manage(
        "PATCH", f"/catalog/credentials/{key['id']}", {"key_ref": "env:VENDOR_KEY"}
    )
    clock.pass_by(1)
    running, gateway = await _again(started, (running, gateway))
    started.vendor.script.next(REFUSED, REFUSED, model=A)
    assert (await gateway.chat()).status_code == 502
    running, gateway = await _again(started, (running, gateway))
    calls = len(started.vendor.calls)
    assert (await gateway.chat()).status_code == 502  # one call finds out
    assert error_of(await gateway.chat())["code"] == "no_available_endpoint"
    assert len(started.vendor.calls) == calls + 1
    running, gateway = await _again(started, (running, gateway))
    assert (await gateway.chat()).status_code == 200
    await stop(running, gateway)


async def test_the_step_of_a_backoff_is_kept(started: Started, clock: MovableClock) -> None:
    life = await started.start()
    clock.stop()
    started.vendor.script.always(Behaviour(status=429))
    for wait_s in (1, 2, 4, 8, 16):
        reply = await life[1].chat()
        assert wait_s * 0.9 <= int(reply.headers["retry-after"]) <= wait_s
        life = await _again(started, life, down_s=wait_s + 1)
    await stop(*life)


async def test_the_same_request_after_a_restart_is_no_second_proof(
    started: Started, clock: MovableClock
) -> None:
    life = await started.start()
    await add_backup(life[1])
    clock.stop()
    started.vendor.script.next(NO_MODEL, NO_MODEL, model=A)
    for _ in range(2):
        assert await _served_by(life[1], "the same") == B
        life = await _again(started, life, down_s=61)
    assert await _served_by(life[1], "the same") == A
    started.vendor.script.next(NO_MODEL, NO_MODEL, model=A)
    assert await _served_by(life[1], "one") == B
    life = await _again(started, life, down_s=61)
    assert await _served_by(life[1], "another") == B
    life = await _again(started, life, down_s=800)
    assert await _served_by(life[1]) == B
    await stop(*life)


async def test_what_was_measured_counts_until_it_is_too_old(
    started: Started, clock: MovableClock
) -> None:
    life = await started.start()
    clock.stop()
    started.vendor.script.next(Behaviour(status=500, message="Bearer sk-abcdefgh1234 broke"))
    await life[1].chat()
    for _ in range(3):
        await life[1].chat(stream=True)
    [before] = [each for each in await _endpoints(life[1]) if each["attempts"]]
    assert (before["attempts"], before["failures"]) == (4, 1)
    life = await _again(started, life, down_s=20)
    [after] = [each for each in await _endpoints(life[1]) if each["attempts"]]
    for name in ("attempts", "failures"):
        assert after[name] == before[name]
    for name in ("p50_ttft_ms", "p50_tokens_per_second"):
        assert after[name] == pytest.approx(before[name], abs=0.1)
    [failure] = life[0].node.state.health._endpoints[after["id"]].failures
    assert (failure.reason, failure.status) == ("upstream_error", 500)
    assert "sk-abcdefgh1234" not in failure.message
    life = await _again(started, life, down_s=301)
    assert [each for each in await _endpoints(life[1]) if each["attempts"]] == []
    await stop(*life)


async def test_a_clock_that_was_set_back_lengthens_no_rest(
    started: Started, clock: MovableClock
) -> None:
    life = await started.start()
    clock.stop()
    clock.pass_by(7_200)  # the prices are older than where the clock is set to
    started.vendor.script.next(Behaviour(status=429, retry_after="20"), model=A)
    await life[1].chat()
    life = await _again(started, life, down_s=-3_600)
    reply = await life[1].chat()
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "20")
    await stop(*life)


async def test_nothing_is_kept_of_what_is_gone(started: Started, clock: MovableClock) -> None:
    running, gateway = await started.start()
    endpoint_id = await add_backup(gateway)
    clock.stop()
    for name in (A, B):
        started.vendor.script.next(REFUSED if name == A else Behaviour(status=503), model=name)
    assert (await gateway.chat(provider=ORDER)).status_code == 502
    await running._health_keeper.keep()
    assert await running.store.read(_counts) == (2, 2)
    [key] = (await gateway.manage("GET", "/catalog/credentials?provider=openai-chat"))["data"]
    await gateway.manage("DELETE", f"/catalog/endpoints/{endpoint_id}")
    await gateway.manage("DELETE", f"/catalog/credentials/{key['id']}")
    # Killed before it is written: what hangs in the air is not read.
    running, gateway = await _again(started, (running, gateway), killed=True)
    health = running.node.state.health
    assert (health._rests._pairs, health._rests._credentials) == ({}, {})
    assert endpoint_id not in health._endpoints
    await gateway.chat(model="demo/claude")
    await running._health_keeper.keep()
    assert await running.store.read(_counts) == (0, 2)
    await stop(running, gateway)


def _counts(connection: Connection) -> tuple[int, int]:
    row = connection.row("SELECT (SELECT COUNT(*) FROM rest), COUNT(*) FROM endpoint_health")
    assert row is not None
    return row[0], row[1]


async def test_there_is_one_write_in_a_while_and_none_for_a_request(
    started: Started, clock: MovableClock
) -> None:
    running, gateway = await started.start()
    clock.stop()
    await running._health_keeper.keep()
    keeper = running._health_keeper
    for _ in range(20):
        await gateway.chat()
        await keeper.look()
    assert await running.store.read(_counts) == (0, 0)
    clock.pass_by(KEEP_S)
    await keeper.look()
    assert await running.store.read(_counts) == (0, 1)
    assert running.node.state.health.news(0, 0.0) is None
    await stop(running, gateway)


async def test_rows_that_nobody_can_read_do_not_stop_the_start(
    started: Started, clock: MovableClock
) -> None:
    life = await started.start()
    clock.stop()
    started.vendor.script.next(Behaviour(status=503), model=A)
    await life[1].chat()
    await stop(*life)
    change(started, "UPDATE rest SET reason = 'of a later version'")
    change(started, "UPDATE endpoint_health SET body = '[1'")
    life = await started.start()
    assert life[0].node.state.health._rests._pairs == {}
    assert (await life[1].chat()).status_code == 200
    await stop(*life)
