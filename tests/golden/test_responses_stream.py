"""What every responses stream must keep: numbers without a gap, one terminal event, items that begin and end."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core import errors
from gwd.core.cost import Cost
from gwd.core.errors import Fault
from gwd.core.events import (
    Event,
    Failed,
    Finished,
    PartDelta,
    PartEnded,
    PartStarted,
    Settled,
    Started,
    collect,
)
from gwd.core.request import Generate, Message, TextPart, Tool, ToolCallPart
from gwd.core.sse import SseSplitter
from gwd.core.usage import Usage
from gwd.dialects.responses import DIALECT, ResponsesRequest
from gwd.dialects.responses.namespaces import Member
from gwd.dialects.responses.wire import ResponseObject
from gwd.vendors.base import UndecodableError
from gwd.vendors.openai_responses import ADAPTER
from tests.golden import golden
from tests.golden.test_responses import RENDERING

STREAMS = sorted((golden.ROOT / "answers").glob("*/*.responses.sse"))
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
# Every key the response object always has; see `test_no_key_is_missing`.
KEYS = frozenset(field.name for field in msgspec.structs.fields(ResponseObject)) - {
    "error_type",
    "gateway_metadata",
}
USAGE = Usage(input=3, cache_read=2, cache_write_5m=1, output=5, reasoning=4)
ASKED = ResponsesRequest(
    dialect="responses",
    family="openai_responses",
    models=("test/model",),
    body=Generate(
        messages=(Message(role="user", parts=(TextPart(text="Hi"),)),),
        tools=(Tool(name="plain"), Tool(name="files__read"), Tool(name="patch", custom=True)),
    ),
    namespaces={"files__read": Member(namespace="files", name="read")},
)


def events_in(stream: bytes) -> list[dict[str, Any]]:
    """The events of a rendered stream; each frame's name repeats its type."""
    splitter = SseSplitter()
    events = []
    for frame in splitter.feed(stream) + splitter.close():
        event = msgspec.json.decode(frame.data)
        assert frame.event.decode() == event["type"]
        events.append(event)
    return events


def check_sequence(events: Sequence[dict[str, Any]]) -> None:
    types = [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert types[:2] == ["response.created", "response.in_progress"]
    assert [kind for kind in types if kind in TERMINAL] == types[-1:]
    for event in events:
        if "response" in event:
            more = {"error_type", "gateway_metadata"} if event is events[-1] else set()
            assert set(event["response"]) - more == KEYS
    check_items(events)


def check_items(events: Sequence[dict[str, Any]]) -> None:
    """Items open one after the other; deltas add up to what is done; the terminal object repeats the done items."""
    done: list[dict[str, Any]] = []
    open_id: str | None = None
    texts: dict[tuple[str, str], str] = {}
    for event in events:
        kind = event["type"]
        if kind == "response.output_item.added":
            assert open_id is None
            open_id = event["item"]["id"]
            assert event["output_index"] == len(done)
        elif kind == "response.output_item.done":
            assert event["item"]["id"] == open_id
            assert event["output_index"] == len(done)
            done.append(event["item"])
            open_id = None
        elif "item_id" in event:
            assert event["item_id"] == open_id
            assert event["output_index"] == len(done)
            place = str(event.get("content_index", event.get("summary_index", 0)))
            if kind.endswith(".delta"):
                key = (kind.removesuffix(".delta"), place)
                texts[key] = texts.get(key, "") + event["delta"]
            elif kind.endswith(".done") and (kind.removesuffix(".done"), place) in texts:
                whole = texts.pop((kind.removesuffix(".done"), place))
                assert whole in (event.get(f) for f in ("text", "refusal", "arguments", "input"))
    final = events[-1]["response"]
    assert final["output"][: len(done)] == done
    if events[-1]["type"] != "response.failed":
        assert open_id is None
        assert final["output"] == done


@pytest.mark.parametrize("path", STREAMS, ids=golden.name_of)
def test_a_stream_is_numbered_ends_once_and_pairs_its_items(path: Path):
    check_sequence(events_in(path.read_bytes()))


@pytest.mark.parametrize("path", STREAMS, ids=golden.name_of)
def test_the_sdk_reads_what_the_client_gets(path: Path):
    """The SDK's accumulator insists on identities, indexes and finished items."""
    final = events_in(path.read_bytes())[-1]
    stream = msgspec.json.decode(msgspec.json.encode(final["response"]))
    with client(path.read_bytes()) as sdk, sdk.responses.stream(model="m", input="Hi") as events:
        seen = [event.type for event in events]
        assert seen[-1] == final["type"]
        if final["type"] == "response.completed":
            response = events.get_final_response()
            assert [getattr(item, "id", None) for item in response.output] == [
                i["id"] for i in stream["output"]
            ]
            assert response.output_text == stream["output_text"]
            assert response.usage is not None
            assert response.usage.total_tokens == stream["usage"]["total_tokens"]


def client(stream: bytes) -> openai.OpenAI:
    """The SDK in front of a transport that answers with these bytes."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(
        api_key="none", base_url="http://127.0.0.1/v1", http_client=transport, max_retries=0
    )


def rendered(events: Sequence[Event], asked: ResponsesRequest = ASKED) -> list[dict[str, Any]]:
    renderer = RENDERING.renderer(asked, golden.REPLY)
    return events_in(b"".join(renderer.feed([event]) for event in events))


PIECES = st.lists(st.text(max_size=6), max_size=4)
PARTS = st.lists(
    st.tuples(
        st.sampled_from(
            ("text", "refusal", "summary", "raw", "signed", "plain", "files__read", "patch")
        ),
        PIECES,
    ),
    max_size=6,
)
REASONS = st.sampled_from(("stop", "length", "tool_calls", "content_filter", "error", None))


def events_from(parts: Sequence[tuple[str, list[str]]]) -> Iterator[Event]:
    yield Started("up_1")
    for index, (kind, pieces) in enumerate(parts):
        signature = None
        match kind:
            case "text" | "refusal":
                yield PartStarted(index, "text" if kind == "text" else "refusal")
            case "summary" | "raw" | "signed":
                form = "anthropic-claude-v1" if kind == "signed" else "unknown"
                signature = "signature" if kind == "signed" else None
                yield PartStarted(index, "reasoning", format=form, summary=kind == "summary")
            case _:
                yield PartStarted(index, "tool_call", call_id=f"call_{index}", name=kind)
                text = msgspec.json.encode({"input": "".join(pieces)}).decode()
                pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
        for piece in pieces:
            yield PartDelta(index, piece)
        yield PartEnded(index, signature)


@given(parts=PARTS, reason=REASONS)
def test_whole_and_streamed_answers_are_the_same_response(
    parts: list[tuple[str, list[str]]], reason: Any
):
    events = [*events_from(parts), Finished(reason, explanation="Not this.")]
    settled = Settled(USAGE, Cost())
    streamed = rendered([*events, settled])
    check_sequence(streamed)
    whole = RENDERING.renderer(ASKED, golden.REPLY).whole(collect(events), settled)
    assert msgspec.json.decode(whole) == streamed[-1]["response"]


@given(parts=PARTS, cut=st.integers(0, 40))
def test_a_broken_stream_fails_once_and_never_ends_half_an_item(
    parts: list[tuple[str, list[str]]], cut: int
):
    events = list(events_from(parts))[: cut + 1]
    fault = Fault(reason="network", message="gone")
    error = errors.UpstreamFailed("the upstream failed while answering")
    streamed = rendered([*events, Failed(fault, error), Settled(USAGE, Cost())])
    check_sequence(streamed)
    assert streamed[-1]["type"] == "response.failed"
    open_part = isinstance(events[-1], PartStarted | PartDelta)
    added = sum(event["type"] == "response.output_item.added" for event in streamed)
    done = sum(event["type"] == "response.output_item.done" for event in streamed)
    assert added - done == open_part


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ContextLengthExceeded("too long"), "context_length_exceeded"),
        (errors.InsufficientCredits("no money"), "insufficient_quota"),
        (errors.KeyLimitExceeded("spent"), "insufficient_quota"),
        (errors.BudgetExceeded("spent"), "insufficient_quota"),
        (errors.RateLimited("slow"), "rate_limit_exceeded"),
        (errors.EndpointsThrottled("slow"), "rate_limit_exceeded"),
        (errors.Overloaded("busy"), "server_is_overloaded"),
        (errors.NoAvailableEndpoint("none"), "server_is_overloaded"),
        (errors.InvalidValue("bad"), "invalid_prompt"),
        (errors.UpstreamRefused("bad", status=422), "invalid_prompt"),
        (errors.UpstreamFailed("broke"), "server_error"),
        (errors.Draining("stopping"), "server_error"),
    ],
)
def test_a_failure_is_named_so_that_agents_understand_it(error: errors.GatewayError, code: str):
    """The vendor's vocabulary in `error.code`, our own code in `error_type`."""
    fault = Fault(reason="upstream_error", message="vendor text")
    final = rendered([Failed(fault, error), Settled(Usage(), Cost())])[-1]
    assert final["type"] == "response.failed"
    assert final["response"]["error"] == {"code": code, "message": error.message}
    assert final["response"]["error_type"] == error.code


def test_no_key_is_missing():
    """Strict clients drop a whole event whose response lacks one of these."""
    required = (
        ("id", "object", "created_at", "completed_at", "status", "error", "incomplete_details"),
        ("instructions", "metadata", "model", "output", "parallel_tool_calls", "temperature"),
        ("top_p", "presence_penalty", "frequency_penalty", "tool_choice", "tools", "background"),
        ("max_output_tokens", "max_tool_calls", "provider", "output_text", "user", "usage"),
        ("previous_response_id", "prompt_cache_key", "reasoning", "safety_identifier", "store"),
        ("service_tier", "text", "top_logprobs", "truncation"),
    )
    assert {key for line in required for key in line} == KEYS


def test_an_internal_error_says_nothing_about_its_cause():
    error = errors.InternalError("KeyError: 'secret'")
    failed = Failed(Fault(reason="upstream_error", message="KeyError"), error)
    final = rendered([failed, Settled(Usage(), Cost())])[-1]
    assert "KeyError" not in msgspec.json.encode(final).decode()


def test_the_receipt_stands_on_the_terminal_object_only():
    """On streams of this dialect the receipt is on the closing object."""
    receipt = msgspec.Raw(b'{"generation_id":"gen-1"}')
    events: list[Event] = [Started(), Finished("stop"), Settled(USAGE, Cost(), receipt)]
    streamed = rendered(events)
    assert [e["type"] for e in streamed if "gateway_metadata" in e["response"]] == [
        "response.completed"
    ]
    assert streamed[-1]["response"]["gateway_metadata"] == {"generation_id": "gen-1"}


def test_cost_is_told_on_request_only():
    cost = Cost(prompt_nano=1_000, completion_nano=500, total_nano=1_500)
    events: list[Event] = [Started(), Finished("stop"), Settled(USAGE, cost)]
    assert "cost" not in rendered(events)[-1]["response"]["usage"]
    asked = msgspec.structs.replace(ASKED, include_cost=True)
    usage = rendered(events, asked)[-1]["response"]["usage"]
    assert usage["cost"] == 0.0000015
    assert usage["is_byok"] is False
    assert usage["input_tokens_details"] == {"cached_tokens": 2, "cache_write_tokens": 1}
    assert usage["total_tokens"] == 15


def test_a_namespaced_call_keeps_its_two_names():
    call: list[Event] = [
        PartStarted(0, "tool_call", call_id="call_1", name="files__read"),
        PartEnded(0),
    ]
    events: list[Event] = [Started(), *call, Finished("tool_calls"), Settled(USAGE, Cost())]
    item = rendered(events)[-1]["response"]["output"][0]
    assert (item["name"], item["namespace"], item["arguments"]) == ("read", "files", "{}")


def test_a_refusal_of_the_vendor_is_shown_as_one():
    events: list[Event] = [
        Started(),
        Finished("content_filter", explanation="Not this."),
        Settled(USAGE, Cost()),
    ]
    response = rendered(events)[-1]["response"]
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "content_filter"}
    assert response["output"][0]["content"] == [{"type": "refusal", "refusal": "Not this."}]


def test_excluded_reasoning_leaves_no_item():
    body = b'{"model":"m","input":"Hi","reasoning":{"exclude":true}}'
    events: list[Event] = [
        Started(),
        PartStarted(0, "reasoning"),
        PartDelta(0, "secret"),
        PartEnded(0, "signature"),
        PartStarted(1, "text"),
        PartDelta(1, "ok"),
        PartEnded(1),
        Finished("stop"),
        Settled(USAGE, Cost()),
    ]
    streamed = rendered(events, DIALECT.parse(body, {}))
    check_sequence(streamed)
    assert [item["type"] for item in streamed[-1]["response"]["output"]] == ["message"]


def test_the_renderer_shows_the_items_it_emitted():
    renderer = RENDERING.renderer(ASKED, golden.REPLY)
    renderer.feed([*events_from([("summary", ["a"]), ("text", ["b"])]), Finished("stop")])
    items = {item_id: msgspec.json.decode(item) for item_id, item in renderer.emitted_items.items()}
    assert [item["type"] for item in items.values()] == ["reasoning", "message"]
    assert all(item["id"] == item_id for item_id, item in items.items())


@pytest.mark.parametrize("path", STREAMS, ids=golden.name_of)
def test_a_gateway_behind_a_gateway_reads_the_same_text(path: Path):
    """What this dialect renders, this format's decoder understands."""
    decoder = ADAPTER.decoder(golden.request(), golden.target("openai_responses"))
    splitter = SseSplitter()
    stream = path.read_bytes()
    events = [e for frame in splitter.feed(stream) for e in decoder.feed(frame)] + decoder.close()
    final = events_in(stream)[-1]["response"]
    if final["status"] == "failed":
        assert isinstance(events[-1], Failed)
        return
    completion = collect(events)
    text = "".join(part.text for part in completion.parts if isinstance(part, TextPart))
    assert text == final["output_text"]
    assert completion.finished.usage is not None
    assert completion.finished.usage.total == final["usage"]["total_tokens"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad gateway</html>",
        b"[]",
        b'{"object":"response"}',
        b'{"object":"response","status":"queued","output":[]}',
        b"data: <html>\n\n",
    ],
    ids=["nothing", "page", "list", "no_output", "queued", "page_in_a_frame"],
)
def test_an_answer_that_is_none_is_undecodable(body: bytes):
    with pytest.raises(UndecodableError):
        ADAPTER.decode(body, golden.request(), golden.target("openai_responses"))


def test_a_stream_for_a_plain_request_is_put_together():
    """A vendor may stream although it was not asked to."""
    stream = (golden.ROOT / "answers/openai_responses/full.sse").read_bytes()
    events = ADAPTER.decode(stream, golden.request(), golden.target("openai_responses"))
    assert isinstance(events[-1], Finished)
    assert [part.arguments for part in collect(events).parts if isinstance(part, ToolCallPart)] == [
        '{"city":"Paris"}',
        "{}",
    ]
