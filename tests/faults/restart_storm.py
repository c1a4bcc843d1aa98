"""Streams over several endpoints whose vendor does everything wrong now and then, while their node restarts.

The vendor keeps the time of every call: what rested when a node was stopped has to be tried by one call at a time by
the next one, until it serves again.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import msgspec

from gwd import ledger, proof
from gwd.demo import Behaviour
from gwd.demo.calls import Call, Calls
from gwd.demo.script import Script
from gwd.demo.traits import ModelTraits
from gwd.store.connection import open_connection
from tests.cases.caserunner.ports import free_port
from tests.support.node import Nodes
from tests.support.warm import NOTHING, WarmProcess
from tests.vendor import StrictVendor

MODELS = tuple(f"stormy-{number}" for number in range(1, 7))
"""One endpoint each; the key of the last is refused from its third call on."""
REFUSED = MODELS[-1]
SENDER = {"x-gw-tags": "eu,nightly", "x-gw-user-id": "ann"}
SHARE = 0.05
TELLS_S = 0.12
"""How long an answer takes to begin: two calls that overlap do so by more than NEARLY_S."""
NEARLY_S = 0.06
SETTINGS = {
    "GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "1000000",
    "GWD_TIMEOUTS_FIRST_EVENT_S": "1.5",
    "GWD_TIMEOUTS_IDLE_S": "1.5",
    "GWD_TIMEOUTS_DRAIN_S": "3",
}
FAULTS = {
    "reset": Behaviour(cut="reset", cut_after=1, delay_s=TELLS_S),
    "reset before the head": Behaviour(cut="reset", cut_after=-1, delay_s=TELLS_S),
    "stall": Behaviour(stall_after=3, delay_s=TELLS_S),
    "slow head": Behaviour(delay_s=30),
    "429": Behaviour(status=429, delay_s=TELLS_S),
    "429 with a hint": Behaviour(status=429, retry_after="1", delay_s=TELLS_S),
    "500": Behaviour(status=500, delay_s=TELLS_S),
    "503": Behaviour(status=503, delay_s=TELLS_S),
    "malformed": Behaviour(malformed="bad_json", delay_s=TELLS_S),
    "html": Behaviour(malformed="html", delay_s=TELLS_S),
}
HONEST = Behaviour(delay_s=TELLS_S, event_delay_s=0.005, tokens=8)
UNAUTHORIZED = Behaviour(status=401, delay_s=TELLS_S)
SERVES = frozenset(("reset", "stall", "honest"))
"""What begins with an event: from then on the endpoint serves, whatever comes after it."""


class Figures(msgspec.Struct, kw_only=True):
    """What the storm has seen; `wrong` says what should not have been."""

    whole: int = 0
    errors: Counter[str] = msgspec.field(default_factory=Counter)
    in_band: int = 0
    broken_by_the_kill: int = 0
    calls: Counter[str] = msgspec.field(default_factory=Counter)
    rested: list[int] = msgspec.field(default_factory=list)
    trials: list[int] = msgspec.field(default_factory=list)
    most_at_once: int = 0
    recovered: int = 0
    wrong: list[str] = msgspec.field(default_factory=list)

    @property
    def streams(self) -> int:
        return self.whole + self.errors.total() + self.in_band + self.broken_by_the_kill

    def __str__(self) -> str:
        return (
            f"{self.streams} streams: {self.whole} whole, {dict(self.errors)}, {self.in_band} with an error inside,"
            f" {self.broken_by_the_kill} cut by the kill; the vendor's calls: {dict(self.calls)};"
            f" pairs that rested at a stop: {self.rested}, calls on trial after it: {self.trials},"
            f" at most {self.most_at_once} at once; {self.recovered} holds recovered; {len(self.wrong)} faults"
        )


class TimedCall(msgspec.Struct):
    """A call as the vendor saw it: when it came and went, and what it got."""

    model: str
    kind: str
    came_s: float
    went_s: float | None = None


class _TimedCalls(Calls):
    def __init__(self, seen: list[TimedCall]) -> None:
        super().__init__()
        self._seen = seen
        self._watchers: set[asyncio.Task[None]] = set()

    async def add(self, call: Call) -> None:
        timed = TimedCall(str((call.body or {}).get("model")), "", time.monotonic())
        self._seen.append(timed)
        watcher = asyncio.create_task(self._watch(call, timed))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        await super().add(call)

    async def _watch(self, call: Call, timed: TimedCall) -> None:
        await call.finished.wait()
        timed.went_s = time.monotonic()


class _StormScript(Script):
    def __init__(self, seen: list[TimedCall], seed: int) -> None:
        super().__init__()
        self._seen = seen
        self._random = random.Random(seed)
        self.counts: Counter[str] = Counter()

    def take(self, model: str, words: str | None) -> Behaviour:
        kind, behaviour = self._chosen(model)
        mine = next(each for each in self._seen if each.model == model and not each.kind)
        mine.kind = kind or "honest"
        self.counts[mine.kind] += 1
        return behaviour

    def _chosen(self, model: str) -> tuple[str, Behaviour]:
        if model == REFUSED and sum(each.model == REFUSED for each in self._seen) >= 3:
            return "401", UNAUTHORIZED
        place = int(self._random.random() / SHARE)
        names = list(FAULTS)
        return (names[place], FAULTS[names[place]]) if place < len(names) else ("", HONEST)


class Storm:
    """One node over three lives, its vendor and its clients."""

    def __init__(self, directory: Path, *, streams: int, clients: int, seed: int) -> None:
        self.figures = Figures()
        self._streams = streams
        self._clients = clients
        self._seen: list[TimedCall] = []
        self._script = _StormScript(self._seen, seed)
        traits = tuple(ModelTraits(name=name) for name in MODELS)
        self._vendor = StrictVendor(script=self._script, models=traits)
        self._vendor.calls = _TimedCalls(self._seen)
        self._nodes = Nodes(directory)
        self._config = directory / "node" / "gwd.toml"
        self._database = str(directory / "node" / "gwd.db")
        self._management_key = self._nodes.init("1000")
        self._port = free_port()
        self._key = ""
        self._endpoints: dict[str, str] = {}
        self._credentials: dict[str, str] = {}
        self._child: WarmProcess | None = None
        self._begun = 0
        self._killed = self._stopping = False
        self._lives: list[tuple[int, set[str]]] = []

    async def play(self) -> Figures:
        """The whole storm: a stop after a third of the streams, a kill after two thirds, a last look."""
        async with self._vendor:
            await self._start()
            await self._prepare()
            load = asyncio.gather(*(self._client() for _ in range(self._clients)))
            try:
                await self._until(self._streams // 3)
                self._stopping = True
                self._child_().send_signal(signal.SIGTERM)
                if await asyncio.to_thread(self._child_().wait) != 0:
                    self.figures.wrong.append("the node did not stop with 0")
                await self._next_life()
                self._stopping = False
                await self._until(self._streams * 2 // 3)
                self._killed = True
                self._child_().send_signal(signal.SIGKILL)
                await asyncio.to_thread(self._child_().wait)
                await asyncio.sleep(0.1)  # every client has seen it
                await self._next_life()
                self._killed = False
                await load
            finally:
                load.cancel()
                self._child_().send_signal(signal.SIGTERM)
                await asyncio.to_thread(self._child_().wait)
            self._look()
        ends = [began for began, _ in self._lives[1:]] + [len(self._seen)]
        for (began, rested), end in zip(self._lives, ends, strict=True):
            self._judge(self._seen[began:end], rested)
        self.figures.calls = self._script.counts
        return self.figures

    async def _until(self, streams: int) -> None:
        while self.figures.streams < streams:
            assert self._child_().poll() is None, "the node died by itself"
            await asyncio.sleep(0.02)

    async def _next_life(self) -> None:
        """Start again, and remember what rested."""
        rested = self._resting()
        if REFUSED not in rested:
            self.figures.wrong.append("the refused key was not kept")
        self._lives.append((len(self._seen), rested))
        await self._start()

    def _resting(self) -> set[str]:
        """The models whose endpoints rest, or have rested and not served since, by what the dead node kept."""
        connection = open_connection(self._database, "reader")
        try:
            rows = connection.rows("SELECT endpoint_id, credential_id FROM rest")
        finally:
            connection.raw.close()
        named = {self._endpoints.get(endpoint) or self._credentials[key] for endpoint, key in rows}
        self.figures.rested.append(len(named))
        return named

    def _judge(self, life: list[TimedCall], rested: set[str]) -> None:
        """What rested is called by one at a time, until it has begun to serve."""
        now_s = time.monotonic()
        trials = 0
        for model in rested:
            calls = [call for call in life if call.model == model]
            if model == REFUSED:
                if calls:
                    self.figures.wrong.append(f"a refused key was used {len(calls)} times more")
                continue
            free_s = 0.0
            for call in calls:
                if call.came_s < free_s - NEARLY_S:
                    self.figures.most_at_once = max(self.figures.most_at_once, 2)
                    self.figures.wrong.append(f"two calls at once to {model}, which rested")
                self.figures.most_at_once = max(self.figures.most_at_once, 1)
                trials += 1
                if call.kind in SERVES:
                    # From its first event on it serves: whoever came before that came too early.
                    early = [
                        each for each in calls if call.came_s < each.came_s < call.came_s + NEARLY_S
                    ]
                    self.figures.wrong += [f"a call to {model} beside its trial" for _ in early]
                    break
                free_s = call.went_s or now_s
        self.figures.trials.append(trials)

    # --- the clients

    async def _client(self) -> None:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self._port}/api/v1",
            headers={"authorization": f"Bearer {self._key}", **SENDER},
            timeout=60,
        ) as client:
            while self._begun < self._streams:
                self._begun += 1
                await self._stream(client)

    async def _stream(self, client: httpx.AsyncClient) -> None:
        """One stream; while no node listens, or it is stopping, it is tried again as a client would."""
        content = f"stream {self._begun}"
        body = {
            "model": "demo/storm",
            "stream": True,
            "max_tokens": 100,
            "messages": [{"role": "user", "content": content}],
        }
        while True:
            try:
                reply = await client.post("/chat/completions", json=body)
            except httpx.ConnectError:
                await asyncio.sleep(0.05)
                continue
            except httpx.TransportError as broken:
                if self._killed:
                    self.figures.broken_by_the_kill += 1
                    return
                # A kept connection was closed by the node that stopped, or cut because bytes had come that it does not
                # read any more: no request was taken.
                is_untaken = "without sending a response" in str(broken) or (
                    self._stopping and not self._was_taken(content)
                )
                if not is_untaken:
                    self.figures.wrong.append(f"a stream was cut: {broken!r}")
                await asyncio.sleep(0.05)
                continue
            if reply.status_code == 503 and reply.json()["error"]["code"] == "draining":
                await asyncio.sleep(0.1)
                continue
            self._note(reply)
            await asyncio.sleep(min(1.0, float(reply.headers.get("retry-after", 0))))
            return

    def _was_taken(self, content: str) -> bool:
        """Whether the node had begun to serve it: the vendor was asked."""
        return any(content in str(call.body) for call in self._vendor.calls)

    def _note(self, reply: httpx.Response) -> None:
        if reply.status_code != 200:
            self.figures.errors[f"{reply.status_code} {reply.json()['error']['code']}"] += 1
        elif not reply.text.endswith("data: [DONE]\n\n"):
            self.figures.wrong.append(f"neither whole nor an error: {reply.text[-200:]!r}")
        elif '"error"' in reply.text:
            self.figures.in_band += 1
        elif '"finish_reason":"stop"' in reply.text:
            self.figures.whole += 1
        else:
            self.figures.wrong.append(f"it ended without an end: {reply.text[-300:]!r}")

    # --- the node

    def _child_(self) -> WarmProcess:
        assert self._child is not None
        return self._child

    async def _start(self) -> None:
        self._child = WarmProcess(
            "tests.faults.storm_node:main",
            [str(self._config), str(self._port)],
            {**os.environ, **SETTINGS},
            out=NOTHING,
            err=NOTHING,
        )
        async with httpx.AsyncClient() as client:
            while True:
                try:
                    ready = await client.get(f"http://127.0.0.1:{self._port}/readyz")
                    assert ready.status_code == 200, "the node started in quarantine"
                    return
                except httpx.TransportError:
                    assert self._child.poll() is None, "the node does not start any more"
                    await asyncio.sleep(0.01)

    async def _prepare(self) -> None:
        headers = {"authorization": f"Bearer {self._management_key}"}
        url = f"http://127.0.0.1:{self._port}/api/v1"
        async with httpx.AsyncClient(base_url=url, headers=headers) as operator:

            async def made(path: str, body: dict[str, Any]) -> Any:
                reply = await operator.post(path, json=body)
                assert reply.status_code == 201, reply.text
                return reply.json()

            model = {
                "id": "demo/storm",
                "name": "storm",
                "vendor": "Demo",
                "context_length": 100_000,
                "max_completion_tokens": 1_000,
                "supported_parameters": ["max_tokens"],
                "input_modalities": ["text"],
                "output_modalities": ["text"],
                "pricing": {"prompt": "0.000002", "completion": "0.000008"},
            }
            await made("/catalog/models", model)
            for upstream in MODELS:
                provider = {
                    "slug": upstream,
                    "name": upstream,
                    "adapter": "openai_chat",
                    "base_url": self._vendor.openai_url,
                }
                await made("/catalog/providers", provider)
                key = {"provider": upstream, "key": f"sk-{upstream}-0000"}
                credential = await made("/catalog/credentials", key)
                endpoint = {
                    "model": "demo/storm",
                    "provider": upstream,
                    "upstream_model": upstream,
                }
                found = await made("/catalog/endpoints", endpoint)
                self._endpoints[found["data"]["id"]] = upstream
                self._credentials[credential["data"]["id"]] = upstream
            self._key = (await made("/keys", {"name": "storm"}))["key"]

    def _look(self) -> None:
        """At the end: the books add up, nothing is held, and recovery has resolved what the kill had left."""
        connection = open_connection(self._database, "reader")
        try:
            verified = proof.verify(connection, boot_id="nobody runs")
            self.figures.wrong += map(str, verified.differences)
            held = ledger.open_reservations(connection)
            self.figures.wrong += [f"{hold.generation_id} is still held" for hold in held]
            row = connection.row(
                "SELECT COUNT(*) FROM generation WHERE error_message ="
                " 'the gateway stopped while this request was running'"
            )
            assert row is not None
            self.figures.recovered = row[0]
        finally:
            connection.raw.close()
