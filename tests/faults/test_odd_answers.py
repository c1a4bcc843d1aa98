"""However odd a vendor's answers are, every request ends by its deadline and no hold stays open. `make odd` asks more.

Some clients leave, some read slowly: whatever they do, the deadline is the same.
"""

import asyncio
import os
import random
import time
from pathlib import Path

import httpx
import pytest

from gwd import ledger
from tests.faults.odd_answers import OddVendor
from tests.support.node import PRICES, Gateway, open_gateway

COUNT = int(os.environ.get("ODD_ANSWERS", "300"))
SEED = int(os.environ.get("ODD_SEED", "0")) or random.randrange(1_000_000)
TOTAL_S = 1.0
AT_ONCE = 50
SETTINGS = {
    "GWD_TIMEOUTS_TOTAL_S": str(TOTAL_S),
    "GWD_TIMEOUTS_FIRST_EVENT_S": "0.5",
    "GWD_TIMEOUTS_IDLE_S": "0.5",
    "GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "100000",
}


@pytest.mark.slow
async def test_no_odd_answer_leaves_a_hold_open_past_the_deadline(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    async with (
        OddVendor(SEED * 1_000).open() as vendor,
        open_gateway(tmp_path, credit="1000", environment=SETTINGS) as node,
    ):
        models = [await _model_at(node, vendor, number) for number in range(AT_ONCE)]
        late: list[str] = []
        for start in range(0, COUNT, AT_ONCE):
            # What an earlier answer made rest is asked again.
            await node.manage("POST", "/operator/reload")
            before = vendor.calls
            took = await asyncio.gather(*(_ask(node, model, rng) for model in models))
            late += [f"after call {before}: {s:.1f} s" for s in took if s > 3 * TOTAL_S + 5]
            assert await _open_holds(node) == [], f"seed {SEED}, calls {before} and on"
            if start and not vendor.calls - before:
                late.append(f"nothing reached the vendor after call {before}")
        assert late == [], f"seed {SEED}"
        assert vendor.calls > COUNT / 2


async def _ask(node: Gateway, model: str, rng: random.Random) -> float:
    """Seconds until the request was over for its client, which may leave or read slowly."""
    began_s, manner = time.monotonic(), rng.random()
    body = {
        "model": model,
        "stream": rng.random() < 0.7,
        "messages": [{"role": "user", "content": "hello"}],
    }
    try:
        async with (
            asyncio.timeout(0.05 if manner < 0.1 else 30),
            node.client.stream("POST", "/chat/completions", json=body, timeout=30) as reply,
        ):
            async for _ in reply.aiter_raw():
                if manner > 0.9:
                    await asyncio.sleep(0.05)
    except (httpx.TransportError, TimeoutError):
        pass
    return time.monotonic() - began_s


async def _model_at(node: Gateway, vendor: OddVendor, number: int) -> str:
    """A model with an endpoint of its own: what one answer makes rest is no other's."""
    slug, provider = f"odd/m{number}", f"odd-{number}"
    await node.add_provider(provider, "openai_chat", f"http://127.0.0.1:{vendor.port}/v1")
    await node.add_model(slug, pricing=PRICES)
    await node.add_endpoint(slug, provider, "odd")
    return slug


async def _open_holds(node: Gateway) -> list[str]:
    """Holds that are still there a moment after their clients were told the end."""
    held: list[str] = []
    for _ in range(int((TOTAL_S + 3) / 0.05)):
        held = [hold.generation_id for hold in await node.store.read(ledger.open_reservations)]
        if not held:
            break
        await asyncio.sleep(0.05)
    return held
