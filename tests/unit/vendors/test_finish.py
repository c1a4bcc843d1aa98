"""How answers end, in every format: the vendors' words, words nobody knows, and words that say nothing."""

import msgspec
import pytest

from gwd.core.events import Event, Failed, Finished, check_grammar
from gwd.core.request import Generate, Request, Sampling
from gwd.vendors import finish
from tests.golden import golden
from tests.unit.vendors.formats import ADAPTERS, events_of, stream, text_of

OWN_WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "openai_chat": {
        "stop": ("stop",),
        "length": ("length",),
        "content_filter": ("content_filter", "content_filter: SPII"),
    },
    "anthropic_messages": {
        "stop": ("end_turn", "pause_turn", "stop_sequence"),
        "length": ("max_tokens", "model_context_window_exceeded"),
        "content_filter": ("refusal",),
    },
    "gemini": {
        "stop": ("STOP",),
        "length": ("MAX_TOKENS", "CONTINUATION"),
        "content_filter": (
            *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
            *("IMAGE_SAFETY", "MODEL_ARMOR"),
        ),
        "error": (
            *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"),
            *("MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE", "OTHER"),
        ),
    },
    "openai_responses": {"stop": ("completed",)},
}
UNKNOWN = ("something_new", "FUNCTION_CALL", "IMAGE_OTHER", "eos_reached", "42", "error_of_mine")
NO_WORDS = (b"null", b'"null"', b'"NULL"', b'"none"', b'"None"', b'""', b'" "', b"false")


def test_the_words_of_each_format_have_their_meaning():
    wrong = []
    for format_, words in OWN_WORDS.items():
        for reason, said in words.items():
            for word in said:
                end = _end(events_of(format_, stream(format_, "text", [b"a"], finish=_json(word))))
                if (end.reason, end.upstream_reason) != (reason, word):
                    wrong.append((format_, word, end))
    assert wrong == []


@pytest.mark.parametrize("format_", ADAPTERS)
def test_a_word_nobody_knows_delivers_what_came(format_: str):
    for word in UNKNOWN:
        events = events_of(format_, stream(format_, "text", [b"a", b"b"], finish=_json(word)))
        end = _end(events)
        assert (text_of(events, "text"), end.reason, end.upstream_reason) == ("ab", "stop", word)
        assert end.usage is not None


@pytest.mark.parametrize("format_", ["openai_chat", "anthropic_messages", "openai_responses"])
def test_a_whole_call_under_such_a_word_is_a_tool_turn(format_: str):
    for word in UNKNOWN:
        data = stream(format_, "tool_call", [b'{\\"a\\"', b":1}"], finish=_json(word))
        assert _end(events_of(format_, data)).reason == "tool_calls"
        # What was cut off before the call was whole is none.
        cut = stream(format_, "tool_call", [b'{\\"a\\"'], finish=_json(word))
        for end_of_block in (b'"type":"content_block_stop"', b'"type":"response.output_item.done"'):
            cut = cut.replace(end_of_block, b'"type":"ping"')
        if finish.meaning_of(word) is None:
            assert _end(events_of(format_, cut)).reason == "stop"


def test_a_whole_call_of_gemini_under_such_a_word_is_a_tool_turn():
    for word in UNKNOWN:
        body = b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":%b}]}'
        events = _whole("gemini", body % _json(word))
        assert (_end(events).reason, _end(events).upstream_reason) == ("tool_calls", word)


def test_no_word_is_no_end():
    """A stream that is cut behind it is cut, and a whole answer ends by its parts."""
    wrong = []
    for format_ in ("openai_chat", "gemini", "anthropic_messages"):
        for word in NO_WORDS:
            data = stream(format_, "text", [b"a", b"b"], finish=word)
            # Nothing that counts behind it: no usage, no end mark.
            for behind in (
                b'data: {"choices":[],',
                b"data: [DONE]",
                b'data: {"type":"message_stop"',
            ):
                data = data.partition(behind)[0]
            data = data.replace(b',"usage":{"output_tokens":2}', b"")
            events = events_of(format_, data)
            if not isinstance(events[-1], Failed) or text_of(events, "text") != "ab":
                wrong.append((format_, word, events[-1]))
    assert wrong == []


def test_no_word_of_a_whole_answer_is_told_as_none():
    bodies = {
        "openai_chat": b'{"choices":[{"message":{"content":"a"},"finish_reason":%b}]}',
        "gemini": b'{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":%b}]}',
        "openai_responses": b'{"status":%b,"output":[{"type":"message","content":'
        b'[{"type":"output_text","text":"a"}]}]}',
    }
    for format_, body in bodies.items():
        for word in NO_WORDS:
            end = _end(_whole(format_, body % word))
            assert end.reason == "stop"
            assert end.upstream_reason == ("completed" if format_ == "openai_responses" else None)


def test_an_incomplete_response_never_ended_by_itself():
    body = (
        b'{"status":"incomplete","incomplete_details":%b,"output":'
        b'[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}'
    )
    for details, reason, word in (
        (b'{"reason":"max_output_tokens"}', "length", "max_output_tokens"),
        (b'{"reason":"content_filter"}', "content_filter", "content_filter"),
        (b'{"reason":"something_new"}', "length", "something_new"),
        (b'{"reason":"null"}', "length", "incomplete"),
        (b"null", "length", "incomplete"),
    ):
        end = _end(_whole("openai_responses", body % details))
        assert (end.reason, end.upstream_reason) == (reason, word)


STOPPED = (
    (b'"matched_stop":"END"', "END"),
    (b'"stop_reason":"END"', "END"),
    (b'"stop_reason":null,"matched_stop":"END"', "END"),
    (b'"stop_reason":128009,"matched_stop":"END"', "END"),
    (b'"matched_stop":128009', None),
    (b'"matched_stop":["END"]', None),
    (b'"matched_stop":{"END":1}', None),
    (b'"matched_stop":"</s>"', None),
    (b'"matched_stop":"end"', None),
    (b'"matched_stop":""', None),
    (b'"stop_reason":true', None),
)


def test_a_matched_stop_is_one_of_the_requests():
    wrong = []
    for fields, expected in STOPPED:
        body = b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop",%b}]}' % fields
        data = stream("openai_chat", "text", [b"a"]).replace(
            b'"finish_reason":"stop"', b'"finish_reason":"stop",' + fields
        )
        for events in (_whole("openai_chat", body), _streamed("openai_chat", data)):
            if _end(events).stop_sequence != expected:
                wrong.append((fields, _end(events)))
    for fields, expected in (
        (b'"stop_reason":"stop_sequence","stop_sequence":"END"', "END"),
        (b'"stop_reason":"END"', "END"),
        (b'"stop_reason":"end_turn","matched_stop":"END"', "END"),
        (b'"stop_reason":"end_turn","stop_sequence":null', None),
        (b'"stop_reason":"end_turn","stop_sequence":7', None),
        (b'"stop_reason":"end_turn","stop_sequence":["END"]', None),
    ):
        body = b'{"content":[{"type":"text","text":"a"}],%b,"usage":{}}' % fields
        end = _end(_whole("anthropic_messages", body))
        if (end.reason, end.stop_sequence) != ("stop", expected):
            wrong.append((fields, end))
    assert wrong == []


def test_every_word_of_the_table_is_in_lower_case():
    assert all(word == word.lower() for word in finish.GEMINI_WORDS)


def _json(word: str) -> bytes:
    return msgspec.json.encode(word)


def _asked() -> Request:
    asked = golden.request()
    assert isinstance(asked.body, Generate)
    body = msgspec.structs.replace(asked.body, sampling=Sampling(stop=("STOP", "END")))
    return msgspec.structs.replace(asked, body=body)


def _whole(format_: str, body: bytes) -> list[Event]:
    events = ADAPTERS[format_].decode(body, _asked(), golden.target(format_))
    check_grammar(events)
    return events


def _streamed(format_: str, data: bytes) -> list[Event]:
    return ADAPTERS[format_].decode(data, _asked(), golden.target(format_))


def _end(events: list[Event]) -> Finished:
    return next(event for event in events if isinstance(event, Finished))
