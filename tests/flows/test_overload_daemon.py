"""A daemon under more load than its cap: never more under way than that, health answers, nothing is lost or held.

OVERLOAD_STREAMS says how many streams are asked for; `make overload` asks for two thousand.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import monotonic

import httpx
import msgspec
import pytest

from gwd import ledger, proof
from gwd.demo import Behaviour
from gwd.store.connection import open_connection
from tests.cases.caserunner.ports import free_port
from tests.flows.started import Started, started, stop, vendor
from tests.support.warm import NOTHING, WarmProcess

__all__ = ["started", "vendor"]

STREAMS = int(os.environ.get("OVERLOAD_STREAMS", "60"))
CLIENTS, CAP = 32, 8
HEALTH_S = 1.0
SETTINGS = {
    "GWD_LIMITS_IN_FLIGHT": str(CAP),
    "GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "1000000",
}
ASKED = {
    "model": "demo/chat",
    "stream": True,
    "max_tokens": 20,
    "messages": [{"role": "user", "content": "hello"}],
}


class Seen(msgspec.Struct, kw_only=True):
    """What the watcher saw meanwhile."""

    in_flight: list[float] = []
    health_s: list[float] = []


@pytest.fixture
async def url(started: Started) -> AsyncIterator[str]:
    running, gateway = await started.start()
    await stop(running, gateway)
    started.vendor.script.always(Behaviour(event_delay_s=0.02, tokens=6))
    port = free_port()
    words = ["serve", "--config", str(started.nodes.folder), "--port", str(port)]
    daemon = WarmProcess("gwd", words, {**os.environ, **SETTINGS}, out=NOTHING, err=NOTHING)
    try:
        root = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=root, verify=False) as client, asyncio.timeout(60):
            while True:
                try:
                    await client.get("/healthz")
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.02)
        yield root
    finally:
        daemon.end()


async def test_a_daemon_under_more_than_its_cap_serves_to_the_end_and_its_books_add_up(
    started: Started, url: str
) -> None:
    seen, answers = Seen(), Counter[int]()
    watching = asyncio.create_task(_watch(url, seen))
    left = iter(range(STREAMS))
    await asyncio.gather(*(_ask(url, started.key, left, answers) for _ in range(CLIENTS)))
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert set(answers) == {200, 503}
    assert answers[200] == STREAMS
    assert max(seen.in_flight) == CAP
    print(f"{answers}, {len(seen.health_s)} looks, the slowest {max(seen.health_s):.3f} s")
    if "OVERLOAD_STREAMS" in os.environ:
        assert max(seen.health_s) < HEALTH_S
    _look(started.nodes.folder, answers)


async def _ask(url: str, key: str, left: Iterator[int], answers: Counter[int]) -> None:
    """Streams, one after the other; what is refused is asked for again."""
    headers = {"authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60, verify=False) as client:
        for _ in left:
            while True:
                reply = await client.post("/api/v1/chat/completions", json=ASKED)
                answers[reply.status_code] += 1
                if reply.status_code == httpx.codes.OK:
                    assert reply.text.endswith("data: [DONE]\n\n")
                    break
                assert reply.json()["error"]["metadata"] == {"cause": "in_flight"}
                assert reply.headers["retry-after"] == "1"
                await asyncio.sleep(0.3)


async def _watch(url: str, seen: Seen) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=60, verify=False) as client:
        while True:
            began_s = monotonic()
            assert (await client.get("/healthz")).status_code == httpx.codes.OK
            seen.health_s.append(monotonic() - began_s)
            page = (await client.get("/metrics")).text
            [number] = re.findall(r"^gwd_in_flight (.+)$", page, re.MULTILINE)
            seen.in_flight.append(float(number))
            await asyncio.sleep(0.02)


def _look(folder: Path, answers: Counter[int]) -> None:
    connection = open_connection(str(folder / "gwd.db"), "reader")
    try:
        assert proof.verify(connection).ok
        assert ledger.open_reservations(connection) == []
        served = connection.row("SELECT COUNT(*) FROM generation WHERE status = 'succeeded'")
        assert served == (answers[200],)
    finally:
        connection.raw.close()
