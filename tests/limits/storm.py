"""Many clients at once on one node: who got what, how fast, and what GET /credits said meanwhile."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal

import msgspec

from gwd.core.target import UpstreamCall
from gwd.upstream.base import Timeouts
from gwd.upstream.http_client import HttpClient
from tests.limits.till import decoded
from tests.support.node import Gateway

_PATIENCE_S = 300.0


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
    gateway: Gateway,
    *,
    workers: int,
    requests: int,
    key: str,
    stream: bool = False,
    sender: Mapping[str, str] | None = None,
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
    call = UpstreamCall(
        url=f"{gateway.base_url}/chat/completions",
        headers={
            "authorization": f"Bearer {key}",
            "content-type": "application/json",
            **(sender or {}),
        },
        body=msgspec.json.encode(body),
        stream=stream,
    )
    client = HttpClient(Timeouts())
    watching = asyncio.create_task(_watch_credits(gateway, found))
    await asyncio.gather(*(_work(client, call, left, found) for _ in range(workers)))
    found.seconds = time.monotonic() - began
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    await client.close()
    await gateway.at_rest()
    return found


async def _work(client: HttpClient, call: UpstreamCall, left: Iterator[int], found: Storm) -> None:
    for _ in left:
        reply = await client.send(call, _PATIENCE_S)
        text = await reply.read_all(_PATIENCE_S)
        reply.close()
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
