"""What one caller can make a node hold: memory for its bodies, and connections on which it hardly speaks.

The ordinary run sends a few; `make heavy` sends what is promised.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from statistics import quantiles

import httpx
import pytest
import pytest_asyncio

from tests.cases.caserunner.ports import free_port
from tests.lag.corpus import A_USER, CHAT, chat, many
from tests.support.node import Nodes
from tests.support.warm import NOTHING, WarmProcess

IS_LONG = "HEAVY" in os.environ
BODIES = 64 if IS_LONG else 8
SLOW_CLIENTS = 1_000 if IS_LONG else 60
MEBIBYTE = 1024**2
ONE_MIB = 100
ALL_MIB = 1_024
HEAD_S = 10.0
PATIENCE_S = 300


class Node:
    """A daemon in a process of its own, and the key of its operator."""

    def __init__(self, directory: Path) -> None:
        nodes = Nodes(directory)
        self.key = nodes.init("10")
        self.port = free_port()
        self._process = WarmProcess(
            "tests.faults.killed_node:main",
            [str(directory / "node" / "gwd.toml"), str(self.port)],
            {**os.environ, "GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "1000000"},
            out=NOTHING,
            err=NOTHING,
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def begin(self) -> None:
        async with httpx.AsyncClient() as client, asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(httpx.TransportError):
                    ready = await client.get(f"{self.url}/readyz")
                    assert ready.status_code == 200
                    return
                await asyncio.sleep(0.02)

    async def end(self) -> None:
        assert await asyncio.to_thread(self._process.end) == 0

    def memory_mib(self, name: str) -> float:
        """VmRSS, what is held now, or VmHWM, the most since `forget_peak`."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split(f"{name}:")[1].split()[0]) / 1_024

    def forget_peak(self) -> None:
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")


@pytest_asyncio.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node(tmp_path)
    await made.begin()
    yield made
    await made.end()


@pytest.mark.slow
async def test_the_worst_bodies_take_no_more_memory_than_promised(
    node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    async with httpx.AsyncClient(base_url=f"{node.url}/api/v1", timeout=PATIENCE_S) as client:
        made = await client.post(
            "/keys", json={"name": "heavy"}, headers={"authorization": f"Bearer {node.key}"}
        )
        headers = {
            "authorization": f"Bearer {made.json()['key']}",
            "content-type": "application/json",
        }

        async def send(body: bytes) -> None:
            reply = await client.post(CHAT, content=body, headers=headers)
            assert reply.status_code in (400, 404, 413, 503), reply.text

        worst = _worst()
        await send(worst["objects"][:-1])
        told = []
        for name, body in worst.items():
            before = node.memory_mib("VmRSS")
            node.forget_peak()
            await send(body)
            more = node.memory_mib("VmHWM") - before
            assert more < ONE_MIB, name
            told.append(f"{name} {more:.0f}")
        before = node.memory_mib("VmRSS")
        node.forget_peak()
        bodies = list(worst.values())
        await asyncio.gather(*(send(bodies[n % len(bodies)]) for n in range(BODIES)))
        together = node.memory_mib("VmHWM") - before
        assert together < ALL_MIB
    with capsys.disabled():
        print(f"\n  MiB for one of {', '.join(told)}; for {BODIES} at once {together:.0f}")


@pytest.mark.slow
async def test_clients_that_hardly_speak_are_closed_and_cost_the_others_nothing(
    node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each sends one byte a second of a head that never ends; good ones are answered meanwhile."""
    async with httpx.AsyncClient(base_url=node.url, timeout=PATIENCE_S) as client:

        async def asked(count: int) -> list[float]:
            took = []
            for _ in range(count):
                began_s = time.perf_counter()
                assert (await client.get("/healthz")).status_code == 200
                took.append(time.perf_counter() - began_s)
                await asyncio.sleep(0.01)
            return took

        alone = await asked(200)
        slow = [asyncio.create_task(_hardly_speak(node.port)) for _ in range(SLOW_CLIENTS)]
        await asyncio.sleep(1)
        beside = await asked(200)
        lasted = await asyncio.gather(*slow)
    usual_s, then_s = (quantiles(took, n=100)[-1] for took in (alone, beside))
    with capsys.disabled():
        print(
            f"\n  {SLOW_CLIENTS} slow clients were closed after {max(lasted):.1f} s at the latest; 99 of 100 good ones"
            f" within {usual_s * 1000:.1f} ms before, {then_s * 1000:.1f} ms beside them"
        )
    assert min(lasted) > HEAD_S / 2
    assert max(lasted) < (HEAD_S + 3 if IS_LONG else PATIENCE_S)
    if IS_LONG:
        assert then_s < 2 * max(usual_s, 0.005)


def _worst() -> dict[str, bytes]:
    """Bodies of as many structural bytes as are allowed, and one of too many."""
    return {
        "objects": chat(A_USER, b'"x":[%b],' % many(b"{}", 490_000))(),
        "fields": chat(A_USER, many(b'"x#":1', 299_000) + b",")(),
        "messages": chat(many(A_USER, 99_000))(),
        "a number too many": chat(A_USER, b'"x":[%b],' % many(b"[1]", 490_000))(),
    }


async def _hardly_speak(port: int) -> float:
    """How long the connection was kept, in seconds."""
    began_s = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    ended = asyncio.ensure_future(reader.read())
    writer.write(b"GET /healthz HTTP/1.1\r\nX-A: ")
    while not ended.done():
        writer.write(b"a")
        await asyncio.wait([ended], timeout=1)
    with suppress(ConnectionError):
        await ended
    lasted_s = time.perf_counter() - began_s
    writer.close()
    return lasted_s
