"""A burst of alerts for twenty destinations: what each costs, that the loop goes on, and that the queue empties.

`ALERTS=5000 pytest -s tests/flows/test_alert_burst.py` is the large one; it takes minutes.
"""

import asyncio
import gc
import os
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gwd.alerts import queue, raise_
from gwd.jobs import deliveries as job
from gwd.orgs.organizations import CreatedOrganization
from gwd.store import Connection
from tests.flows.test_deliveries import Scene, new_alert
from tests.support import people
from tests.support.pace import slowness
from tests.support.receivers import open_mail_box, open_receiver
from tests.support.store import open_store

ALERTS = int(os.environ.get("ALERTS", "60"))
DESTINATIONS = 20
COST_S = 0.003
"""At most so much processor time may an alert to twenty destinations cost the charge that raises it."""
HELD_S = 0.05
MEMORY_KIB = 150_000


class Held:
    """The longest that one step of the loop took, in processor time of its thread: a busy machine changes nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.longest_s = 0.0
        run = asyncio.events.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            began_s = time.thread_time()
            run(handle)
            self.longest_s = max(self.longest_s, time.thread_time() - began_s)

        monkeypatch.setattr(asyncio.events.Handle, "_run", timed)


@pytest.fixture
def settled_memory() -> Iterator[None]:
    """As in a daemon: the collector does not look at what the process began with, which here are all the tests."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr(job, "PACE_S", 0.0)

    def begin(connection: Connection) -> None:
        found.append(people.organization(connection))

    found: list[CreatedOrganization] = []
    async with (
        open_store(tmp_path, begin) as store,
        open_receiver() as receiver,
        open_mail_box() as box,
    ):
        yield Scene(store, receiver, box, found[0])


@pytest.mark.usefixtures("settled_memory")
async def test_a_burst_is_raised_and_delivered_beside_everything_else(
    scene: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(DESTINATIONS):
        await scene.add(name=f"d{number}", url=scene.receiver.url(f"/{number}"))
    held = Held(monkeypatch)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began_s = time.thread_time()
    await asyncio.gather(
        *(
            scene.store.write(
                raise_, scene.organization_id, new_alert(number), now_us=scene.clock.us + number
            )
            for number in range(ALERTS)
        )
    )
    cost_s = (time.thread_time() - began_s) / ALERTS
    raising_s, held.longest_s = held.longest_s, 0.0
    waiting = await scene.store.read(queue.waiting, now_us=scene.clock.us)
    assert waiting.count == ALERTS * DESTINATIONS
    scene.clock.us += ALERTS
    began_s = time.thread_time()
    while (await scene.store.read(queue.waiting, now_us=scene.clock.us)).count:
        await scene.tick()
    each_s = (time.thread_time() - began_s) / (ALERTS * DESTINATIONS)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    with capsys.disabled():
        print(
            f"\n{ALERTS} alerts to {DESTINATIONS} destinations: {cost_s * 1000:.2f} ms each to raise,"
            f" {each_s * 1000:.2f} ms a delivery (both ends), loop held {raising_s * 1000:.0f} ms raising,"
            f" {held.longest_s * 1000:.0f} ms delivering, {grown_kib / 1024:.0f} MiB grown"
        )
    come = Counter((got.path, got.json["id"]) for got in scene.receiver.received)
    assert len(come) == ALERTS * DESTINATIONS
    assert set(come.values()) == {1}
    for number in range(DESTINATIONS):
        order = [got.json["data"]["number"] for got in scene.receiver.on(f"/{number}")]
        assert order == sorted(order)
    slow = slowness()
    assert cost_s < COST_S * slow
    assert raising_s < HELD_S * slow
    assert held.longest_s < HELD_S * slow
    assert grown_kib < MEMORY_KIB


@pytest.mark.parametrize("destinations", [0, 1, DESTINATIONS])
async def test_what_an_alert_costs_the_charge_that_raises_it(
    scene: Scene, destinations: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(destinations):
        await scene.add(name=f"d{number}", url=scene.receiver.url(f"/{number}"))

    def many(connection: Connection) -> float:
        began_s = time.thread_time()
        for number in range(100):
            raise_(connection, scene.organization_id, new_alert(number), now_us=scene.clock.us)
        return (time.thread_time() - began_s) / 100

    each_s = min([await scene.store.write(many) for _ in range(3)])
    with capsys.disabled():
        print(f"\nan alert to {destinations} destinations: {each_s * 1000:.2f} ms")
    assert each_s < COST_S / 2 * slowness()
