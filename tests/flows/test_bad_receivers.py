"""Receivers that hang, refuse, speak TLS badly or have no address, beside one that works and beside inference."""

import asyncio
import gc
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases.caserunner.ports import free_port
from tests.flows.started import Started, started, stop, vendor
from tests.support.certificates import server_tls
from tests.support.names import Names
from tests.support.node import Gateway
from tests.support.receivers import Receiver, open_receiver

__all__ = ["started", "vendor"]

PLACE = "/notifications/destinations"
SETTINGS = {"GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]', "GWD_WEBHOOKS_ALLOW_HTTP": "true"}
ALERTS = 40
"""To each of five destinations: two hundred deliveries."""


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with open_receiver() as made:
        yield made


@pytest.fixture
async def untrusted(tmp_path: Path) -> AsyncIterator[str]:
    """The address of a server whose certificate nobody signed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    context: ssl.SSLContext = server_tls(tmp_path)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    yield f"https://localhost:{server.sockets[0].getsockname()[1]}/hook"
    server.close()


async def add(gateway: Gateway, url: str) -> str:
    made = await gateway.manage(
        "POST", PLACE, {"type": "webhook", "name": url, "url": url, "events": ["key_limit"]}
    )
    destination_id: str = made["data"]["id"]
    return destination_id


async def add_all(
    gateway: Gateway, receiver: Receiver, untrusted: str, names: Names
) -> dict[str, str]:
    """The id of each; the one without an address had one when it was made."""
    names.addresses["gone.example"] = ["127.0.0.1"]
    receiver.hangs.add("/hangs")
    urls = {
        "hangs": receiver.url("/hangs"),
        "refuses": f"http://127.0.0.1:{free_port()}/hook",
        "untrusted": untrusted,
        "nowhere": f"http://gone.example:{receiver.port}/nowhere",
        "good": receiver.url("/good"),
    }
    made = {name: await add(gateway, url) for name, url in urls.items()}
    names.addresses["gone.example"] = []
    return made


async def raise_alerts(gateway: Gateway, count: int) -> None:
    """By requests of as many keys: each crosses the limit of its own."""
    keys = [
        (await gateway.new_key(limit=0.0000001, alert_thresholds=[100]))[0] for _ in range(count)
    ]
    for key in keys:
        reply = await gateway.chat(headers={"authorization": f"Bearer {key}"})
        assert reply.status_code == 200


async def latency_s(gateway: Gateway, requests: int = 20) -> float:
    """The median of so many requests."""
    found = []
    for _ in range(requests):
        began_s = time.monotonic()
        assert (await gateway.chat()).status_code == 200
        found.append(time.monotonic() - began_s)
    return sorted(found)[requests // 2]


async def come(receiver: Receiver, path: str, count: int) -> None:
    async with asyncio.timeout(30):
        while len(receiver.on(path)) < count:
            await asyncio.sleep(0.02)


def sockets() -> int:
    """Open sockets of this process."""
    return sum("socket:" in _target(entry) for entry in Path("/proc/self/fd").iterdir())


def _target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""


@pytest.mark.alone
async def test_bad_receivers_hold_up_neither_the_good_one_nor_inference(
    started: Started, receiver: Receiver, untrusted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.outbound.client.TOTAL_TIMEOUT_S", 3.0)
    names = Names().install(monkeypatch)
    running, gateway = await started.start(**SETTINGS)
    await latency_s(gateway, 5)
    quiet_s = await latency_s(gateway)
    made = await add_all(gateway, receiver, untrusted, names)
    tasks, open_before = len(running._tasks), sockets()
    await raise_alerts(gateway, 2)
    await come(receiver, "/good", 2)
    # The others are on their way or between two tries.
    assert len(receiver.on("/hangs")) == 1
    beside_s = await latency_s(gateway)
    assert beside_s < 3 * quiet_s + 0.02, (quiet_s, beside_s)
    await raise_alerts(gateway, ALERTS - 2)
    await come(receiver, "/good", ALERTS)
    assert len({got.json["id"] for got in receiver.on("/good")}) == ALERTS
    reasons: dict[str, str] = {}
    async with asyncio.timeout(60):
        while len(reasons) < 4:
            for name in ("hangs", "refuses", "untrusted", "nowhere"):
                last = (await gateway.manage("GET", f"{PLACE}/{made[name]}"))["data"][
                    "last_delivery"
                ]
                if last is not None:
                    reasons[name] = last["error"]
            await asyncio.sleep(0.1)
    assert reasons["hangs"] == "no answer within 3 s"
    assert "no connection to the receiver" in reasons["refuses"]
    assert "certificate" in reasons["untrusted"]
    assert reasons["nowhere"] == "gone.example does not resolve"
    good = (await gateway.manage("GET", f"{PLACE}/{made['good']}"))["data"]
    assert (good["enabled"], good["consecutive_failures"]) == (True, 0)
    for name in ("hangs", "refuses", "untrusted", "nowhere"):
        await gateway.manage("POST", f"{PLACE}/{made[name]}/disable", {})
    async with asyncio.timeout(30):
        while len(running._tasks) > tasks:
            await asyncio.sleep(0.05)
    gc.collect()
    assert sockets() <= open_before + 4, "sockets of deliveries stay open"
    await gateway.verify()
    await stop(running, gateway)


async def test_the_node_stops_in_time_whatever_hangs(started: Started, receiver: Receiver) -> None:
    """What was on its way is told by the next run, under the same ids."""
    running, gateway = await started.start(GWD_TIMEOUTS_DRAIN_S="2", **SETTINGS)
    for number in range(20):
        path = f"/hangs{number}"
        receiver.hangs.add(path)
        await add(gateway, receiver.url(path))
    await raise_alerts(gateway, 1)
    async with asyncio.timeout(30):
        while len(receiver.received) < 20:
            await asyncio.sleep(0.02)
    began_s = time.monotonic()
    await stop(running, gateway)
    assert time.monotonic() - began_s < 2 + 3
    first = {got.path: _ids(got) for got in receiver.received}
    receiver.received.clear()
    receiver.hangs.clear()
    running, gateway = await started.start(**SETTINGS)
    async with asyncio.timeout(30):
        while len(receiver.received) < 20:
            await asyncio.sleep(0.02)
    assert {got.path: _ids(got) for got in receiver.received} == first
    await stop(running, gateway)


def _ids(got: Any) -> tuple[str, str]:
    return got.json["id"], got.headers["x-gw-delivery-id"]
