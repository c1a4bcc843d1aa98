"""x-gw-overhead-ms: what the gateway itself took until the answer began, whoever its vendor kept waiting."""

import httpx
import pytest

from gwd.demo.behaviour import Behaviour
from tests.support.node import Gateway

SLOW_S = 0.6


def overhead_ms(reply: httpx.Response) -> float:
    text = reply.headers["x-gw-overhead-ms"]
    assert text.partition(".")[2].isdigit()
    assert len(text.partition(".")[2]) == 1
    return float(text)


def without_the_vendor_ms(reply: httpx.Response) -> float:
    """The whole time, as the client measured it, but for what the vendor is known to have taken."""
    return (reply.elapsed.total_seconds() - SLOW_S) * 1_000


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_waiting_for_a_slow_vendor_is_not_the_gateways(
    gateway: Gateway, stream: bool
) -> None:
    before = gateway.running.node.counters.overhead.total
    gateway.vendor.script.next(Behaviour(delay_s=SLOW_S, first_event_delay_s=SLOW_S))
    reply = await gateway.chat(stream=stream)
    assert reply.status_code == 200
    assert 0 < overhead_ms(reply) <= without_the_vendor_ms(reply)
    counted = gateway.running.node.counters.overhead
    assert sum(counted.counts) == 1
    assert round((counted.total - before) * 1_000, 1) == overhead_ms(reply)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_failed_attempts_are_waiting_too(gateway: Gateway, stream: bool) -> None:
    gateway.vendor.script.next(Behaviour(status=503, delay_s=SLOW_S), model="gpt-demo")
    reply = await gateway.chat(models=["demo/chat", "demo/chat-b"], stream=stream)
    assert reply.headers["x-gw-model"] == "demo/chat-b"
    assert 0 < overhead_ms(reply) <= without_the_vendor_ms(reply)
    gateway.vendor.script.next(Behaviour(status=503, delay_s=SLOW_S), model="gpt-demo")
    failed = await gateway.chat(stream=stream)
    assert failed.status_code == 503
    assert 0 < overhead_ms(failed) <= without_the_vendor_ms(failed)


async def test_a_refusal_tells_it_and_browsers_may_read_it(gateway: Gateway) -> None:
    refused = await gateway.chat(model="demo/none")
    assert refused.status_code == 404
    assert overhead_ms(refused) > 0
    unread = await gateway.client.post("/chat/completions", content=b"{")
    assert (unread.status_code, overhead_ms(unread) >= 0) == (400, True)
    served = await gateway.chat(headers={"origin": "https://app.example"})
    assert "x-gw-overhead-ms" in served.headers["access-control-expose-headers"]
