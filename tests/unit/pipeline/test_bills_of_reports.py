"""Whatever a vendor reports, and however the network cuts it, no bill is above its ceiling.

Real decoders of every format read streams with random usage reports, in random pieces; the bill of the outcome is
compared with the last report that can be believed, side by side.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwd.core.events import Finished, PartDelta
from gwd.core.request import Request
from gwd.core.sse import SseSplitter
from gwd.core.target import Target
from gwd.core.usage import Usage
from gwd.pipeline.dispatch.outcome import Outcome, Received
from gwd.pipeline.plan.routing import Planned
from gwd.pipeline.settle.bill import bill_of
from gwd.pipeline.settle.progress import Meter, decode
from gwd.pricing.hold import measure
from gwd.vendors.anthropic_messages import ADAPTER as ANTHROPIC
from gwd.vendors.base import Adapter
from gwd.vendors.gemini import ADAPTER as GEMINI
from gwd.vendors.openai_chat import ADAPTER as CHAT
from gwd.vendors.openai_responses import ADAPTER as RESPONSES
from tests.unit.pricing.builders import chat, target

CONTEXT, CAP = 4_000, 50
CEILING = CAP + CAP // 10 + 64
TEXT = "hello"

Json = dict[str, Any]
Report = tuple[object, object]
NOTHING = object()


def frame(data: Json, event: str = "") -> bytes:
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + msgspec.json.encode(data) + b"\n\n"


def chat_stream(reports: list[Report]) -> bytes:
    frames = []
    for prompt, completion in reports:
        choice = {"index": 0, "delta": {"content": TEXT}, "finish_reason": None}
        usage = usage_json(("prompt_tokens", prompt), ("completion_tokens", completion))
        frames.append(frame({"id": "1", "choices": [choice], "usage": usage}))
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return b"".join([*frames, frame({"id": "1", "choices": [end]}), b"data: [DONE]\n\n"])


def messages_stream(reports: list[Report]) -> bytes:
    start = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    frames = [frame({"type": "message_start", "message": {"id": "1"}}), frame(start)]
    for prompt, completion in reports:
        delta = {"type": "text_delta", "text": TEXT}
        frames.append(frame({"type": "content_block_delta", "index": 0, "delta": delta}))
        usage = usage_json(("input_tokens", prompt), ("output_tokens", completion))
        frames.append(frame({"type": "message_delta", "delta": {}, "usage": usage}))
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    return b"".join([*frames, frame(end), frame({"type": "message_stop"})])


def responses_stream(reports: list[Report]) -> bytes:
    frames = []
    for prompt, completion in reports:
        usage = usage_json(("input_tokens", prompt), ("output_tokens", completion))
        frames.append(frame({"type": "response.created", "response": {"id": "1", "usage": usage}}))
        delta = {"type": "response.output_text.delta", "delta": TEXT, "item_id": "m"}
        frames.append(frame(delta, "response.output_text.delta"))
    end = {"type": "response.incomplete", "response": {"status": "incomplete", "output": []}}
    return b"".join([*frames, frame(end)])


def gemini_stream(reports: list[Report]) -> bytes:
    frames = []
    for prompt, completion in reports:
        candidate = {"content": {"parts": [{"text": TEXT}]}}
        usage = usage_json(("promptTokenCount", prompt), ("candidatesTokenCount", completion))
        frames.append(frame({"candidates": [candidate], "usageMetadata": usage}))
    return b"".join([*frames, frame({"candidates": [{"finishReason": "STOP"}]})])


def usage_json(*sides: tuple[str, object]) -> Json:
    return {name: value for name, value in sides if value is not NOTHING}


FORMATS: list[tuple[Adapter, Any]] = [
    (CHAT, chat_stream),
    (ANTHROPIC, messages_stream),
    (RESPONSES, responses_stream),
    (GEMINI, gemini_stream),
]

counts = st.one_of(
    st.integers(0, 200),
    st.integers(0, 2 * CONTEXT),
    st.integers(-5, 2**53),
    st.integers(0, 300).map(float),
    st.sampled_from([NOTHING, None, True, "12", 1.5, [3], {"a": 1}]),
)
reports = st.lists(st.tuples(counts, counts), min_size=1, max_size=6)
cuts = st.lists(st.integers(1, 200), min_size=1, max_size=20)


def planned(adapter: Adapter) -> Planned:
    to: Target = msgspec.structs.replace(
        target(context_length=CONTEXT, max_completion_tokens=2_000), format=adapter.format
    )
    return Planned(
        target=to,
        hold_nano=1,
        list_price_nano=1,
        rank=0,
        forwarded_from=None,
        strategy="balanced",
        sort=None,
        eligible=1,
    )


def received(adapter: Adapter, request: Request, stream: bytes, sizes: list[int]) -> Received:
    """What dispatch notes of a stream that came in pieces of these sizes."""
    to = planned(adapter)
    call = adapter.build(request, to.target)
    found = Received(demand=measure(request), output_cap=call.output_cap)
    decoder, splitter = adapter.decoder(request, to.target), SseSplitter()
    at, turn = 0, 0
    events = []
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        for each in splitter.feed(stream[at : at + size]):
            events += decoder.feed(each)
        at, turn = at + size, turn + 1
    for each in splitter.close():
        events += decoder.feed(each)
    events += decoder.close()
    found.reported = decoder.usage
    for event in events:
        if isinstance(event, PartDelta):
            found.texts.append(event.text)
        elif isinstance(event, Finished):
            found.finished = event
    return found


def outcome_of(found: Received, adapter: Adapter, finished: Finished | None) -> Outcome:
    """A stream that reached the client and ended so."""
    return Outcome(
        started_s=0.0,
        serving=planned(adapter),
        reached_client=True,
        output_cap=found.output_cap,
        texts=found.texts,
        reported=found.reported,
        finished=finished,
    )


def count_of(value: object) -> int | None:
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= 10_000_000 else None


def last(values: list[object], *, zeros_say_nothing: bool) -> int | None:
    """The last count of a side; a zero says nothing of a prompt that was counted."""
    found: int | None = None
    for value in values:
        count = count_of(value)
        if count is not None and (count or found is None or not zeros_say_nothing):
            found = count
    return found


@pytest.mark.parametrize(
    ("adapter", "stream_of"),
    FORMATS,
    ids=lambda each: each.format.name if hasattr(each, "format") else "",
)
@settings(max_examples=120, deadline=None)
@given(usage_json_=reports, sizes=cuts)
def test_the_bill_is_the_last_report_where_it_can_be_believed_and_never_above_the_ceiling(
    adapter: Adapter, stream_of: Any, usage_json_: list[Report], sizes: list[int]
) -> None:
    request = msgspec.structs.replace(chat("hello", max_output_tokens=CAP), stream=True)
    demand = measure(request)
    found = received(adapter, request, stream_of(usage_json_), sizes)
    assert found.finished is not None
    usage = bill_of(outcome_of(found, adapter, found.finished), demand).usage
    assert usage.input_total <= CONTEXT
    assert usage.output_total <= CEILING
    prompt = last([report[0] for report in usage_json_], zeros_say_nothing=True)
    answer = last([report[1] for report in usage_json_], zeros_say_nothing=False)
    assert usage.estimated is not (within(prompt, CONTEXT) and within(answer, CEILING))
    if within(prompt, CONTEXT):
        assert usage.input_total == prompt
        assert usage.above_bound is (prompt > demand.prompt_bound)
    else:
        assert usage.input_total == demand.prompt_estimate
    if within(answer, CEILING):
        assert usage.output_total == answer
    # The same stream, broken off: what recovery and a client that left are billed keeps the same ceilings.
    checkpoint = Meter(planned(adapter), found, attempts=1).checkpoint()
    assert checkpoint is not None
    for broken in (
        bill_of(outcome_of(found, adapter, None), demand).usage,
        decode(checkpoint).usage,
    ):
        assert broken.input_total <= CONTEXT
        assert broken.output_total <= CEILING
        if within(prompt, CONTEXT) and prompt:
            assert broken.input_total == prompt


def within(count: int | None, ceiling: int) -> bool:
    return count is not None and count <= ceiling


def test_megabytes_to_a_client_that_left_cost_no_more_than_the_cap() -> None:
    """Eleven MiB of text that no count covers, with a cap and without one."""
    for cap, ceiling in ((CAP, CEILING), (None, 2_000)):
        request = chat("hello", max_output_tokens=cap)
        for reported in (None, Usage(input=7, output=7_999)):
            outcome = Outcome(
                started_s=0.0,
                serving=planned(CHAT),
                reached_client=True,
                client_left=True,
                output_cap=cap,
                texts=["lorem ipsum " * 1_000] * 1_000,
                reported=reported,
            )
            usage = bill_of(outcome, measure(request)).usage
            assert (usage.output, usage.estimated) == (ceiling, True)
