"""A stream from its first byte to its last: endings, signs of life, failover behind an open stream, slow readers."""

import asyncio
import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import httpx
import pytest

from gwd.api import readers
from gwd.demo import Behaviour
from gwd.dialects.chat_completions.render import ChatRenderer
from gwd.pipeline import inference
from gwd.pipeline.admit.admission import Stale
from gwd.pipeline.client import frame_queue, side
from gwd.pipeline.settle import final_record
from gwd.pricing.tokens import estimate_text
from tests.flows.conftest import ORDER, A, B
from tests.flows.frames import error_of, frames_of, receipt_of, text_of
from tests.support.node import Gateway

NANO = 1_000_000_000
SLOW = Behaviour(first_event_delay_s=0.5)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status line goes out after a tenth of a second, signs of life every twentieth."""
    monkeypatch.setattr(side, "STREAM_COMMIT_S", 0.1)
    monkeypatch.setattr(side, "KEEPALIVE_S", 0.05)


async def charged_nano(gateway: Gateway) -> Decimal:
    return (Decimal(10) - await gateway.balance()) * NANO


async def test_broken_stream_ends_in_three_parts_and_bills_what_was_received(
    gateway: Gateway,
) -> None:
    """The error chunk with usage, the bare error, [DONE]; what was received is charged."""
    gateway.vendor.script.next("error=server_error error_after=8")
    headers = {"x-gw-metadata": "enabled"}
    reply = await gateway.chat(stream=True, usage={"include": True}, headers=headers)
    assert reply.status_code == 200
    assert reply.text.endswith("data: [DONE]\n\n")
    *_, chunk, bare = frames_of(reply.text)
    assert chunk["choices"][0]["finish_reason"] == "error"
    assert chunk["error"]["code"] == bare["error"]["code"] == "upstream_error"
    assert chunk["error"]["message"] == bare["error"]["message"]
    assert set(bare) == {"error"}
    record = await gateway.generation(reply)
    assert (record["status"], record["finish_reason"]) == ("incomplete", "error")
    seen = text_of(frames_of(reply.text))
    assert chunk["usage"]["completion_tokens"] == estimate_text(seen) > 0
    assert record["tokens_completion"] == estimate_text(seen)
    cost = record["tokens_prompt"] * 2_000 + estimate_text(seen) * 8_000
    assert await charged_nano(gateway) == cost
    assert Decimal(str(chunk["usage"]["cost"])) * NANO == cost
    assert receipt_of(reply)["cost"]["total"] == chunk["usage"]["cost"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("path", "sign"),
    [
        ("/chat/completions", ": GW PROCESSING"),
        ("/messages", ": GW PROCESSING"),
        ("/responses", ": GW PROCESSING"),
    ],
)
async def test_silent_vendor_is_bridged_by_signs_that_no_client_takes_for_data(
    gateway: Gateway, path: str, sign: str
) -> None:
    """Before the first output."""
    gateway.vendor.script.next(SLOW)
    content = [{"role": "user", "content": "hello"}]
    body: dict[str, Any] = {"model": "demo/chat", "stream": True, "max_tokens": 50}
    body |= {"input": "hello"} if path == "/responses" else {"messages": content}
    reply = await gateway.client.post(path, json=body)
    assert reply.status_code == 200
    assert reply.headers["x-gw-model"] == "demo/chat"
    signs = reply.text.count(sign)
    assert 3 <= signs <= 9
    assert reply.text.startswith(sign)
    assert sign not in reply.text.rpartition("data: ")[2]
    for line in reply.text.splitlines():
        if line.startswith("data:") and line != "data: [DONE]":
            json.loads(line[5:])
    assert (await gateway.generation(reply))["status"] == "succeeded"


@pytest.mark.usefixtures("impatient")
async def test_pause_inside_a_messages_stream_is_bridged_by_pings(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(event_delay_s=0.3, tokens=2))
    body = {"model": "demo/claude", "stream": True, "max_tokens": 50}
    reply = await gateway.client.post(
        "/messages", json={**body, "messages": [{"role": "user", "content": "hello"}]}
    )
    assert reply.text.count('event: ping\ndata: {"type":"ping"}\n\n') >= 3
    assert reply.text.rstrip().endswith('{"type":"message_stop"}')


@pytest.mark.usefixtures("impatient")
async def test_failover_goes_on_behind_an_open_stream(two: Gateway) -> None:
    two.vendor.script.next(Behaviour(delay_s=0.3, status=500), model=A)
    reply = await two.chat(stream=True, provider=ORDER, headers={"x-gw-metadata": "enabled"})
    assert reply.status_code == 200
    assert reply.text.startswith(": GW PROCESSING")
    frames = frames_of(reply.text)
    assert [f for f in frames if "error" in f] == []
    assert text_of(frames)
    assert receipt_of(reply)["routing"]["attempt"] == 2


@pytest.mark.usefixtures("impatient")
async def test_last_failure_behind_an_open_stream_is_told_in_it_and_is_free(two: Gateway) -> None:
    for model in (A, B):
        two.vendor.script.next(Behaviour(delay_s=0.2, status=500), model=model)
    reply = await two.chat(stream=True, provider=ORDER, headers={"x-gw-metadata": "enabled"})
    assert reply.status_code == 200
    assert reply.text.endswith("data: [DONE]\n\n")
    assert error_of(reply)["code"] == "upstream_error"
    assert len(error_of(reply)["metadata"]["previous_errors"]) == 2
    assert receipt_of(reply)["routing"]["attempt"] is None
    record = await two.generation(reply)
    assert (record["status"], record["total_cost"]) == ("failed", 0)
    assert await charged_nano(two) == 0


async def test_whole_answer_is_never_begun_before_it_is_known(
    gateway: Gateway, impatient: None
) -> None:
    gateway.vendor.script.next(Behaviour(delay_s=0.3, status=500))
    assert (await gateway.chat()).status_code == 502


# What is ours to break


async def test_answer_that_cannot_be_rendered_whole_costs_nothing(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise KeyError("a field that nobody foresaw")

    monkeypatch.setattr(ChatRenderer, "whole", broken)
    reply = await gateway.chat()
    assert (reply.status_code, error_of(reply)["code"]) == (500, "internal_error")
    assert "foresaw" not in reply.text
    record = await gateway.generation(reply)
    assert (record["status"], record["total_cost"]) == ("failed", 0)
    assert await charged_nano(gateway) == 0


async def test_stream_that_cannot_be_rendered_further_is_billed_for_what_went_out(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = ChatRenderer.feed
    fed = 0

    def breaking(renderer: ChatRenderer, events: Any) -> bytes:
        nonlocal fed
        fed += 1
        if fed == 3:
            raise KeyError("a field that nobody foresaw")
        return feed(renderer, events)

    monkeypatch.setattr(ChatRenderer, "feed", breaking)
    gateway.vendor.script.next(Behaviour(event_delay_s=0.02))
    reply = await gateway.chat(stream=True)
    assert error_of(reply)["code"] == "internal_error"
    record = await gateway.generation(reply)
    assert record["status"] == "incomplete"
    cost = record["tokens_prompt"] * 2_000 + record["tokens_completion"] * 8_000
    assert await charged_nano(gateway) == cost > 0


async def test_planning_that_fails_is_a_recorded_500_without_a_hold(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(inference, "plan", broken)
    reply = await gateway.chat()
    assert reply.status_code == 500
    record = await gateway.generation(reply)
    assert record["error"]["code"] == "internal_error"
    assert record["total_cost"] == 0


async def test_receipt_that_cannot_be_made_leaks_no_hold(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(final_record, "receipt_json", broken)
    reply = await gateway.chat(headers={"x-gw-metadata": "enabled"})
    assert reply.status_code == 500
    assert await charged_nano(gateway) == 0


async def test_catalog_that_never_stands_still_is_a_recorded_503(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "admit", lambda *_, **__: Stale())
    reply = await gateway.chat()
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
    assert (await gateway.generation(reply))["status"] == "refused"


# Readers that are slow, or do not read at all


async def test_slow_reader_slows_the_vendor_down_and_gets_everything(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_queue, "HIGH_WATER_BYTES", 20_000)
    gateway.vendor.script.next(Behaviour(tokens=30_000))
    largest = 0
    push = frame_queue.FrameQueue.push

    def watched(self: frame_queue.FrameQueue, frames: bytes) -> None:
        nonlocal largest
        push(self, frames)
        largest = max(largest, self._size)

    monkeypatch.setattr(frame_queue.FrameQueue, "push", watched)
    body = {"model": "demo/chat", "stream": True}
    messages = [{"role": "user", "content": "hello"}]
    received = b""
    async with gateway.client.stream(
        "POST", "/chat/completions", json={**body, "messages": messages}
    ) as reply:
        await asyncio.sleep(0.5)
        async for piece in reply.aiter_raw():
            received += piece
    assert received.endswith(b"data: [DONE]\n\n")
    assert len(received) > 3_000_000
    assert largest < len(received) / 3  # the mark, and one read of the vendor above it
    record = await gateway.generation(reply)
    assert (record["status"], record["tokens_completion"]) == ("succeeded", 30_000)


async def test_reader_in_fits_and_starts_gets_every_frame_in_its_place(gateway: Gateway) -> None:
    """Frames that go straight into the connection never overtake those that wait for it."""

    async def text(*, pause_s: float) -> str:
        gateway.vendor.script.next(Behaviour(tokens=20_000))
        messages = [{"role": "user", "content": "hello"}]
        body = {"model": "demo/chat", "stream": True, "messages": messages}
        received = b""
        async with gateway.client.stream("POST", "/chat/completions", json=body) as reply:
            async for piece in reply.aiter_raw(400_000):
                received += piece
                await asyncio.sleep(pause_s)
        return text_of(frames_of(received.decode()))

    whole = await text(pause_s=0)
    assert len(whole) > 50_000
    assert await text(pause_s=0.05) == whole


async def test_reader_that_reads_nothing_for_half_a_minute_has_left(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_queue, "HIGH_WATER_BYTES", 20_000)
    monkeypatch.setattr(readers, "STALLED_S", 0.3)
    gateway.vendor.script.next(Behaviour(tokens=31_000))
    body = {"model": "demo/chat", "stream": True}
    messages = [{"role": "user", "content": "hello"}]
    timeout = httpx.Timeout(20, read=20)
    async with gateway.client.stream(
        "POST", "/chat/completions", json={**body, "messages": messages}, timeout=timeout
    ) as reply:
        await gateway.at_rest()
        await asyncio.sleep(0.8)
        with pytest.raises(httpx.TransportError):
            async for _ in reply.aiter_raw():
                pass
    record = await gateway.generation(reply)
    assert record["status"] == "cancelled"
    assert 0 < record["tokens_completion"] < 31_000
    assert await charged_nano(gateway) == Decimal(str(record["total_cost"])) * NANO


async def test_reader_of_a_whole_answer_that_reads_nothing_is_cut_too(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "STALLED_S", 0.3)
    answer = {"choices": [{"message": {"content": "a" * 20_000_000}, "finish_reason": "stop"}]}
    gateway.vendor.script.next(Behaviour(body=json.dumps(answer)))
    body = json.dumps({"model": "demo/chat", "messages": [{"role": "user", "content": "hi"}]})
    head = (
        f"POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {gateway.key}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.running.port, limit=4_096)
    writer.write((head + body).encode())
    counters = gateway.running.node.counters
    async with asyncio.timeout(20):
        while not counters.connections_cut["stalled_reader"]:
            await asyncio.sleep(0.05)
    received = 0
    with suppress(ConnectionError):
        while piece := await reader.read(1_000_000):
            received += len(piece)
    assert received < 20_000_000
    writer.close()
    await gateway.at_rest()


async def test_reader_that_is_slow_but_fast_enough_gets_its_whole_answer(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "STALLED_S", 5.0)
    monkeypatch.setattr(readers, "WINDOW_S", 1.5)
    gateway.vendor.script.next(Behaviour(tokens=30_000))
    body = {"model": "demo/chat", "stream": True}
    messages = [{"role": "user", "content": "hello"}]
    received = b""
    async with gateway.client.stream(
        "POST", "/chat/completions", json={**body, "messages": messages}
    ) as reply:
        async for piece in reply.aiter_raw(400_000):
            received += piece
            await asyncio.sleep(0.3)
    assert received.endswith(b"data: [DONE]\n\n")
    assert not gateway.running.node.counters.connections_cut
