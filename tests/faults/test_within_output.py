"""The fault matrix once output has begun: a stream is billed for what its client received."""

import zlib

import msgspec
import pytest

from gwd.core import sse
from gwd.demo import Behaviour
from tests.faults.bills import billed
from tests.faults.clients import Client, received_tokens
from tests.support.node import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = {
    "GWD_TIMEOUTS_CONNECT_S": "1",
    "GWD_TIMEOUTS_FIRST_EVENT_S": "0.6",
    "GWD_TIMEOUTS_IDLE_S": "0.6",
    "GWD_TIMEOUTS_TOTAL_S": "1.6",
}
AFTER = 9  # events: well behind the opening of every format

BROKEN: list[tuple[str, Behaviour, str]] = [
    ("closed", Behaviour(cut="close", cut_after=AFTER), "upstream_error"),
    ("reset", Behaviour(cut="reset", cut_after=AFTER), "upstream_error"),
    ("cut off cleanly", Behaviour(cut="end", cut_after=AFTER), "upstream_error"),
    ("half a JSON", Behaviour(malformed="bad_json", malformed_after=AFTER), "upstream_error"),
    ("error", Behaviour(error="server_error", error_after=AFTER), "upstream_error"),
    ("overloaded", Behaviour(error="overloaded", error_after=AFTER), "overloaded"),
    ("throttled", Behaviour(error="rate_limit", error_after=AFTER), "endpoints_throttled"),
    ("stalled", Behaviour(stall_after=AFTER), "upstream_error"),
    ("drips for ever", Behaviour(event_delay_s=0.06, tokens=60), "upstream_error"),
    ("big line", Behaviour(malformed="big_line", malformed_after=AFTER), "upstream_error"),
]


@pytest.mark.parametrize("row", BROKEN, ids=[row[0] for row in BROKEN])
async def test_broken_stream_is_billed_for_what_was_received(
    node: Gateway, client: Client, row: tuple[str, Behaviour, str]
) -> None:
    _, fault, code = row
    honest, honest_bill = await billed(node, client, stream=True)
    node.vendor.script.next(fault, model=client.upstream)
    seen, bill = await billed(node, client, stream=True)
    assert (seen.status, seen.ended_well) == (200, False)
    assert seen.error["message"]
    assert bill.outcome == ("incomplete", code, True)
    if fault.tokens is None:
        assert honest.text.startswith(seen.text)
        assert 0 < len(seen.text) < len(honest.text)
    # The messages vendor tells its prompt count at the start of the stream; the others only at the end.
    prompt = honest_bill.tokens[0] if client.name == "messages" else client.prompt_estimate()
    completion = received_tokens(seen.text)
    assert bill.tokens == (prompt, completion)
    assert bill.charged_nano == client.cost_nano(prompt, completion)
    assert len(node.vendor.calls) == 2


WHOLE: list[tuple[str, Behaviour, int, str]] = [
    ("closed", Behaviour(cut="close", cut_after=1), 503, "upstream_unavailable"),
    ("reset", Behaviour(cut="reset", cut_after=1), 503, "upstream_unavailable"),
    ("stalled", Behaviour(stall_after=1), 503, "upstream_unavailable"),
    ("drips", Behaviour(write_bytes=1, write_delay_s=0.05), 503, "upstream_unavailable"),
    ("silent", Behaviour(stall_after=-1), 503, "upstream_unavailable"),
]


@pytest.mark.parametrize("row", WHOLE, ids=[row[0] for row in WHOLE])
async def test_whole_answer_that_broke_off_is_free(
    node: Gateway, client: Client, row: tuple[str, Behaviour, int, str]
) -> None:
    _, fault, status, code = row
    node.vendor.script.next(fault, model=client.upstream)
    seen, bill = await billed(node, client, stream=False)
    assert seen.status == status
    assert (bill.outcome, bill.charged_nano) == (("failed", code, False), 0)


def compressed_silence() -> bytes:
    """A comment, and then for long only blocks that hold nothing."""
    packing = zlib.compressobj(wbits=31)
    said = packing.compress(b": still here\n\n") + packing.flush(zlib.Z_SYNC_FLUSH)
    return said + b"\x00\x00\x00\xff\xff" * 800


SILENT = [
    ("before the headers", Behaviour(stall_after=-1)),
    ("before the first event", Behaviour(stall_after=0)),
    (
        "but for comments",
        Behaviour(body=": still here\n\n" * 200, write_bytes=14, write_delay_s=0.02),
    ),
    (
        "but for packing",
        Behaviour(
            body_bytes=compressed_silence(),
            headers={"content-encoding": "gzip"},
            write_bytes=20,
            write_delay_s=0.02,
        ),
    ),
]


@pytest.mark.parametrize("row", SILENT, ids=[row[0] for row in SILENT])
async def test_stream_without_first_event_times_out_and_is_free(
    node: Gateway, client: Client, row: tuple[str, Behaviour]
) -> None:
    _, fault = row
    if fault.body or fault.body_bytes:
        fault = msgspec.structs.replace(fault, content_type="text/event-stream")
    node.vendor.script.next(fault, model=client.upstream)
    seen, bill = await billed(node, client, stream=True)
    assert (seen.status, bill.charged_nano) == (503, 0)
    assert bill.outcome == ("failed", "upstream_unavailable", False)
    [fallback] = bill.record["gateway_metadata"]["routing"]["fallbacks"]
    assert fallback["reason"] == "timeout"
    assert 550 <= fallback["duration_ms"] < 1_500


async def test_oversized_event_breaks_a_stream_and_fails_a_whole_answer(
    node: Gateway, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "MAX_LINE_BYTES", 100_000)
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 150_000)
    event = b"".join(b"data: " + b"x" * 50_000 + b"\n" for _ in range(6))
    fault = Behaviour(body_bytes=event, content_type="text/event-stream")
    node.vendor.script.next(fault, model=client.upstream)
    seen, bill = await billed(node, client, stream=True)
    assert (seen.status, bill.charged_nano) == (502, 0)


async def test_oversized_body_is_not_read_to_its_end(
    node: Gateway, client: Client, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.upstream.http_client.MAX_BODY_BYTES", 100_000)
    comments = b": " + b"x" * 1_000 + b"\n\n"
    kind = "text/event-stream" if stream else "application/json"
    node.vendor.script.next(
        Behaviour(body_bytes=comments * 20_000, content_type=kind), model=client.upstream
    )
    seen, bill = await billed(node, client, stream=stream)
    assert (seen.status, bill.charged_nano) == (502, 0)
    assert bill.outcome == ("failed", "upstream_error", False)
    await node.vendor.calls.all_finished()
    assert node.vendor.calls.last.closed_early
