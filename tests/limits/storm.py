"""Many clients at once on one node: who got what, how fast, and what GET /credits said meanwhile."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import aiohttp
import msgspec

from tests.limits.till import decoded
from tests.support.node import Gateway


class Storm(msgspec.Struct, kw_only=True):
    """What came of it. `outcomes` counts statuses, refusals with their code."""

    outcomes: Counter[str] = msgspec.field(default_factory=Counter)
    seconds: float = 0.0
    looks: int = 0

    @property
    def served(self) -> int:
        return self.outcomes["200"]

    @property
    def rate(self) -> float:
        return self.outcomes.total() / self.seconds


async def storm(
    gateway: Gateway, *, workers: int, requests: int, key: str, stream: bool = False
) -> Storm:
    """`workers` clients that send `requests` in all, as fast as they are answered; the balance is watched."""
    found = Storm()
    left = iter(range(requests))
    body = {
        "model": "demo/chat",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 60,
        "stream": stream,
    }
    began = time.monotonic()
    connector = aiohttp.TCPConnector(limit=workers)
    headers = {"authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        watching = asyncio.create_task(_watch_credits(gateway, found))
        url = f"{gateway.base_url}/chat/completions"
        await asyncio.gather(*(_work(session, url, body, left, found) for _ in range(workers)))
        found.seconds = time.monotonic() - began
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    await gateway.at_rest()
    return found


async def _work(
    session: aiohttp.ClientSession, url: str, body: Any, left: Iterator[int], found: Storm
) -> None:
    for _ in left:
        async with session.post(url, json=body) as reply:
            text = await reply.read()
        if reply.status == 200:
            found.outcomes["200"] += 1
        else:
            found.outcomes[f"{reply.status} {decoded(text)['error']['code']}"] += 1


async def _watch_credits(gateway: Gateway, found: Storm) -> None:
    """At every moment the balance is what is free and what is held, and what its buckets hold."""
    while True:
        shown = decoded((await gateway.operator.get("/credits")).content)["data"]
        assert shown["balance"] == shown["available"] + shown["reserved"], shown
        buckets: Decimal = shown["promotional"] + shown["granted"] + shown["purchased"]
        assert shown["balance"] == buckets, shown
        assert shown["available"] >= 0, shown
        assert shown["total_credits"] - shown["total_usage"] == shown["balance"], shown
        found.looks += 1
        await asyncio.sleep(0.05)
