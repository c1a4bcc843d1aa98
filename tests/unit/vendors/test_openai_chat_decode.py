"""What OpenAI-format servers answer, and what their relatives make of the format (reports: streaming, money)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.events import (
    Completion,
    Failed,
    Finished,
    PartDelta,
    PartStarted,
    check_grammar,
    collect,
)
from gwd.core.request import TextPart, ToolCallPart
from gwd.core.sse import Frame
from gwd.core.target import Flags
from gwd.core.usage import Usage
from gwd.vendors.base import UndecodableError
from gwd.vendors.openai_chat import ADAPTER
from tests.unit.vendors.builders import chat, chunk, streamed, target, usage_chunk

DONE = b"[DONE]"


def _call(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> Any:
    function = {"name": name, "arguments": arguments}
    return chunk(tool_calls=[{"index": index, "id": call_id, "function": function}])


def _calls(*data: object) -> list[tuple[str, str]]:
    """Name and arguments of the calls of a stream."""
    parts = collect(streamed(*data)).parts
    return [(part.name, part.arguments) for part in parts if isinstance(part, ToolCallPart)]


def _whole(**message: object) -> Completion:
    return collect(
        _events({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    )


def _events(answer: object) -> list[Any]:
    events = ADAPTER.decode(msgspec.json.encode(answer), chat(), target())
    check_grammar(events)
    return events


# --- tool calls


def test_calls_without_any_numbering_are_told_apart_by_their_names():
    assert _calls(_call(None, None, "f", '{"a":1}'), _call(None, None, "g", "{}"), DONE) == [
        ("f", '{"a":1}'),
        ("g", "{}"),
    ]


def test_calls_to_one_tool_that_share_index_and_id_are_told_apart_when_complete():
    assert _calls(_call(0, "x", "f", '{"a":1}'), _call(0, "x", "f", '{"a":2}'), DONE) == [
        ("f", '{"a":1}'),
        ("f", '{"a":2}'),
    ]


def test_calls_that_share_an_id_get_different_ones():
    events = streamed(_call(0, "x", "f", "{}"), _call(1, "x", "f", "{}"), DONE)
    ids = [event.call_id for event in events if isinstance(event, PartStarted)]
    assert len(set(ids)) == 2
    assert ids[0] == "x"


def test_an_id_repeated_in_every_piece_is_one_call():
    assert _calls(
        _call(0, "x", "f", '{"a"'), _call(0, "x", None, ":1"), _call(0, "x", "f", "}"), DONE
    ) == [("f", '{"a":1}')]


def test_a_name_after_the_id_belongs_to_the_same_call():
    assert _calls(_call(0, "x", None, None), _call(0, None, "f", '{"a":1}'), DONE) == [
        ("f", '{"a":1}')
    ]


def test_nested_objects_in_pieces_do_not_start_a_new_call():
    pieces = ['{"a":', '{"b":1}', ',"c":', "{", "}", "}"]
    first, *rest = [_call(0, None, None, piece) for piece in pieces]
    first["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] = "f"
    assert _calls(first, *rest, DONE) == [("f", "".join(pieces))]


@given(st.data())
def test_interleaved_calls_come_out_in_order_and_whole(data: st.DataObject):
    wanted = data.draw(
        st.lists(
            st.dictionaries(
                st.text(max_size=4), st.text(max_size=6) | st.integers(0, 99), max_size=3
            ),
            min_size=1,
            max_size=4,
        )
    )
    texts = [msgspec.json.encode(arguments).decode() for arguments in wanted]
    rests = [(index, text) for index, text in enumerate(texts)]
    frames: list[Any] = []
    begun: set[int] = set()
    waiting = dict(rests)
    while waiting:
        # A call can only begin when those before it have: indices count up.
        allowed = [i for i in waiting if i in begun or i == len(begun)]
        index = data.draw(st.sampled_from(allowed))
        size = data.draw(st.integers(1, len(waiting[index])))
        piece, waiting[index] = waiting[index][:size], waiting[index][size:]
        new = index not in begun
        frames.append(
            _call(index, f"c{index}" if new else None, f"f{index}" if new else None, piece)
        )
        begun.add(index)
        if not waiting[index]:
            del waiting[index]
    assert _calls(*frames, DONE) == [(f"f{i}", text) for i, text in enumerate(texts)]


def test_the_first_call_streams_while_it_comes():
    decoder = ADAPTER.decoder(chat(), target())
    decoder.feed(Frame(b"", msgspec.json.encode(_call(0, "x", "f", '{"a":'))))
    events = decoder.feed(Frame(b"", msgspec.json.encode(_call(0, None, None, "1}"))))
    assert events == [PartDelta(0, "1}")]


def test_a_whole_answers_calls_are_never_merged():
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    parts = _whole(content=None, tool_calls=[call, call]).parts
    assert [type(part) for part in parts] == [ToolCallPart, ToolCallPart]


def test_a_legacy_function_call_is_a_call():
    (part,) = _whole(content=None, function_call={"name": "f", "arguments": "{}"}).parts
    assert isinstance(part, ToolCallPart)
    assert part.call_id.startswith("call_")


# --- finish reasons


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("eos", "stop"),
        ("tool_calls", "stop"),
        ("STOP", "stop"),
        ("content_filter: PROHIBITED_CONTENT", "content_filter"),
        ("error", "error"),
        ("insufficient_system_resource", "error"),
        ("abort", "error"),
        ("cancelled", "error"),
        ("timeout", "error"),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", "error"),
    ],
)
def test_finish_reasons_are_the_five(word: str, reason: str):
    *_, finished = streamed(chunk(content="x"), chunk(word), DONE)
    assert isinstance(finished, Finished)
    assert (finished.reason, finished.upstream_reason) == (reason, word)


@pytest.mark.parametrize("word", ["stop", "tool_calls", "function_call", None, "end_turn"])
def test_a_turn_with_a_call_is_a_tool_turn(word: str | None):
    *_, finished = streamed(_call(0, "x", "f", "{}"), chunk(word), DONE)
    assert isinstance(finished, Finished)
    assert finished.reason == "tool_calls"


def test_a_call_cut_by_the_cap_is_length():
    *_, finished = streamed(_call(0, "x", "f", '{"a'), chunk("length"), DONE)
    assert isinstance(finished, Finished)
    assert finished.reason == "length"


def test_a_call_of_an_answer_that_was_broken_off_does_not_make_it_whole():
    *_, finished = streamed(_call(0, "x", "f", "{}"), chunk("abort"), DONE)
    assert isinstance(finished, Finished)
    assert finished.reason == "error"


def test_a_matched_stop_string_is_told():
    frame = chunk("stop")
    frame["choices"][0]["stop_reason"] = "END"
    *_, finished = streamed(chunk(content="x"), frame, DONE, request=chat(stop=["END"]))
    assert isinstance(finished, Finished)
    assert finished.stop_sequence == "END"


# --- usage

NO_INPUT = Usage(output=2, unknown=("input",), refused=True)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(input=10, output=2)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage()),
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": None},
            Usage(input=10, output=2),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4},
            Usage(input=6, cache_read=4, output=2),
        ),
        ({"input_tokens": 10, "output_tokens": 2}, Usage(input=10, output=2)),
        ({"prompt_tokens": 10}, Usage(input=10, unknown=("output",))),
        ({"completion_tokens": 10}, Usage(output=10, unknown=("input",))),
        ({"prompt_tokens": "10", "completion_tokens": 2}, NO_INPUT),
        ({"prompt_tokens": 1.5, "completion_tokens": 2}, NO_INPUT),
        ({"prompt_tokens": True, "completion_tokens": 2}, NO_INPUT),
        ({"prompt_tokens": 10**30, "completion_tokens": 2}, NO_INPUT),
        ({"prompt_tokens": 10.0, "completion_tokens": 2}, Usage(input=10, output=2)),
        ({}, None),
        ([], None),
        ("none", None),
    ],
)
def test_usage_is_believed_or_not_and_never_spoils_the_answer(
    reported: object, usage: Usage | None
):
    answer = {"choices": [{"message": {"content": "ok"}}], "usage": reported}
    *_, finished = _events(answer)
    assert finished.usage == usage
    assert collect(_events(answer)).parts == (TextPart(text="ok"),)


def test_reasoning_beside_the_completion_is_added_where_the_endpoint_counts_so():
    frame = usage_chunk(10, 20, completion_tokens_details={"reasoning_tokens": 100})
    to = target(flags=Flags(reasoning_excluded=True))
    *_, finished = streamed(chunk(content="x"), chunk("stop"), frame, DONE, to=to)
    assert isinstance(finished, Finished)
    assert finished.usage == Usage(input=10, output=20, reasoning=100, reasoning_beside=True)


def test_usage_on_every_chunk_is_never_added_up():
    frames = []
    for count in (1, 2, 3):
        frame = chunk(content="x")
        frame["usage"] = {"prompt_tokens": 10, "completion_tokens": count}
        frames.append(frame)
    *_, finished = streamed(*frames, chunk("stop"), usage_chunk(10, 2), DONE)
    assert isinstance(finished, Finished)
    assert finished.usage == Usage(input=10, output=2)


@pytest.mark.parametrize(
    "later",
    [
        {},
        [],
        7,
        {"total_tokens": 99},
        {"prompt_tokens": 11},
        {"prompt_tokens": -11, "completion_tokens": 6},
        {"prompt_tokens": 11, "completion_tokens": "6"},
        {"prompt_tokens": 11, "completion_tokens": 10**12},
        {"prompt_tokens": 11, "completion_tokens": 6, "cached_tokens": -1},
    ],
)
def test_a_report_that_says_little_or_nonsense_takes_nothing_back(later: object):
    good = {"prompt_tokens": 11, "completion_tokens": 6}
    for first, second in ((good, later), (later, good)):
        frames = [{**chunk(content="x"), "usage": first}, {**chunk("stop"), "usage": second}]
        *_, finished = streamed(*frames, DONE)
        assert isinstance(finished, Finished)
        assert finished.usage == Usage(input=11, output=6)


def test_reports_that_are_parts_make_a_whole():
    parts = [{"prompt_tokens": 10}, {"completion_tokens": 6, "cached_tokens": 4}]
    frames = [{**chunk(content="x"), "usage": part} for part in parts]
    *_, finished = streamed(*frames, chunk("stop"), DONE)
    assert isinstance(finished, Finished)
    assert finished.usage == Usage(input=6, cache_read=4, output=6)


def test_usage_inside_the_choice_is_found():
    frame = chunk("stop")
    frame["choices"][0]["usage"] = {"prompt_tokens": 10, "completion_tokens": 2}
    *_, finished = streamed(chunk(content="x"), frame, DONE)
    assert isinstance(finished, Finished)
    assert finished.usage == Usage(input=10, output=2)


def test_usage_so_far_is_at_hand_when_the_client_leaves():
    decoder = ADAPTER.decoder(chat(), target())
    frame = chunk(content="x")
    frame["usage"] = {"prompt_tokens": 10, "completion_tokens": 1}
    decoder.feed(Frame(b"", msgspec.json.encode(frame)))
    assert decoder.usage == Usage(input=10, output=1)


# --- ends


def test_a_finish_reason_makes_an_answer_whole_without_the_end_mark():
    *_, finished = streamed(chunk(content="x"), chunk("stop"))
    assert isinstance(finished, Finished)


def test_text_with_usage_behind_it_is_whole():
    *_, finished = streamed(chunk(content="x"), usage_chunk())
    assert isinstance(finished, Finished)
    assert finished.usage is not None


def test_usage_in_the_middle_does_not_make_a_cut_stream_whole():
    frame = chunk(content="x")
    frame["usage"] = {"prompt_tokens": 10, "completion_tokens": 1}
    *_, failed = streamed(frame)
    assert isinstance(failed, Failed)


def test_an_empty_finish_reason_on_every_chunk_is_no_end():
    *_, failed = streamed(chunk("", content="x"), chunk("", content="y"))
    assert isinstance(failed, Failed)
    *_, finished = streamed(chunk("", content="x"), chunk("stop", content="y"))
    assert isinstance(finished, Finished)


@pytest.mark.parametrize("data", [[], [DONE], [b""]])
def test_a_stream_without_any_event_is_a_failure(data: list[bytes]):
    (failed,) = streamed(*data)
    assert isinstance(failed, Failed)
    assert failed.fault.retryable


def test_nothing_is_decoded_after_the_end():
    decoder = ADAPTER.decoder(chat(), target())
    for value in (chunk(content="x"), chunk("stop")):
        decoder.feed(Frame(b"", msgspec.json.encode(value)))
    assert len(decoder.feed(Frame(b"", DONE))) == 2
    assert decoder.feed(Frame(b"", msgspec.json.encode(chunk(content="y")))) == []
    assert decoder.close() == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (
            {"error": {"code": 502, "message": "worker limit reached"}, "choices": []},
            "upstream_error",
        ),
        ({"error": {"code": 429, "message": "slow down"}}, "rate_limited"),
        ({"error": {"message": "Overloaded", "type": "overloaded_error"}}, "overloaded"),
        ({"error": "boom"}, "upstream_error"),
        ({"object": "error", "message": "too long", "code": 400}, "bad_request"),
        ({"message": "Internal server error"}, "upstream_error"),
        ({"error": {"code": "insufficient_quota", "message": "x"}}, "quota_exhausted"),
        ({"error": {"http_code": "429", "message": "x"}}, "rate_limited"),
        ({"base_resp": {"status_code": 1002, "status_msg": "x"}}, "rate_limited"),
        ({"base_resp": {"status_code": 1004, "status_msg": "x"}, "choices": None}, "auth_invalid"),
        ({"base_resp": {"status_code": 1008, "status_msg": "x"}}, "quota_exhausted"),
        ({"base_resp": {"status_code": 2013, "status_msg": "x"}}, "bad_request"),
        ({"base_resp": {"status_code": 1000, "status_msg": None}}, "upstream_error"),
    ],
)
def test_an_error_is_a_fault_wherever_it_stands(value: dict[str, Any], reason: str):
    for events in (streamed(value), streamed(chunk(content="x"), value), _events(value)):
        failed = events[-1]
        assert isinstance(failed, Failed)
        assert failed.fault.reason == reason


def test_the_code_of_a_base_resp_is_kept():
    base = {"status_code": 1008, "status_msg": "insufficient balance"}
    [failed] = _events({"choices": [], "base_resp": base})
    assert (failed.fault.code, failed.fault.message) == ("1008", "insufficient balance")


@pytest.mark.parametrize("base", [{"status_code": 0, "status_msg": ""}, {}, None, "x"])
def test_a_base_resp_of_success_is_no_error(base: object):
    end = {"choices": [], "base_resp": base, "usage": None}
    *_, finished = streamed(chunk(content="x"), chunk("stop"), end, DONE)
    assert isinstance(finished, Finished)


@pytest.mark.parametrize("empty", [None, {}, "", []])
def test_an_empty_error_field_is_no_error(empty: object):
    frame = {**chunk(content="x"), "error": empty}
    *_, finished = streamed(frame, chunk("stop"), DONE)
    assert isinstance(finished, Finished)


@pytest.mark.parametrize(
    "body",
    [b"<html>Bad gateway</html>", b"", b"[]", b"{}", b'{"choices":[]}', b"null", b"\xff\xfe"],
)
def test_a_body_that_is_no_answer_is_undecodable(body: bytes):
    with pytest.raises(UndecodableError):
        ADAPTER.decode(body, chat(), target())


@pytest.mark.parametrize("data", [b"<html>", b"[1]", b'"x"', b'{"choices":"x"}', b"\xff"])
def test_a_frame_that_is_no_chunk_is_undecodable(data: bytes):
    for first in ([], [chunk(content="x")]):
        decoder = ADAPTER.decoder(chat(), target())
        for value in first:
            decoder.feed(Frame(b"", msgspec.json.encode(value)))
        with pytest.raises(UndecodableError):
            decoder.feed(Frame(b"", data))


def test_a_stream_where_a_whole_answer_was_asked_is_put_together():
    frames = [chunk(content="o"), chunk(content="k"), chunk("stop"), usage_chunk()]
    body = b": hi\n\n" + b"".join(b"data: " + msgspec.json.encode(f) + b"\n\n" for f in frames)
    events = ADAPTER.decode(body + b"data: [DONE]\n\n", chat(), target())
    whole = collect(events)
    assert whole.parts == (TextPart(text="ok"),)
    assert whole.finished.usage == Usage(input=10, output=2)


CITED = ["https://x.example"]


def _cited(frame: dict[str, Any], cited: list[str]) -> dict[str, Any]:
    return {**frame, "citations": cited}


@pytest.mark.parametrize(
    "frames",
    [
        [chunk(content="x"), _cited(chunk("stop"), CITED), DONE],
        [_cited(chunk(content="x"), CITED), chunk("stop"), DONE],
        [chunk(content="x"), _cited(chunk(content="y"), CITED), chunk("stop"), DONE],
        [chunk(content="x"), chunk("stop"), _cited(usage_chunk(), CITED), DONE],
        [_cited(chunk(content="x"), []), _cited(chunk("stop"), CITED), DONE],
    ],
)
def test_what_a_server_found_is_kept_wherever_it_stands(frames: list[Any]):
    *_, finished = streamed(*frames)
    assert isinstance(finished, Finished)
    assert finished.extras == {"envelope": {"citations": CITED}}


def test_what_a_server_found_is_only_for_its_own_family():
    answer = {"choices": [{"message": {"content": "x"}}], "search_results": [{"title": "t"}]}
    assert _events(answer)[-1].extras == {"envelope": {"search_results": [{"title": "t"}]}}
    foreign = msgspec.structs.replace(chat(), family="anthropic_messages")
    *_, finished = ADAPTER.decode(msgspec.json.encode(answer), foreign, target())
    assert isinstance(finished, Finished)
    assert finished.extras is None


values: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3) | st.just([]) | st.just({})
)
deltas = st.dictionaries(
    st.sampled_from(
        (
            "content",
            "reasoning",
            "reasoning_content",
            "refusal",
            "tool_calls",
            "function_call",
            "reasoning_details",
            "annotations",
            "role",
        )
    ),
    values
    | st.lists(
        st.dictionaries(
            st.sampled_from(
                ("index", "id", "function", "type", "text", "data", "format", "thinking")
            ),
            values | st.dictionaries(st.sampled_from(("name", "arguments")), values, max_size=2),
            max_size=4,
        ),
        max_size=2,
    ),
    max_size=3,
)
choices = st.fixed_dictionaries(
    {"delta": deltas}, optional={"finish_reason": values, "index": values, "logprobs": values}
)
chunks = st.fixed_dictionaries(
    {"choices": st.lists(choices, max_size=2)},
    optional={"usage": values, "error": values, "id": values, "system_fingerprint": values},
)


@given(st.lists(chunks, max_size=6), st.booleans())
def test_any_chunks_follow_the_grammar_or_are_undecodable(frames: list[Any], with_end: bool):
    decoder = ADAPTER.decoder(chat(), target())
    events: list[Any] = []
    try:
        for frame in frames:
            events += decoder.feed(Frame(b"", msgspec.json.encode(frame)))
        if with_end:
            events += decoder.feed(Frame(b"", DONE))
        events += decoder.close()
    except UndecodableError:
        check_grammar(events)
        return
    check_grammar(events)
    assert isinstance(events[-1], Finished | Failed)


@given(chunks)
def test_any_whole_answer_follows_the_grammar_or_is_undecodable(answer: Any):
    text = msgspec.json.encode(answer).replace(b'"delta"', b'"message"')
    try:
        events = ADAPTER.decode(text, chat(), target())
    except UndecodableError:
        return
    check_grammar(events)
    assert isinstance(events[-1], Finished | Failed)
