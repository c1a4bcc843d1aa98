"""One vendor gets so many calls at once; further ones wait their turn, not long, and no place is lost."""

import asyncio

import pytest

from gwd.upstream import origins
from gwd.upstream.base import UpstreamFault
from gwd.upstream.origins import Origin, Origins

A: Origin = ("a.test", 443, True)
B: Origin = ("b.test", 443, True)


async def test_each_origin_has_its_own_places_and_turns_come_in_order() -> None:
    places = Origins(2)
    assert [places.take(A) for _ in range(3)] == [True, True, False]
    assert places.take(B)
    order: list[int] = []

    async def waiting(number: int) -> None:
        await places.wait(A, 10)
        order.append(number)
        places.free(A)

    tasks = [asyncio.create_task(waiting(number)) for number in range(2)]
    await asyncio.sleep(0.01)
    assert not places.take(A), "nobody overtakes those that wait"
    places.free(A)
    await asyncio.gather(*tasks)
    assert order == [0, 1]
    places.free(A)
    places.free(B)
    assert (places._taken, places._waiting) == ({}, {})


async def test_who_waits_too_long_or_in_too_long_a_queue_goes_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(origins, "WAIT_S", 0.05)
    places = Origins(1)
    assert places.take(A)
    first = asyncio.create_task(places.wait(A, 10))
    await asyncio.sleep(0)
    with pytest.raises(UpstreamFault) as at_once:
        await places.wait(A, 10)
    assert not first.done()
    with pytest.raises(UpstreamFault) as late:
        await first
    for caught in (at_once, late):
        fault = caught.value.fault
        assert (fault.reason, fault.detail) == ("overloaded", "our_limit")
        assert "max_in_flight_per_origin" in fault.message
    places.free(A)
    assert (places._taken, places._waiting) == ({}, {})


async def test_a_place_that_is_given_to_whoever_left_goes_to_the_next() -> None:
    places = Origins(2)
    assert [places.take(A), places.take(A)] == [True, True]
    leaving = asyncio.create_task(places.wait(A, 10))
    staying = asyncio.create_task(places.wait(A, 10))
    await asyncio.sleep(0)
    places.free(A)  # it is the first one's
    leaving.cancel()  # in the same moment
    await asyncio.gather(leaving, return_exceptions=True)
    await asyncio.wait_for(staying, 5)
    places.free(A)
    places.free(A)
    assert (places._taken, places._waiting) == ({}, {})
