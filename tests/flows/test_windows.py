"""Windows at their edges, with a clock that the test moves: limits, budgets, rate, overlap; forward and back."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gwd import ledger
from gwd.demo import Behaviour
from tests.flows.clock import MovableClock
from tests.flows.conftest import Opened
from tests.flows.frames import error_of
from tests.support.node import Gateway

LONG_BEFORE = datetime(2031, 1, 1, tzinfo=UTC)
"""When the catalog is made: prices hold from then on, also for a clock that is set back."""
CENT = Behaviour(prompt_tokens=1_000, completion_tokens=1_000)
"""What one request costs: 0.002 + 0.008 USD."""


def at(
    year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0
) -> datetime:
    """A moment in UTC."""
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


EDGES: list[tuple[str, str, datetime, datetime]] = [
    ("midnight", "daily", at(2032, 3, 10, 22), at(2032, 3, 11)),
    ("Sunday to Monday", "weekly", at(2032, 3, 10, 22), at(2032, 3, 15)),
    ("over a month's end in mid-week", "weekly", at(2032, 3, 30), at(2032, 4, 5)),
    ("31 days", "monthly", at(2032, 1, 30), at(2032, 2, 1)),
    ("leap February", "monthly", at(2032, 2, 27), at(2032, 3, 1)),
    ("February", "monthly", at(2033, 2, 27), at(2033, 3, 1)),
    ("the year's end", "monthly", at(2032, 12, 31, 23), at(2033, 1, 1)),
    ("29 February", "daily", at(2032, 2, 28, 23), at(2032, 2, 29)),
]


def edges() -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("window", "start", "end"), [edge[1:] for edge in EDGES], ids=[edge[0] for edge in EDGES]
    )


def iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


async def use_up(gateway: Gateway) -> None:
    """One request of a cent; the next is refused."""
    gateway.vendor.script.always(CENT)
    assert (await gateway.chat()).status_code == 200


@edges()
async def test_key_limit_opens_again_at_the_edge_and_not_before(
    opened: Opened, clock: MovableClock, window: str, start: datetime, end: datetime
) -> None:
    clock.set(start)
    async with opened(clock) as gateway:
        key, key_id = await gateway.new_key(limit=0.01, limit_reset=window)
        gateway.client.headers["authorization"] = f"Bearer {key}"
        await use_up(gateway)
        clock.wait_until(end - timedelta(seconds=2))
        refused = await gateway.chat()
        assert (refused.status_code, error_of(refused)["code"]) == (402, "key_limit_exceeded")
        metadata = error_of(refused)["metadata"]
        assert (metadata["limit_reset"], metadata["limit_resets_at"]) == (window, iso(end))
        clock.wait_until(end)
        assert (await gateway.chat()).status_code == 200
        assert (await gateway.chat()).status_code == 402
        record = (await gateway.manage("GET", f"/keys/{key_id}"))["data"]
        assert record["limit_remaining"] == 0
        assert record["usage"] == 0.02


@edges()
@pytest.mark.parametrize("scope", ["organization", "key"])
async def test_hard_budget_opens_again_at_the_edge_and_not_before(
    opened: Opened,
    clock: MovableClock,
    scope: str,
    window: str,
    start: datetime,
    end: datetime,
) -> None:
    clock.set(start)
    async with opened(clock) as gateway:
        body: dict[str, Any] = {"scope": scope, "interval": window, "kind": "hard", "limit": 0.01}
        if scope == "key":
            body["scope_id"] = gateway.key_id
        await gateway.manage("POST", "/budgets", body)
        await use_up(gateway)
        clock.wait_until(end - timedelta(seconds=2))
        refused = await gateway.chat()
        assert (refused.status_code, error_of(refused)["code"]) == (402, "budget_exceeded")
        metadata = error_of(refused)["metadata"]
        assert (metadata["budget_scope"], metadata["budget_interval"]) == (scope, window)
        assert metadata["budget_resets_at"] == iso(end)
        clock.wait_until(end)
        assert (await gateway.chat()).status_code == 200
        assert (await gateway.chat()).status_code == 402


async def test_lifetime_never_opens_again(opened: Opened, clock: MovableClock) -> None:
    async with opened(clock) as gateway:
        key, _ = await gateway.new_key(limit=0.01)
        gateway.client.headers["authorization"] = f"Bearer {key}"
        await use_up(gateway)
        clock.pass_by(4_000 * 86_400)
        refused = await gateway.chat()
        assert refused.status_code == 402
        assert error_of(refused)["metadata"]["limit_resets_at"] is None


@pytest.mark.parametrize("kind", ["key limit", "budget"])
async def test_clock_set_back_does_not_open_a_closed_window(
    opened: Opened, clock: MovableClock, kind: str
) -> None:
    """Ledger time never goes back, so neither does the window that it is in (I12)."""
    clock.set(LONG_BEFORE)
    async with opened(clock) as gateway:
        clock.wait_until(at(2032, 3, 11, 0, 5))
        if kind == "key limit":
            key, _ = await gateway.new_key(limit=0.01, limit_reset="daily")
            gateway.client.headers["authorization"] = f"Bearer {key}"
        else:
            body = {"scope": "organization", "interval": "daily", "kind": "hard", "limit": 0.01}
            await gateway.manage("POST", "/budgets", body)
        await use_up(gateway)
        for moment in (at(2032, 3, 10, 23, 55), at(2032, 2, 29), at(2031, 1, 2)):
            clock.set(moment)
            assert (await gateway.chat()).status_code == 402
        clock.set(at(2032, 3, 11, 23, 59, 55))
        assert (await gateway.chat()).status_code == 402
        clock.set(at(2032, 3, 12))
        assert (await gateway.chat()).status_code == 200


async def test_spending_is_counted_in_the_window_of_its_settlement(
    opened: Opened, clock: MovableClock
) -> None:
    """A request that runs over midnight counts for the day on which it was charged."""
    clock.set(at(2032, 3, 10, 23, 59))
    async with opened(clock) as gateway:
        key, _ = await gateway.new_key(limit=0.01, limit_reset="daily")
        gateway.client.headers["authorization"] = f"Bearer {key}"
        gateway.vendor.script.always(
            Behaviour(prompt_tokens=1_000, completion_tokens=1_000, delay_s=0.3)
        )
        asking = asyncio.ensure_future(gateway.chat())
        await gateway.vendor.calls.wait_for(1)
        clock.wait_until(at(2032, 3, 11, 0, 0, 1))
        assert (await asking).status_code == 200
        assert (await gateway.chat()).status_code == 402
        clock.wait_until(at(2032, 3, 12))
        assert (await gateway.chat()).status_code == 200


# Jumps


JUMPS = [1, -1, 3_600, -3_600, 86_400, -86_400, 400 * 86_400, -40 * 86_400]


@pytest.mark.parametrize("seconds", JUMPS)
async def test_clock_that_jumps_under_a_stream_harms_nothing(
    opened: Opened, clock: MovableClock, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    monkeypatch.setattr("gwd.wiring.SWEEP_S", 0.05)
    clock.set(LONG_BEFORE)
    async with opened(clock) as gateway:
        clock.wait_until(at(2032, 2, 29, 23, 59, 30))
        gateway.vendor.script.next(Behaviour(event_delay_s=0.02, tokens=20))
        asking = asyncio.ensure_future(gateway.chat(stream=True))
        await gateway.vendor.calls.wait_for(1)
        clock.jump(seconds)
        await asyncio.sleep(0.15)  # the sweeper has looked, and found the hold owned
        reply = await asking
        assert reply.text.endswith("data: [DONE]\n\n")
        record = await gateway.generation(reply)
        assert record["status"] == "succeeded"
        for name in ("latency", "generation_time", "ttft"):
            assert 0 <= record[name] < 60_000
        assert record["settled_at"] >= record["created_at"]
        assert (await gateway.chat()).status_code == 200
        entries = (await gateway.manage("GET", "/credits/ledger?limit=100"))["data"]
        times = [entry["created_at"] for entry in entries]
        assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("jump_s", [3_600, -3_600, 400 * 86_400])
async def test_rate_window_does_not_care_what_the_wall_clock_does(
    opened: Opened, clock: MovableClock, jump_s: int
) -> None:
    """Refused requests do not lengthen the window."""
    clock.set(LONG_BEFORE)
    async with opened(clock) as gateway:
        clock.wait_until(at(2032, 2, 29, 12))
        key, _ = await gateway.new_key(rate_limit_per_minute=3)
        gateway.client.headers["authorization"] = f"Bearer {key}"
        for remaining in ("2", "1", "0"):
            served = await gateway.chat()
            assert served.status_code == 200
            assert served.headers["x-ratelimit-remaining"] == remaining
        clock.jump(jump_s)
        for _ in range(2):
            refused = await gateway.chat()
            assert (refused.status_code, error_of(refused)["code"]) == (429, "rate_limit_exceeded")
            assert 1 <= int(refused.headers["retry-after"]) <= 60
        clock.pass_by(61)
        served = await gateway.chat()
        assert (served.status_code, served.headers["x-ratelimit-limit"]) == (200, "3")
        assert served.headers["x-ratelimit-remaining"] == "2"


async def test_rotated_key_works_to_the_last_second_of_its_overlap(
    opened: Opened, clock: MovableClock
) -> None:
    clock.set(at(2032, 3, 10, 12))
    async with opened(clock) as gateway:
        old, old_id = await gateway.new_key(limit=5)
        made = await gateway.manage("POST", f"/keys/{old_id}/rotate", {"overlap": "1h"})
        ends = datetime.fromisoformat(made["previous"]["expires_at"])
        new = made["key"]

        async def statuses() -> tuple[int, int]:
            found = []
            for key in (old, new):
                gateway.client.headers["authorization"] = f"Bearer {key}"
                found.append((await gateway.chat()).status_code)
            return found[0], found[1]

        clock.wait_until(ends - timedelta(seconds=2))
        assert await statuses() == (200, 200)
        clock.wait_until(ends + timedelta(seconds=1))
        assert await statuses() == (401, 200)
        spent = (await gateway.manage("GET", f"/keys/{made['data']['id']}"))["data"]["usage"]
        total = (await gateway.manage("GET", "/credits"))["data"]["total_usage"]
        assert spent == total > 0


async def test_credit_that_expires_under_an_open_hold_is_taken_only_when_it_is_free(
    opened: Opened, clock: MovableClock
) -> None:
    clock.set(at(2032, 3, 10, 12))
    async with opened(clock, credit=None) as gateway:
        grant = {"kind": "promotional", "amount": 1, "expires_at": "2032-03-10T13:00:00Z"}
        await gateway.manage("POST", "/credits/grants", grant)
        gateway.vendor.script.next(
            Behaviour(prompt_tokens=1_000, completion_tokens=1_000, delay_s=0.4)
        )
        asking = asyncio.ensure_future(gateway.chat(max_tokens=2_000))
        await gateway.vendor.calls.wait_for(1)
        clock.wait_until(at(2032, 3, 10, 13, 0, 1))
        assert (await gateway.chat()).status_code == 402
        assert (await asking).status_code == 200
        now_us = clock.now_us()
        organization_id = await gateway.organization_id()
        found = await gateway.store.read(ledger.balance, organization_id, now_us=now_us)
        assert found.owned_nano >= 0
        assert (await gateway.chat()).status_code == 402
