"""Load on a daemon that is killed again and again, and the look at its ledger after each start."""

import asyncio
import os
import random
import signal
import time
from decimal import Decimal
from pathlib import Path

import httpx
import msgspec

from gwd import ledger, proof
from gwd.demo import Behaviour, SimulatedVendor
from gwd.store import Connection
from gwd.store.connection import open_connection
from tests.cases.caserunner.ports import free_port
from tests.faults.killed_node import POINTS, UNSETTLED
from tests.support.node import Nodes
from tests.support.warm import NOTHING, WarmProcess

STREAMS = 32
NANO = 1_000_000_000
SENDER = {"x-gw-tags": "eu,nightly", "x-gw-user-id": "ann"}
_NO_RATE_LIMIT = {"GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "1000000"}
_FIND = (
    "SELECT g.cost_total_nano, COUNT(e.seq) FILTER (WHERE e.type = 'settlement'),"
    " COALESCE(SUM(e.amount_nano) FILTER (WHERE e.type = 'charge'), 0)"
    " FROM generation AS g LEFT JOIN entry AS e ON e.generation_id = g.id WHERE g.id = ?"
)


class Figures(msgspec.Struct, kw_only=True):
    """What a run has seen; `wrong` says what should not have been."""

    rounds: int = 0
    acknowledged: int = 0
    recovered: int = 0
    slowest_start_s: float = 0.0
    wrong: list[str] = []

    def __str__(self) -> str:
        return (
            f"{self.rounds} kills under {STREAMS} streams: {self.acknowledged} settlements acknowledged,"
            f" {self.recovered} holds resolved by recovery, slowest start {self.slowest_start_s:.2f} s,"
            f" {len(self.wrong)} faults"
        )


class Harness:
    """One node in one directory over many lives. The vendor lives here, and outlives every life of the node."""

    program = "tests.faults.killed_node:main"

    def __init__(self, directory: Path, vendor: SimulatedVendor, seed: int) -> None:
        self.figures = Figures()
        self._nodes = Nodes(directory)
        self._config = directory / "node" / "gwd.toml"
        self._database = str(directory / "node" / "gwd.db")
        self._management_key = self._nodes.init("1000")
        self._port = free_port()
        self._vendor = vendor
        self._random = random.Random(seed)
        self._key = ""
        self._child: WarmProcess | None = None
        self._acknowledged: dict[str, int] = {}

    async def prepare(self) -> None:
        """A catalog with one model, and a key."""
        self._vendor.script.always(Behaviour(event_delay_s=0.025, tokens=8))
        await self._start([])
        headers = {"authorization": f"Bearer {self._management_key}"}
        async with httpx.AsyncClient(base_url=self._url, headers=headers) as operator:
            for path, body in self._catalog():
                reply = await operator.post(path, json=body)
                assert reply.status_code in (200, 201), reply.text
            self._key = (await operator.post("/keys", json={"name": "load"})).json()["key"]
        await self._die()

    async def round(self, point: str | None = None) -> None:
        """One life: start, look at the books, load, death at the point or at a random instant."""
        count = 1 if point == UNSETTLED else self._random.randint(10, 40)
        if point == "after a checkpoint":
            count = 1
        await self._start([point, str(count)] if point else [])
        self._look()
        async with self._client() as client:
            load = asyncio.gather(*(self._stream(client) for _ in range(STREAMS)))
            if point is None:
                await asyncio.sleep(self._random.uniform(0.3, 0.9))
            elif point == UNSETTLED:
                await asyncio.sleep(2)
            else:
                await self._death_by_itself(point)
            await self._die()
            await load
        self.figures.rounds += 1

    async def last_look(self) -> None:
        """Start once more and look."""
        await self._start([])
        self._look()
        await self._die()

    async def _death_by_itself(self, point: str) -> None:
        assert self._child is not None
        for _ in range(6_000):
            if self._child.poll() is not None:
                return
            await asyncio.sleep(0.01)
        self.figures.wrong.append(f"the point {point!r} was never reached")

    async def _start(self, point: list[str]) -> None:
        began_s = time.monotonic()
        self._child = WarmProcess(
            self.program,
            [str(self._config), str(self._port), *point],
            {**os.environ, **_NO_RATE_LIMIT},
            out=NOTHING,
            err=NOTHING,
        )
        async with httpx.AsyncClient() as client:
            while True:
                try:
                    ready = await client.get(f"http://127.0.0.1:{self._port}/readyz")
                    assert ready.status_code == 200, "the node started in quarantine"
                    break
                except httpx.TransportError:
                    assert self._child.poll() is None, "the node does not start any more"
                    assert time.monotonic() - began_s < 30
                    await asyncio.sleep(0.01)
        took_s = self._child.processor_s()  # a busy machine changes nothing
        self.figures.slowest_start_s = max(self.figures.slowest_start_s, took_s)

    async def _die(self) -> None:
        child = self._child
        assert child is not None
        child.send_signal(signal.SIGKILL)
        await asyncio.to_thread(child.wait)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self._url,
            headers={"authorization": f"Bearer {self._key}", **SENDER},
            limits=httpx.Limits(max_connections=None),
            timeout=10,
        )

    async def _stream(self, client: httpx.AsyncClient) -> None:
        """Ask, one stream after the other, until the node is gone; note what it acknowledged."""
        body = {
            "model": "demo/killed",
            "stream": True,
            "max_tokens": 100,
            "usage": {"include": True},
            "messages": [{"role": "user", "content": "hello"}],
        }
        while True:
            try:
                await asyncio.sleep(self._random.uniform(0, 0.1))
                reply = await client.post("/chat/completions", json=body)
            except httpx.TransportError:
                return
            self._note(reply)

    def _note(self, reply: httpx.Response) -> None:
        if reply.status_code != 200 or not reply.text.endswith("data: [DONE]\n\n"):
            self.figures.wrong.append(f"{reply.status_code}: {reply.text[-300:]}")
            return
        last = msgspec.json.decode(reply.text.rstrip().split("\n\n")[-2].removeprefix("data: "))
        cost = Decimal(str(last["usage"]["cost"]))
        self._acknowledged[reply.headers["x-gw-generation-id"]] = int(cost * NANO)
        self.figures.acknowledged += 1

    def _look(self) -> None:
        """Right after a start: the books add up, nothing is held, and what was acknowledged is there once."""
        connection = open_connection(self._database, "reader")
        try:
            verified = proof.verify(connection, boot_id="the run that has just begun")
            self.figures.wrong += map(str, verified.differences)
            held = ledger.open_reservations(connection)
            self.figures.wrong += [f"{hold.generation_id} is still held" for hold in held]
            self.figures.wrong += self._missing(connection)
            row = connection.row(
                "SELECT COUNT(*) FROM generation WHERE error_message ="
                " 'the gateway stopped while this request was running'"
            )
            assert row is not None
            self.figures.recovered = row[0]
        finally:
            connection.raw.close()

    def _missing(self, connection: Connection) -> list[str]:
        wrong = []
        for generation_id, cost_nano in self._acknowledged.items():
            found = connection.row(_FIND, (generation_id,))
            if found != (cost_nano, 1, cost_nano):
                wrong.append(
                    f"{generation_id} was acknowledged at {cost_nano}, the books say {found}"
                )
        return wrong

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self._port}/api/v1"

    def _catalog(self) -> list[tuple[str, dict[str, object]]]:
        url = self._vendor.openai_url
        provider: dict[str, object] = {
            "slug": "p",
            "name": "p",
            "adapter": "openai_chat",
            "base_url": url,
        }
        model: dict[str, object] = {
            "id": "demo/killed",
            "name": "killed",
            "vendor": "Demo",
            "context_length": 100_000,
            "max_completion_tokens": 1_000,
            "supported_parameters": ["max_tokens"],
            "input_modalities": ["text"],
            "output_modalities": ["text"],
            "pricing": {"prompt": "0.000002", "completion": "0.000008"},
        }
        endpoint: dict[str, object] = {
            "model": "demo/killed",
            "provider": "p",
            "upstream_model": "gpt-demo",
        }
        return [
            ("/catalog/providers", provider),
            ("/catalog/credentials", {"provider": "p", "key": "sk-demo"}),
            ("/catalog/models", model),
            ("/catalog/endpoints", endpoint),
        ]


def plan(rounds: int) -> list[str | None]:
    """Which point each round dies at: every point in turn, and a random instant between two of them."""
    turns = [turn for point in POINTS for turn in (point, None)]
    return [turns[number % len(turns)] for number in range(rounds)]
