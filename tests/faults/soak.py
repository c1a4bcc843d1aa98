"""A node under steady load with clients that hang up and a vendor that fails, watched for what grows.

`leaking_main` is a daemon that leaks, by which the watching shows its teeth.
"""

import asyncio
import os
import random
import re
import signal
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Final

import httpx
import msgspec

from gwd import ledger, proof
from gwd.demo import Behaviour
from gwd.demo.script import Script
from gwd.pipeline import inference
from gwd.store.connection import open_connection
from tests.faults import killed_node
from tests.faults.kill_harness import Harness
from tests.vendor import StrictVendor

CLIENTS: Final = 24
HANGS_UP: Final = 0.2
FAILS: Final = 0.1
SAMPLE_S: Final = 0.5
MEBIBYTE: Final = 1024**2
_FAULTS: Final = (
    Behaviour(status=500),
    Behaviour(status=429, retry_after="0"),
    Behaviour(cut="reset", cut_after=2, tokens=8),
    Behaviour(cut="reset", cut_after=-1),
    Behaviour(malformed="bad_json"),
)
_HONEST: Final = Behaviour(event_delay_s=0.02, tokens=12)


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What `/metrics` said at one moment."""

    memory_bytes: float
    files: float
    oldest_hold_s: float


class Figures(msgspec.Struct, kw_only=True):
    """What a soak has seen; `wrong` says what should not have been."""

    answers: int = 0
    errors: int = 0
    hung_up: int = 0
    first_bytes: float = 0
    last_bytes: float = 0
    files: tuple[float, float] = (0, 0)
    lag_p99_s: float = 0
    oldest_hold_s: float = 0
    wrong: list[str] = msgspec.field(default_factory=list)

    @property
    def growth(self) -> float:
        """Of the memory, as a part of what it was."""
        return self.last_bytes / self.first_bytes - 1

    def __str__(self) -> str:
        return (
            f"{self.answers} answers, {self.errors} errors, {self.hung_up} hang-ups; memory"
            f" {self.first_bytes / MEBIBYTE:.0f} to {self.last_bytes / MEBIBYTE:.0f} MiB ({self.growth:+.1%}), files"
            f" {self.files[0]:.0f} to {self.files[1]:.0f}, 99 of 100 lags of the loop at most"
            f" {self.lag_p99_s * 1000:.0f} ms, oldest hold {self.oldest_hold_s:.1f} s, {len(self.wrong)} faults"
        )


class Soak(Harness):
    """One life of a node. Growth is from the median of the first tenth after a warm-up to that of the last tenth."""

    def __init__(self, directory: Path, vendor: StrictVendor, seed: int) -> None:
        super().__init__(directory, vendor, seed)
        self.seen = Figures()
        self._ends = False

    async def play(self, seconds: float) -> Figures:
        """Load for so long, then a rest, a stop and the books."""
        await self._start([])
        async with httpx.AsyncClient(base_url=self._url, timeout=30) as client:
            await self._load(client, seconds / 8, [])  # whatever is made once is made now
            await asyncio.sleep(1)
            before = await self._look_at(client)
            looks: list[Look] = []
            lags = await self._lags(client)
            await self._load(client, seconds, looks)
            self._judge_lags(lags, await self._lags(client))
            await self._rest(client)
            after = await self._look_at(client)
        tenth = max(1, len(looks) // 10)
        self.seen.first_bytes = median(look.memory_bytes for look in looks[:tenth])
        self.seen.last_bytes = median(look.memory_bytes for look in looks[-tenth:])
        self.seen.files = (before.files, after.files)
        self.seen.oldest_hold_s = max(look.oldest_hold_s for look in looks)
        await self._stop()
        return self.seen

    async def _load(self, client: httpx.AsyncClient, seconds: float, looks: list[Look]) -> None:
        self._ends = False
        load = asyncio.gather(*(self._ask() for _ in range(CLIENTS)))
        for _ in range(round(seconds / SAMPLE_S)):
            await asyncio.sleep(SAMPLE_S)
            looks.append(await self._look_at(client))
        self._ends = True
        await load

    async def _ask(self) -> None:
        body = {
            "model": "demo/killed",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "hello " * 50}],
        }
        async with self._client() as client:
            while not self._ends:
                body["stream"] = self._random.random() < 0.7
                with suppress(httpx.TimeoutException):
                    async with client.stream("POST", "/chat/completions", json=body) as reply:
                        await self._read(reply)
                await asyncio.sleep(self._random.uniform(0, 0.2))

    async def _read(self, reply: httpx.Response) -> None:
        if self._random.random() < HANGS_UP:
            self.seen.hung_up += 1
            pieces = self._random.randrange(1, 6)
            async for _ in reply.aiter_raw():
                pieces -= 1
                if not pieces:
                    return
            return
        text = (await reply.aread()).decode()
        if reply.status_code == 200 and '"error"' not in text:
            self.seen.answers += 1
        else:
            self.seen.errors += 1

    async def _rest(self, client: httpx.AsyncClient) -> None:
        """Everything that was begun is settled, and what clients left is closed."""
        for _ in range(600):
            if _value(await self._metrics(client), "gwd_open_reservations") == 0:
                break
            await asyncio.sleep(0.05)
        else:
            self.seen.wrong.append("holds are open that nothing uses")
        await asyncio.sleep(1)

    async def _stop(self) -> None:
        child = self._child
        assert child is not None
        child.send_signal(signal.SIGTERM)
        if await asyncio.to_thread(child.wait) != 0:
            self.seen.wrong.append("the node did not stop with 0")
        connection = open_connection(self._database, "reader")
        try:
            self.seen.wrong += map(str, proof.verify(connection, boot_id="nobody runs").differences)
            self.seen.wrong += [
                f"{hold.generation_id} is held" for hold in ledger.open_reservations(connection)
            ]
        finally:
            connection.raw.close()

    async def _metrics(self, client: httpx.AsyncClient) -> str:
        return (await client.get(f"http://127.0.0.1:{self._port}/metrics")).text

    async def _look_at(self, client: httpx.AsyncClient) -> Look:
        text = await self._metrics(client)
        return Look(
            memory_bytes=_value(text, "process_resident_memory_bytes"),
            files=_value(text, "process_open_fds"),
            oldest_hold_s=_value(text, "gwd_oldest_reservation_seconds"),
        )

    async def _lags(self, client: httpx.AsyncClient) -> dict[float, float]:
        """How many samples of the loop's lag were at most so long, by seconds."""
        found = re.findall(
            r'^gwd_loop_lag_seconds_bucket\{le="(.+)"\} (.+)$', await self._metrics(client), re.M
        )
        return {float(bound.replace("+Inf", "inf")): float(count) for bound, count in found}

    def _judge_lags(self, before: dict[float, float], after: dict[float, float]) -> None:
        counts = {bound: count - before[bound] for bound, count in sorted(after.items())}
        wanted = 0.99 * counts[float("inf")]
        self.seen.lag_p99_s = next(bound for bound, count in counts.items() if count >= wanted)


class FailingScript(Script):
    """One call of ten fails, in one of several ways."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance

    def take(self, model: str, words: str | None) -> Behaviour:
        return self._chance.choice(_FAULTS) if self._chance.random() < FAILS else _HONEST


def _value(metrics: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", metrics, re.M)
    assert found is not None, name
    return float(found[1])


def leaking_main() -> int:
    """A daemon that keeps a file and half a mebibyte of each request."""
    kept = []

    def leak() -> None:
        kept.append((os.open(os.devnull, os.O_RDONLY), b"x" * (MEBIBYTE // 2)))

    killed_node.after(inference, "admit", leak)
    return killed_node.main()
