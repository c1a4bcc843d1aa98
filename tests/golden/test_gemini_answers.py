"""Answers of the Gemini format at their odd ends, one test a rule."""

from typing import Any

import msgspec
import pytest

from gwd.core.events import (
    Event,
    Failed,
    Finished,
    PartDelta,
    PartEnded,
    PartStarted,
    Started,
    check_grammar,
    collect,
)
from gwd.core.request import Generate, Message, TextPart, Tool, ToolCallPart
from gwd.core.sse import Frame
from gwd.core.usage import Usage
from gwd.vendors.base import UndecodableError
from gwd.vendors.gemini import ADAPTER
from tests.golden import golden

TO = golden.target("gemini")
ASKED = golden.request()


def chunk(
    *parts: dict[str, Any],
    finish: str | None = None,
    usage: dict[str, Any] | None = None,
    **candidate: Any,
) -> dict[str, Any]:
    found: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, **candidate}
    if finish is not None:
        found["finishReason"] = finish
    return {"candidates": [found], **({} if usage is None else {"usageMetadata": usage})}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"text": words, **more}


def call(**fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "get_weather", **fields}}


def whole(answer: object) -> list[Event]:
    body = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
    events = ADAPTER.decode(body, ASKED, TO)
    check_grammar(events)
    return events


def streamed(*chunks: object) -> list[Event]:
    decoder = ADAPTER.decoder(ASKED, TO)
    events: list[Event] = []
    for value in chunks:
        data = value if isinstance(value, bytes) else msgspec.json.encode(value)
        events += decoder.feed(Frame(b"", data))
    events += decoder.close()
    check_grammar(events)
    assert decoder.close() == []
    return events


def end(events: list[Event]) -> Finished:
    last = events[-1]
    assert isinstance(last, Finished)
    return last


def fault(events: list[Event]) -> Any:
    last = events[-1]
    assert isinstance(last, Failed)
    return last.fault


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("CONTINUATION", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("LANGUAGE", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("MODEL_ARMOR", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("MISSING_THOUGHT_SIGNATURE", "error"),
        ("OTHER", "error"),
        ("SOMETHING_NEW", "stop"),
    ],
)
def test_each_finish_reason_has_its_meaning(word: str, reason: str):
    for events in (
        whole(chunk(text("a"), finish=word)),
        streamed(chunk(text("a")), chunk(finish=word)),
    ):
        assert (end(events).reason, end(events).upstream_reason) == (reason, word)


def test_a_turn_with_a_call_is_a_tool_turn_unless_it_went_wrong():
    assert end(whole(chunk(text("a"), call(), finish="STOP"))).reason == "tool_calls"
    assert end(streamed(chunk(call()), chunk(text(""), finish="STOP"))).reason == "tool_calls"
    assert end(whole(chunk(call(), finish="MAX_TOKENS"))).reason == "length"
    assert end(whole(chunk(call(), finish="SAFETY"))).reason == "content_filter"


def test_a_call_that_cannot_be_read_fails_the_attempt_only_before_output():
    bad = chunk(finish="MALFORMED_FUNCTION_CALL", finishMessage="print(look(")
    for events in (whole(bad), streamed(bad)):
        assert (fault(events).reason, fault(events).message) == ("upstream_error", "print(look(")
        assert fault(events).retryable
    thought = text("hm", thought=True)
    # Thoughts of a stream have gone out; those of a whole answer have not.
    assert end(streamed(chunk(thought), bad)).reason == "error"
    assert fault(whole(chunk(thought, finish="MALFORMED_FUNCTION_CALL"))).retryable


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (chunk(text("a")), "stop"),
        (chunk(call()), "tool_calls"),
        (chunk(), None),
        ({"candidates": [{"index": 0}]}, None),
        ({"usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3}}, None),
    ],
)
def test_a_whole_answer_without_a_reason_is_complete_and_a_stream_is_not(
    answer: dict[str, Any], reason: str | None
):
    assert end(whole(answer)).reason == reason
    assert fault(streamed(answer)).reason == "upstream_error"


def test_a_stream_that_ends_at_once_is_a_failure():
    assert streamed() == [streamed()[0]]
    assert fault(streamed()).reason == "upstream_error"


def test_a_blocked_prompt_is_billed_for_its_tokens():
    blocked = {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 8, "totalTokenCount": 8},
    }
    for events in (whole(blocked), streamed(blocked)):
        assert [type(event) for event in events] == [Started, Finished]
        assert end(events) == Finished("content_filter", "SAFETY", Usage(input=8))
    harmless = {"promptFeedback": {"safetyRatings": []}, **chunk(text("a"), finish="STOP")}
    assert end(whole(harmless)).reason == "stop"


NO_OUTPUT = Usage(input=5, unknown=("output",), refused=True)
NO_INPUT = Usage(output=3, unknown=("input",), refused=True)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"promptTokenCount": 5, "candidatesTokenCount": 3}, Usage(input=5, output=3)),
        (
            {"promptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": 4},
            Usage(input=5, output=3, reasoning=4),
        ),
        (
            {
                "promptTokenCount": 5,
                "candidatesTokenCount": 3,
                "cachedContentTokenCount": 2,
                "toolUsePromptTokenCount": 7,
            },
            Usage(input=10, cache_read=2, output=3),
        ),
        ({"promptTokenCount": 5, "totalTokenCount": 5}, Usage(input=5)),
        (
            {"promptTokenCount": 5, "totalTokenCount": 12, "thoughtsTokenCount": 4},
            Usage(input=5, output=3, reasoning=4),
        ),
        ({"promptTokenCount": 5, "thoughtsTokenCount": 4}, Usage(input=5, reasoning=4)),
        ({"promptTokenCount": 5}, Usage(input=5, unknown=("output",))),
        ({"candidatesTokenCount": 5}, Usage(output=5, unknown=("input",))),
        ({"trafficType": "ON_DEMAND"}, None),
        ({"promptTokenCount": 5, "candidatesTokenCount": -3}, NO_OUTPUT),
        ({"promptTokenCount": "5", "candidatesTokenCount": 3}, NO_INPUT),
        ({"promptTokenCount": True, "candidatesTokenCount": 3}, NO_INPUT),
        ({"promptTokenCount": 5, "candidatesTokenCount": 2**60}, NO_OUTPUT),
        (
            {"promptTokenCount": 5, "candidatesTokenCount": 3, "cachedContentTokenCount": "x"},
            NO_INPUT,
        ),
    ],
)
def test_counts_become_classes_or_are_not_believed(counts: dict[str, Any], expected: Usage | None):
    assert end(whole(chunk(text("a"), finish="STOP", usage=counts))).usage == expected


def test_the_last_report_holds_and_one_without_counts_takes_nothing_away():
    first = {"promptTokenCount": 5, "candidatesTokenCount": 1}
    last = {"promptTokenCount": 5, "candidatesTokenCount": 3}
    events = streamed(
        chunk(text("a"), usage=first),
        chunk(text("b"), usage=last),
        chunk(finish="STOP", usage={"trafficType": "ON_DEMAND"}),
    )
    assert end(events).usage == Usage(input=5, output=3)
    decoder = ADAPTER.decoder(ASKED, TO)
    assert decoder.usage is None
    decoder.feed(Frame(b"", msgspec.json.encode(chunk(text("a"), usage=first))))
    assert decoder.usage == Usage(input=5, output=1)


def test_a_count_that_a_later_report_leaves_out_holds():
    first = {"promptTokenCount": 100, "cachedContentTokenCount": 40, "totalTokenCount": 100}
    last = chunk(text("b"), finish="STOP", usage={"candidatesTokenCount": 7})
    events = streamed(chunk(text("a"), usage=first), last)
    assert end(events).usage == Usage(input=60, cache_read=40, output=7)
    thought = chunk(finish="STOP", usage={"thoughtsTokenCount": 9})
    assert end(streamed(chunk(text("a"), usage=first), thought)).usage == Usage(
        input=60, cache_read=40, reasoning=9
    )


@pytest.mark.parametrize(
    ("offered", "called", "name"),
    [
        (["look"], "default_api.look", "look"),
        (["look"], "default_api:look", "look"),
        (["look at"], "default_api.look_at", "look at"),
        (["look", "default_api.look"], "default_api.look", "default_api.look"),
        (["default_api.look"], "default_api.look", "default_api.look"),
        (["look"], "default_api.see", "default_api.see"),
        (["look"], "my_default_api.look", "my_default_api.look"),
    ],
)
def test_a_module_before_a_tools_name_is_left_out(offered: list[str], called: str, name: str):
    messages = (Message(role="user", parts=(TextPart(text="q"),)),)
    tools = tuple(Tool(name=each) for each in offered)
    asked = golden.request(body=Generate(messages=messages, tools=tools))
    body = msgspec.json.encode(chunk(call(name=called), finish="STOP"))
    part = collect(ADAPTER.decode(body, asked, TO)).parts[0]
    assert isinstance(part, ToolCallPart)
    assert part.name == name


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"b": 1, "a": [1.0, None, "ü\n"]}, '{"b":1,"a":[1.0,null,"ü\\n"]}'),
        (None, "{}"),
        ([1], "{}"),
        ('{"a": 1}', '{"a": 1}'),
        (7, "{}"),
    ],
)
def test_arguments_are_the_text_of_an_object(args: object, expected: str):
    answer = msgspec.json.format(msgspec.json.encode(chunk(call(args=args), finish="STOP")))
    parts = collect(whole(answer)).parts
    assert getattr(parts[0], "arguments", None) == expected


def test_only_the_first_candidate_counts():
    second = {"content": {"parts": [text("no")]}, "finishReason": "MAX_TOKENS", "index": 1}
    answer = chunk(text("yes"), finish="STOP")
    answer["candidates"].insert(0, second)
    completion = collect(whole(answer))
    assert [getattr(part, "text", None) for part in completion.parts] == ["yes"]
    assert completion.finished.reason == "stop"


def test_signatures_are_never_joined_with_what_follows_them():
    events = streamed(
        chunk(text("a", thought=True)),
        chunk(text("b", thought=True, thoughtSignature="s1")),
        chunk(text("c", thought=True)),
        chunk(text("d")),
        chunk(text("", thoughtSignature="s2")),
        chunk(text("e"), finish="STOP"),
    )
    kinds = [event.kind for event in events if isinstance(event, PartStarted)]
    ended = [event.signature for event in events if isinstance(event, PartEnded)]
    assert kinds == ["reasoning", "reasoning", "text", "text"]
    assert ended == ["s1", None, "s2", None]


def test_the_fast_path_and_the_long_way_give_the_same_events():
    pieces = [chunk(text(piece)) for piece in "abc"]
    slow = [chunk(text(piece), text("")) for piece in "abc"]
    ending = chunk(finish="STOP")
    assert streamed(*pieces, ending) == streamed(*slow, ending)
    deltas = [event for event in streamed(*pieces, ending) if isinstance(event, PartDelta)]
    assert deltas == [PartDelta(0, "a"), PartDelta(0, "b"), PartDelta(0, "c")]


def test_an_error_ends_a_stream_whatever_its_shape():
    error = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    for broken in (error, [error], {"error": "overloaded"}):
        events = streamed(chunk(text("a")), broken, chunk(text("b"), finish="STOP"))
        assert fault(events).reason == "overloaded"
        assert not any(isinstance(e, PartDelta) and e.text == "b" for e in events)


@pytest.mark.parametrize("extra", [b"[DONE]", b"", b" "])
def test_marks_of_other_formats_are_passed_over(extra: bytes):
    events = streamed(chunk(text("a"), finish="STOP"), extra)
    assert end(events).reason == "stop"


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"",
        b"null",
        b"7",
        b"<html></html>",
        b'{"candidates":[]}',
        b'{"candidates":7}',
        b'{"candidates":[{"content":{"parts":[{"text":1}]}}]}',
        b"[7]",
        b"\xff\xfe",
        b'{"a":' * 50_000,
    ],
)
def test_what_is_not_an_answer_is_undecodable(body: bytes):
    with pytest.raises(UndecodableError):
        ADAPTER.decode(body, ASKED, TO)


def test_a_stream_where_json_was_asked_is_put_together():
    frames = b"".join(
        b"data: " + msgspec.json.encode(one) + b"\r\n\r\n"
        for one in (chunk(text("a")), chunk(text("b"), finish="STOP"))
    )
    for body in (frames, b"\xef\xbb\xbf" + frames, b": hello\n\n" + frames):
        assert [getattr(part, "text", None) for part in collect(whole(body)).parts] == ["ab"]


def test_a_list_of_chunks_without_an_end_is_a_failure():
    assert fault(whole([chunk(text("a"))])).reason == "upstream_error"
    assert fault(whole([])).reason == "upstream_error"
