"""A client that leaves: it pays for what it could have received, and no call runs on."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal
from typing import Any

import pytest

from gwd.demo import Behaviour
from gwd.pipeline.admit.admission import admit
from gwd.pipeline.settle.settle_wait import SettleWait
from gwd.pricing.tokens import estimate_text
from gwd.store import Store
from tests.flows.frames import frames_of, text_of
from tests.support.node import Gateway

NANO = 1_000_000_000
PROMPT, COMPLETION = 2_000, 8_000  # nano-USD a token of demo/chat


class Caller:
    """A raw connection that asks once and leaves when told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer
        self.received = b""

    async def until(self, text: bytes) -> None:
        while text not in self.received:
            piece = await asyncio.wait_for(self.reader.read(65_536), 10)
            assert piece, "the gateway closed the connection"
            self.received += piece

    async def leave(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


Calling = Callable[..., Awaitable[Caller]]


@pytest.fixture
async def call(gateway: Gateway) -> AsyncIterator[Calling]:
    callers: list[Caller] = []

    async def start(*, stream: bool, content: str = "Write about the sea.") -> Caller:
        fields = {"model": "demo/chat", "stream": stream, "session_id": "leaving"}
        body = json.dumps({**fields, "messages": [{"role": "user", "content": content}]}).encode()
        port = gateway.running.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /api/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
            b"content-type: application/json\r\nauthorization: Bearer "
            + f"{gateway.key}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await writer.drain()
        callers.append(Caller(reader, writer))
        return callers[-1]

    yield start
    for caller in callers:
        await caller.leave()


async def the_record(gateway: Gateway) -> Any:
    """The only generation of the session, once everything has come to rest."""
    await gateway.at_rest()
    for _ in range(100):
        found = await gateway.manage("GET", "/generations?session_id=leaving")
        if found["data"]:
            [record] = found["data"]
            return record
        await asyncio.sleep(0.02)
    raise AssertionError("nothing was recorded")


async def charged_nano(gateway: Gateway) -> Decimal:
    return (Decimal(10) - await gateway.balance()) * NANO


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_leaving_before_the_first_token_is_free_and_stops_the_vendor(
    gateway: Gateway, call: Calling, stream: bool
) -> None:
    gateway.vendor.script.next(Behaviour(stall_after=0 if stream else -1))
    caller = await call(stream=stream)
    upstream = await gateway.vendor.calls.wait_for(1)
    await asyncio.sleep(0.05)
    await caller.leave()
    record = await the_record(gateway)
    assert (record["status"], record["cancelled"], record["total_cost"]) == ("cancelled", True, 0)
    assert await charged_nano(gateway) == 0
    await asyncio.wait_for(upstream.finished.wait(), 5)
    assert upstream.closed_early
    assert len(gateway.vendor.calls) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_leaving_after_a_large_body_is_noticed_as_well(
    gateway: Gateway, call: Calling, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The front stops reading while a body is large; nothing is written meanwhile by which it would be noticed."""
    monkeypatch.setattr("gwd.pipeline.client.side.KEEPALIVE_S", 300.0)
    gateway.vendor.script.next(Behaviour(stall_after=0 if stream else -1))
    caller = await call(stream=stream, content="word " * 80_000)
    await gateway.vendor.calls.wait_for(1)
    await asyncio.sleep(0.05)
    await caller.leave()
    assert (await the_record(gateway))["status"] == "cancelled"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_leaving_during_admission_leaks_no_hold_and_calls_nobody(
    gateway: Gateway, call: Calling, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitting, go_on = asyncio.Event(), asyncio.Event()
    write = Store.write

    async def slow_write(store: Store, fn: Any, *args: Any, **kwargs: Any) -> Any:
        answer = await write(store, fn, *args, **kwargs)
        if fn is admit:
            admitting.set()
            await go_on.wait()
        return answer

    monkeypatch.setattr(Store, "write", slow_write)
    caller = await call(stream=stream)
    await asyncio.wait_for(admitting.wait(), 5)
    await caller.leave()
    await asyncio.sleep(0.1)
    go_on.set()
    record = await the_record(gateway)
    assert (record["status"], record["total_cost"]) == ("cancelled", 0)
    assert gateway.vendor.calls == []


async def test_leaving_in_mid_stream_is_billed_for_what_was_produced(
    gateway: Gateway, call: Calling
) -> None:
    gateway.vendor.script.next(Behaviour(event_delay_s=0.03, tokens=500))
    caller = await call(stream=True)
    while len(text_of(frames_of(caller.received.decode()))) < 40:
        await caller.until(b"")
        caller.received += await caller.reader.read(65_536)
    await caller.leave()
    record = await the_record(gateway)
    assert (record["status"], record["usage_estimated"]) == ("cancelled", True)
    seen = text_of(frames_of(caller.received.decode(errors="ignore").rpartition("\n\n")[0]))
    produced = record["tokens_completion"]
    assert estimate_text(seen) <= produced < 400
    cost = record["tokens_prompt"] * PROMPT + produced * COMPLETION
    assert await charged_nano(gateway) == cost == Decimal(str(record["total_cost"])) * NANO
    upstream = gateway.vendor.calls.last
    await asyncio.wait_for(upstream.finished.wait(), 5)
    assert upstream.closed_early


async def test_leaving_in_mid_stream_is_billed_by_the_vendors_count_if_it_had_come(
    gateway: Gateway, call: Calling
) -> None:
    usage: dict[str, object] = {"prompt_tokens": 50, "completion_tokens": 70, "total_tokens": 120}
    gateway.vendor.script.next(
        Behaviour(event_delay_s=0.03, tokens=60, usage="every_event", usage_object=usage)
    )
    caller = await call(stream=True)
    await caller.until(b'"content":"')
    await asyncio.sleep(0.1)
    await caller.leave()
    record = await the_record(gateway)
    assert (record["status"], record["usage_estimated"]) == ("cancelled", False)
    assert await charged_nano(gateway) == 50 * PROMPT + 70 * COMPLETION


async def test_leaving_in_the_middle_of_a_whole_answer_is_free(
    gateway: Gateway, call: Calling
) -> None:
    gateway.vendor.script.next(Behaviour(stall_after=1))
    caller = await call(stream=False)
    await gateway.vendor.calls.wait_for(1)
    await asyncio.sleep(0.2)
    await caller.leave()
    record = await the_record(gateway)
    assert (record["status"], record["total_cost"]) == ("cancelled", 0)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_leaving_after_the_vendor_finished_is_an_ordinary_success(
    gateway: Gateway, call: Calling, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settling, go_on = asyncio.Event(), asyncio.Event()
    settle = SettleWait.settle

    async def slow_settle(settle_wait: SettleWait, limit_s: float) -> bool:
        settling.set()
        await go_on.wait()
        return await settle(settle_wait, limit_s)

    monkeypatch.setattr(SettleWait, "settle", slow_settle)
    caller = await call(stream=stream)
    await asyncio.wait_for(settling.wait(), 5)
    await caller.leave()
    await asyncio.sleep(0.1)
    go_on.set()
    record = await the_record(gateway)
    assert (record["status"], record["usage_estimated"]) == ("succeeded", False)
    assert await charged_nano(gateway) == Decimal(str(record["total_cost"])) * NANO > 0


async def test_leaving_while_a_second_endpoint_is_tried_is_free(
    gateway: Gateway, call: Calling
) -> None:
    await gateway.add_provider("backup", "openai_chat", gateway.vendor.openai_url)
    await gateway.add_endpoint("demo/chat", "backup", "gpt-demo-mini", weight=1)
    gateway.vendor.script.always(Behaviour(stall_after=0), model="gpt-demo-mini")
    gateway.vendor.script.always(Behaviour(status=500), model="gpt-demo")
    caller = await call(stream=True)
    while not gateway.vendor.calls.of("gpt-demo-mini"):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    await caller.leave()
    record = await the_record(gateway)
    assert (record["status"], record["total_cost"]) == ("cancelled", 0)


async def test_twenty_clients_that_leave_at_odd_moments_leave_nothing_held(
    gateway: Gateway, call: Calling
) -> None:
    gateway.vendor.script.always(Behaviour(first_event_delay_s=0.02, event_delay_s=0.004))
    callers = [await call(stream=number % 2 == 0) for number in range(20)]
    for number, caller in enumerate(callers):
        await asyncio.sleep(0.004 * (number % 5))
        await caller.leave()
    await gateway.at_rest()
    await gateway.vendor.calls.all_finished()
    found = await gateway.manage("GET", "/generations?session_id=leaving&limit=100")
    assert len(found["data"]) == 20
    assert {record["status"] for record in found["data"]} <= {"cancelled", "succeeded"}
    total = sum(Decimal(str(record["total_cost"])) for record in found["data"])
    assert await charged_nano(gateway) == total * NANO
