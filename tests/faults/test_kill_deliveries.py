"""Kill -9 while alerts are on their way: each arrives, with the same ids however often, and the books add up."""

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from gwd import proof
from gwd.store.connection import open_connection
from tests.faults.kill_harness import Harness
from tests.support.receivers import Received, Receiver, open_receiver
from tests.vendor import StrictVendor

ROUNDS = int(os.environ.get("KILL_ROUNDS", "30"))
KEYS = 3
PATIENCE_S = 120.0
_HOOKS = {"GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]', "GWD_WEBHOOKS_ALLOW_HTTP": "true"}


class ToldHarness(Harness):
    """A node whose every request crosses the limit of a key, which two destinations hear of."""

    program = "tests.faults.told_node:main"

    def __init__(self, directory: Path, vendor: StrictVendor, seed: int) -> None:
        super().__init__(directory, vendor, seed)
        self.told: set[str] = set()
        self._keys: list[tuple[str, str]] = []

    async def prepare_told(self, urls: list[str]) -> None:
        """The catalog, the destinations, and the keys of all rounds."""
        self._vendor.script.clear()
        await self._start([])
        async with self._operator() as operator:
            for path, body in self._catalog():
                assert (await operator.post(path, json=body)).status_code in (200, 201)
            for url in urls:
                made = await operator.post(
                    "/notifications/destinations",
                    json={"type": "webhook", "name": url, "url": url, "events": ["key_limit"]},
                )
                assert made.status_code == 201, made.text
            for number in range(ROUNDS * KEYS):
                body = {"name": f"k{number}", "limit": 0.0000001, "alert_thresholds": [100]}
                made = (await operator.post("/keys", json=body)).json()
                self._keys.append((made["key"], made["data"]["id"]))
        await self._die()

    async def killed(self, receiver: Receiver) -> None:
        """One life: requests that raise alerts, and death at random, two times of three once something has come."""
        come = len(receiver.received) + self._random.choice((1, 2, 10_000))
        await self._start([])
        keys = [self._keys.pop() for _ in range(KEYS)]
        async with httpx.AsyncClient(base_url=self._url, timeout=10) as client:
            asked = [asyncio.ensure_future(self._ask(client, *key)) for key in keys]
            ends_s = time.monotonic() + self._random.uniform(0.1, 0.6)
            while len(receiver.received) < come and time.monotonic() < ends_s:
                await asyncio.sleep(0.005)
            await asyncio.sleep(self._random.uniform(0, 0.05))
            await self._die()
            await asyncio.gather(*asked)

    async def delivered(self) -> list[tuple[str, str, str]]:
        """Start once more and wait until nothing waits: (event, delivery, key) of each delivery."""
        await self._start([])
        began_s = time.monotonic()
        async with self._operator() as operator:
            place = "/notifications/deliveries?status=pending"
            while (await operator.get(place)).json()["total_count"]:
                assert time.monotonic() - began_s < PATIENCE_S, "something waits without end"
                await asyncio.sleep(0.1)
        await self._die()
        connection = open_connection(self._database, "reader")
        try:
            verified = proof.verify(connection, boot_id="the run that has just begun")
            assert verified.ok, verified.differences
            rows = connection.rows(
                "SELECT a.id, d.id, a.data ->> 'key_id' FROM delivery AS d JOIN alert AS a ON a.id = d.event_id"
                " WHERE d.status = 'delivered' AND a.type = 'alert.key_limit' AND d.destination_id IS NOT NULL"
            )
            return [(event, delivery, key) for event, delivery, key in rows]
        finally:
            connection.raw.close()

    def _operator(self) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {self._management_key}"}
        return httpx.AsyncClient(base_url=self._url, headers=headers, timeout=20)

    async def _ask(self, client: httpx.AsyncClient, key: str, key_id: str) -> None:
        body: dict[str, Any] = {
            "model": "demo/killed",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "hello"}],
        }
        headers = {"authorization": f"Bearer {key}"}
        try:
            reply = await client.post("/chat/completions", json=body, headers=headers)
        except httpx.TransportError:
            return
        if reply.status_code == 200:
            self.told.add(key_id)


@pytest.mark.slow
async def test_an_alert_arrives_at_least_once_however_often_the_node_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in _HOOKS.items():
        monkeypatch.setenv(name, value)
    seed = random.randrange(1_000_000)
    chance = random.Random(seed)
    async with StrictVendor() as vendor, open_receiver() as receiver:
        harness = ToldHarness(tmp_path, vendor, seed)
        receiver.delay_s = lambda got: chance.uniform(0, 0.4) if got.path == "/slow" else 0
        await harness.prepare_told([receiver.url("/slow"), receiver.url("/quick")])
        for _ in range(ROUNDS):
            await harness.killed(receiver)
        receiver.delay_s = lambda _: 0
        rows = await harness.delivered()
        again = _look(receiver, rows, harness.told)
    with capsys.disabled():
        print(
            f"\n{ROUNDS} kills: {len(harness.told)} acknowledged, {len(rows)} deliveries,"
            f" {again} came again (seed {seed})"
        )
    assert len(harness.told) > ROUNDS
    assert again > 0, "no kill met a delivery on its way"


def _look(receiver: Receiver, rows: list[tuple[str, str, str]], told: set[str]) -> int:
    """Each acknowledged charge's alert reached both, as one event and two deliveries; how many came again."""
    events = {event for event, _, _ in rows}
    assert told <= {key_id for _, _, key_id in rows}
    assert len(events) == len({key_id for _, _, key_id in rows}), "a cause was told twice"
    known = {(event, delivery) for event, delivery, _ in rows}
    again = 0
    for path in ("/slow", "/quick"):
        seen: dict[str, list[Received]] = {}
        for got in receiver.on(path):
            seen.setdefault(got.json["id"], []).append(got)
        assert set(seen) == events, f"{path}: lost {events - set(seen)}"
        for event, copies in seen.items():
            [delivery] = {got.headers["x-gw-delivery-id"] for got in copies}
            assert (event, delivery) in known
            assert len({got.body for got in copies}) == 1
            again += len(copies) - 1
    assert len(known) == 2 * len(events)
    return again
