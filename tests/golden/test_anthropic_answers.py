"""What an Anthropic-format vendor may answer, well or badly; and properties that hold for every input."""

import contextlib
import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwd.core.errors import InvalidRequest
from gwd.core.events import (
    Event,
    Failed,
    Finished,
    check_grammar,
    collect,
)
from gwd.core.request import (
    EFFORTS,
    Generate,
    ImagePart,
    Message,
    OutputFormat,
    Part,
    Reasoning,
    ReasoningPart,
    RefusalPart,
    Request,
    Sampling,
    TextPart,
    Tool,
    ToolCallPart,
    ToolChoice,
    ToolResultPart,
    UrlSource,
)
from gwd.core.sse import Frame
from gwd.core.target import Flags, Target
from gwd.core.usage import Usage
from gwd.demo.signatures import redact, sign
from gwd.demo.traits import ModelTraits
from gwd.pricing.cost import cost
from gwd.vendors import openai_chat
from gwd.vendors.anthropic_messages import ADAPTER
from gwd.vendors.base import UndecodableError
from tests.golden import golden
from tests.vendor.messages_checks import check_messages_request

TARGET = golden.target("anthropic_messages")
OWN = golden.request(dialect="messages", family="anthropic_messages")


def decoded(*events: Any, asked: Request | None = None) -> list[Event]:
    decoder = ADAPTER.decoder(asked or golden.request(), TARGET)
    out: list[Event] = []
    for event in events:
        data = event if isinstance(event, bytes) else msgspec.json.encode(event)
        out += decoder.feed(Frame(b"", data))
    out += decoder.close()
    check_grammar(out)
    return out


def block(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def ending(reason: str | None = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def start(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "m", "usage": usage}}


STOP = {"type": "message_stop"}


def test_a_stream_without_block_starts_and_stops_is_understood():
    events = decoded(
        start(input_tokens=1, output_tokens=1),
        delta(0, type="text_delta", text="a"),
        delta(1, type="thinking_delta", thinking="b"),
        ending(output_tokens=2),
        STOP,
    )
    done = collect(events)
    assert done.parts == (TextPart(text="a"), ReasoningPart(text="b", format="anthropic-claude-v1"))


def test_a_stream_that_named_its_end_needs_no_message_stop():
    events = decoded(start(), block(0, type="text", text="a"), ending(output_tokens=2))
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "stop"


@pytest.mark.parametrize("frames", [(), (start(),), (start(), block(0, type="text", text="Half"))])
def test_a_stream_without_any_sign_of_completion_failed(frames: tuple[Any, ...]):
    events = decoded(*frames)
    assert isinstance(events[-1], Failed)
    assert events[-1].fault.reason == "upstream_error"
    assert events[-1].fault.retryable


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("overloaded_error", "overloaded"),
        ("rate_limit_error", "rate_limited"),
        ("api_error", "upstream_error"),
        ("authentication_error", "auth_invalid"),
        ("billing_error", "quota_exhausted"),
        ("invalid_request_error", "bad_request"),
        (None, "upstream_error"),
    ],
)
def test_an_error_in_a_200_is_the_fault_its_type_says(kind: str | None, reason: str):
    error = {"type": "error", "error": {"type": kind, "message": "no"}}
    streamed = decoded(error)
    whole = ADAPTER.decode(msgspec.json.encode(error), OWN, TARGET)
    for events in (streamed, whole):
        assert [type(event) for event in events] == [Failed]
        assert isinstance(events[0], Failed)
        assert events[0].fault.reason == reason
        assert events[0].fault.status is None


def test_nothing_is_decoded_after_an_error_or_the_end():
    late = block(3, type="text", text="late")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}
    assert len(decoded(start(), error, late)) == 2
    done = decoded(start(), ending(), STOP, late)
    assert isinstance(done[-1], Finished)


@pytest.mark.parametrize(
    "body", [b"<html>Bad gateway</html>", b"", b"[]", b"{}", b'{"content": 5}', b"\xff\xfe"]
)
def test_a_body_of_another_kind_is_undecodable(body: bytes):
    with pytest.raises(UndecodableError):
        ADAPTER.decode(body, OWN, TARGET)


def test_a_stream_where_a_body_was_asked_for_is_put_together():
    body = (golden.ROOT / "answers/anthropic_messages/text.sse").read_bytes()
    done = collect(ADAPTER.decode(body, OWN, TARGET))
    assert done.parts == (TextPart(text="Bonjour – 你好 \u2028 🌍"),)
    assert done.finished.usage == Usage(input=10, output=5)


def test_usage_takes_the_largest_value_and_adds_nothing():
    events = decoded(
        start(input_tokens=4, cache_read_input_tokens=3, output_tokens=1),
        ending("end_turn", input_tokens=4, output_tokens=9),
        ending("end_turn", input_tokens=4, output_tokens=12, cache_creation_input_tokens=6),
        STOP,
    )
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.usage == Usage(input=4, cache_read=3, cache_write_5m=6, output=12)


@pytest.mark.parametrize(
    ("total", "parts", "written"),
    [
        (10, (150_000, 40_000), (10, 0)),
        (10, (4, 40_000), (4, 6)),
        (0, (0, 40_000), (0, 0)),
        (10, (4, 6), (4, 6)),
        (10, (4, 0), (10, 0)),
        (None, (4, 6), (4, 6)),
    ],
)
def test_no_part_of_the_cache_writes_exceeds_their_whole(
    total: int | None, parts: tuple[int, int], written: tuple[int, int]
):
    names = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
    usage = {
        "input_tokens": 5,
        "output_tokens": 5,
        "cache_creation": dict(zip(names, parts, strict=True)),
    }
    if total is not None:
        usage["cache_creation_input_tokens"] = total
    body = {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "usage": usage}
    found = collect(ADAPTER.decode(msgspec.json.encode(body), OWN, TARGET)).finished.usage
    is_cut = total is not None and sum(parts) > total
    assert found == Usage(
        input=5, output=5, cache_write_5m=written[0], cache_write_1h=written[1], clamped=is_cut
    )


@pytest.mark.parametrize("later", [{}, {"output_tokens": -1}, {"output_tokens": "x"}])
def test_a_report_that_says_little_or_nonsense_takes_nothing_back(later: dict[str, Any]):
    events = decoded(
        start(input_tokens=4, output_tokens=1),
        ending("end_turn", output_tokens=9),
        ending("end_turn", **later),
        STOP,
    )
    assert isinstance(events[-1], Finished)
    assert events[-1].usage == Usage(input=4, output=9)


def test_a_stream_under_way_has_reported_its_input_and_no_output():
    decoder = ADAPTER.decoder(OWN, TARGET)
    assert decoder.usage is None
    decoder.feed(Frame(b"", msgspec.json.encode(start(input_tokens=9, output_tokens=1))))
    assert decoder.usage == Usage(input=9, unknown=("output",))


@pytest.mark.parametrize("absurd", [-1, 1.5, "7", True, 10**12, [1]])
def test_absurd_counts_cost_their_side_and_never_the_answer(absurd: Any):
    body = {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
    for name in ("input_tokens", "output_tokens", "cache_creation_input_tokens"):
        usage = {"input_tokens": 1, "output_tokens": 1, name: absurd}
        done = collect(ADAPTER.decode(msgspec.json.encode({**body, "usage": usage}), OWN, TARGET))
        if name == "output_tokens":
            assert done.finished.usage == Usage(input=1, unknown=("output",), refused=True)
        else:
            assert done.finished.usage == Usage(output=1, unknown=("input",), refused=True)
        assert done.parts == (TextPart(text="ok"),)


def test_the_same_usage_costs_the_same_from_either_vendor():
    anthropic = {
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 501,
            "cache_read_input_tokens": 1500,
            "cache_creation_input_tokens": 37,
            "output_tokens": 200,
            "output_tokens_details": {"thinking_tokens": 150},
        },
    }
    chat = {
        "choices": [{"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 2038,
            "completion_tokens": 200,
            "prompt_tokens_details": {"cached_tokens": 1500, "cache_write_tokens": 37},
            "completion_tokens_details": {"reasoning_tokens": 150},
        },
    }
    bills = []
    for adapter, answer in ((ADAPTER, anthropic), (openai_chat.ADAPTER, chat)):
        done = collect(adapter.decode(msgspec.json.encode(answer), OWN, TARGET))
        assert done.finished.usage is not None
        bills.append(cost(done.finished.usage, TARGET.price, insured=False))
    assert bills[0] == bills[1]
    assert bills[0].total_nano > 0


# Properties.

_TEXTS = st.sampled_from(["", " ", "a", "b\n", "ünï"])
_IDS = st.sampled_from(["a", "b", "call 1", "x" * 90])
_CACHE = st.sampled_from([None, None, "5m", "1h"])
_CONTENT = st.one_of(
    st.builds(TextPart, text=_TEXTS, cache=_CACHE),
    st.builds(ImagePart, source=st.just(UrlSource(url="https://example.com/a.png")), cache=_CACHE),
)
_PART: st.SearchStrategy[Part] = st.one_of(
    _CONTENT,
    st.builds(
        ToolCallPart,
        call_id=_IDS,
        name=st.sampled_from(["look", "a.b"]),
        arguments=st.sampled_from(["{}", "", "[", '{"a":1}']),
    ),
    st.builds(
        ToolResultPart,
        call_id=_IDS,
        parts=st.lists(_CONTENT, max_size=2).map(tuple),
        is_error=st.booleans(),
        cache=_CACHE,
    ),
    st.builds(
        ReasoningPart,
        text=_TEXTS,
        signature=st.none(),
        format=st.sampled_from(["unknown", "anthropic-claude-v1"]),
    ),
    st.builds(
        lambda text: ReasoningPart(text=text, signature=sign(text), format="anthropic-claude-v1"),
        _TEXTS,
    ),
    st.just(ReasoningPart(redacted=redact("x"), format="anthropic-claude-v1")),
    st.builds(RefusalPart, text=_TEXTS),
)
_MESSAGES = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        parts=st.lists(_PART, max_size=4).map(tuple),
    ),
    min_size=1,
    max_size=8,
).map(tuple)


_WISHES = st.fixed_dictionaries(
    {},
    optional={
        "tool_choice": st.builds(
            ToolChoice,
            mode=st.sampled_from(["auto", "none", "required", "named"]),
            name=st.just("a.b"),
            parallel=st.sampled_from([None, True, False]),
        ),
        "reasoning": st.builds(
            Reasoning,
            enabled=st.sampled_from([None, True, False]),
            effort=st.sampled_from([None, *EFFORTS]),
            max_tokens=st.sampled_from([None, 1, 2000, 10**6]),
            exclude=st.booleans(),
        ),
        "max_output_tokens": st.sampled_from([1, 1024, 1025, 3000, 10**6]),
        "sampling": st.builds(
            Sampling,
            temperature=st.sampled_from([None, 0.2, 1.7]),
            top_p=st.sampled_from([None, 0.5, 0.99]),
            top_k=st.sampled_from([None, 5]),
            stop=st.sampled_from([(), (" ",), ("END", "")]),
        ),
        "output": st.sampled_from(
            [
                OutputFormat(kind="json_object"),
                OutputFormat(
                    kind="json_schema",
                    name="a name",
                    schema={
                        "type": "object",
                        "properties": {"n": {"type": "integer", "minimum": 1}},
                    },
                ),
            ]
        ),
        "verbosity": st.sampled_from(["low", "high"]),
        "tools": st.sampled_from(
            [
                (),
                (Tool(name="look"), Tool(name="a.b")),
                (
                    Tool(name="look", strict=True),
                    Tool(name="a.b", cache="1h", parameters={"anyOf": []}),
                ),
            ]
        ),
    },
)
_MODELS = st.sampled_from(
    [
        (Flags(thinking_form="none"), ModelTraits(name="m", thinking="none")),
        (Flags(thinking_form="budget"), ModelTraits(name="m", thinking="budget")),
        (Flags(), ModelTraits(name="m", thinking="budget")),
        (
            Flags(thinking_form="both", native_json_schema=False),
            ModelTraits(name="m", thinking="both", sampling="one"),
        ),
        (
            Flags(
                thinking_form="adaptive",
                mid_system=True,
                rejects_forced_tools=True,
                rejects_sampling=True,
                rejects_thinking_disabled=True,
                supports_prefill=False,
                native_json_schema=False,
            ),
            ModelTraits(
                name="m",
                thinking="adaptive",
                mid_system=True,
                forced_tools=False,
                sampling="none",
                prefill=False,
            ),
        ),
    ]
)


def check_automatic_marks(
    asked: Request, target: Target, body: dict[str, Any], traits: ModelTraits
) -> None:
    """The marks of `auto_cache` are ones that the vendor takes, and change nothing else."""
    flags = msgspec.structs.replace(target.flags, auto_cache=True)
    call = ADAPTER.build(asked, msgspec.structs.replace(target, flags=flags))
    marked = msgspec.json.decode(call.body)
    check_messages_request(marked, call.headers, traits, counts_only=False)
    assert isinstance(asked.body, Generate)
    if asked.body.cache_marks <= {None}:
        assert marked.get("tools") is None or _marks(marked["tools"]) > 0
        assert _marks(body) == 0
        marked = _bare(marked)
    assert marked == body


def _marks(value: Any) -> int:
    return msgspec.json.encode(value).count(b'"cache_control":')


def _bare(value: Any) -> Any:
    """The same without cache marks."""
    if isinstance(value, dict):
        return {name: _bare(inner) for name, inner in value.items() if name != "cache_control"}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


@settings(max_examples=500, deadline=None)
@given(messages=_MESSAGES, wishes=_WISHES, model=_MODELS)
def test_no_request_is_one_that_the_vendor_refuses(
    messages: tuple[Message, ...], wishes: dict[str, Any], model: tuple[Flags, ModelTraits]
):
    flags, traits = model
    asked = golden.request(body=Generate(messages=messages, **wishes))
    target = golden.target(
        "anthropic_messages", flags=flags, upstream_model="m", max_completion_tokens=16_000
    )
    try:
        call = ADAPTER.build(asked, target)
    except InvalidRequest:
        return
    body = msgspec.json.decode(call.body)
    check_messages_request(body, call.headers, traits, counts_only=False)
    check_automatic_marks(asked, target, body, traits)
    roles = [turn["role"] for turn in body["messages"]]
    assert all(one != two for one, two in itertools.pairwise(roles))


_VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
_FRAME = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "message_start",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
                "ping",
                "new_event",
            ]
        )
    },
    optional={
        "index": st.integers(-1, 3),
        "content_block": st.fixed_dictionaries(
            {"type": st.sampled_from(["text", "thinking", "tool_use", "redacted_thinking", "new"])},
            optional={
                "text": st.text(max_size=3),
                "id": st.sampled_from(["a", "b", ""]),
                "name": st.sampled_from(["look", ""]),
                "input": _VALUE,
                "data": st.text(max_size=3),
            },
        ),
        "delta": st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["text_delta", "input_json_delta", "thinking_delta", "x"]),
                "text": st.text(max_size=3),
                "partial_json": st.text(max_size=3),
                "thinking": st.text(max_size=3),
                "signature": st.text(max_size=3),
                "stop_reason": st.sampled_from([None, "end_turn", "tool_use", "new"]),
            },
        ),
        "usage": st.fixed_dictionaries({}, optional={"output_tokens": _VALUE}),
        "message": st.fixed_dictionaries({}, optional={"id": st.text(max_size=2)}),
    },
)


@settings(max_examples=300, deadline=None)
@given(frames=st.lists(_FRAME, max_size=14), own=st.booleans())
def test_any_frames_decode_to_events_that_follow_the_grammar(
    frames: list[dict[str, Any]], own: bool
):
    decoder = ADAPTER.decoder(OWN if own else golden.request(), TARGET)
    events: list[Event] = []
    for frame in frames:
        with contextlib.suppress(UndecodableError):
            events += decoder.feed(Frame(b"", msgspec.json.encode(frame)))
    events += decoder.close()
    check_grammar(events)
    assert isinstance(events[-1], (Finished, Failed))
    assert decoder.close() == []
    if isinstance(events[-1], Finished):
        for part in collect(events).parts:
            assert not isinstance(part, ToolCallPart) or part.call_id


@settings(max_examples=200, deadline=None)
@given(text=st.text(min_size=1, max_size=40), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_text_and_arguments_are_the_same_whole_and_streamed(text: str, cuts: list[int]):
    arguments = msgspec.json.encode({"t": text}).decode()
    places = sorted({min(cut, len(arguments)) for cut in cuts} | {0, len(arguments)})
    pieces = [arguments[a:b] for a, b in itertools.pairwise(places)]
    call = {"type": "tool_use", "id": "a", "name": "get_weather", "input": {}}
    streamed = decoded(
        start(),
        block(0, type="text", text=""),
        delta(0, type="text_delta", text=text),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        *(delta(1, type="input_json_delta", partial_json=piece) for piece in pieces),
        {"type": "content_block_stop", "index": 1},
        ending("tool_use"),
        STOP,
    )
    answer = {
        "content": [{"type": "text", "text": text}, {**call, "input": {"t": text}}],
        "stop_reason": "tool_use",
    }
    whole = ADAPTER.decode(msgspec.json.encode(answer), golden.request(), TARGET)
    assert collect(streamed).parts == collect(whole).parts
