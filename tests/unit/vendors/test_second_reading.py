"""Vendor bytes that are no strict JSON, in every format: nothing of the answer is lost, and what goes out is UTF-8."""

import random
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from gwd.core.events import Failed, Finished, check_grammar
from gwd.core.sse import SseSplitter
from gwd.dialects.chat_completions import DIALECT as CHAT_DIALECT
from gwd.dialects.completions import DIALECT as COMPLETIONS
from gwd.dialects.messages import DIALECT as MESSAGES
from gwd.dialects.responses import DIALECT as RESPONSES
from gwd.vendors.base import UndecodableError
from tests.golden import golden
from tests.unit.vendors.formats import ADAPTERS, ALL, events_of, stream, text_of

DIALECTS = (CHAT_DIALECT, MESSAGES, RESPONSES, COMPLETIONS)

# Name: the pieces as they stand in the vendor's JSON strings, and the text that a client gets.
PIECES: dict[str, tuple[list[bytes], str]] = {
    "nothing odd": ([b"a", b"b"], "ab"),
    "a pair of escapes cut in two": ([b"Hi \\ud83d", b"\\ude00!"], "Hi 😀!"),
    "upper case": ([b"Hi \\uD83D", b"\\uDE00!"], "Hi 😀!"),
    "an empty piece between the halves": ([b"\\ud83d", b"", b"\\ude00"], "😀"),
    "a piece between the halves": ([b"\\ud83d", b"x", b"\\ude00"], "�x�"),
    "two characters in a row": ([b"\\ud83d", b"\\ude00\\ud83d", b"\\ude01"], "😀😁"),
    "a first half alone at the end": ([b"Hi \\ud83d"], "Hi �"),
    "a second half alone": ([b"\\ude00 Hi"], "� Hi"),
    "a lone half inside": ([b"a\\ud83db"], "a�b"),
    "two first halves": ([b"\\ud83d", b"\\ud83d", b"\\ude00"], "�😀"),
    "halves in the wrong order": ([b"\\ude00\\ud83d", b"."], "��."),
    "an escaped backslash before it": ([b"\\\\ud83d", b"\\ud83d", b"\\ude00"], "\\ud83d😀"),
    "plain text before a pair": ([b"x", b"y\\ud83d", b"\\ude00"], "xy😀"),
    "plain text around a lone half": ([b"x", b"\\ud83d", b"y", b"z"], "x�yz"),
    "plain text after a pair": ([b"\\ud83d", b"\\ude00", b"x", b"y"], "😀xy"),
    "a character cut after one byte": ([b"a\xf0", b"\x9f\x98\x80b"], "a😀b"),
    "after two": ([b"a\xf0\x9f", b"\x98\x80b"], "a😀b"),
    "after three": ([b"a\xf0\x9f\x98", b"\x80b"], "a😀b"),
    "in four": ([b"\xf0", b"\x9f", b"\x98", b"\x80"], "😀"),
    "a shorter one": ([b"Gr\xc3", b"\xbc\xc3\x9fe"], "Grüße"),
    "three bytes": ([b"\xe4\xb8", b"\x96\xe7\x95\x8c"], "世界"),
    "bytes that never end": ([b"a\xf0\x9f", b"b"], "a�b"),
    "bytes at the very end": ([b"a\xe4\xb8"], "a�"),
    "bytes that are none": ([b"a\xffb"], "a�b"),
    "Latin-1": ([b"na\xefve"], "na�ve"),
    "halves as bytes": ([b"\xed\xa0\xbd", b"\xed\xb8\x80"], "😀"),
    "control characters": ([b"a\tb\nc", b"\x00d\x1f"], "a\tb\nc\x00d\x1f"),
    "characters like marks in strict JSON": (
        ["\U0010f123".encode(), b"\\udbfc\\udc00"],
        "\U0010f123\U0010f000",
    ),
}

# Name: what is replaced in the stream of the pieces `a` and `b`, or a function of it. The text must stay `ab`.
ODD_FIELDS: dict[str, bytes] = {
    "NaN": b"NaN",
    "Infinity": b"Infinity",
    "-Infinity": b"-Infinity",
    "nan as C writes it": b"-nan",
    "inf as C writes it": b"[inf,-inf,+Infinity,nan]",
    "a word in a text": b'["NaN","-inf \\"nan\\"",nan]',
    "a number out of range": b"1e999",
    "a number of 5,000 digits": b"1" * 5_000,
    "a lone half": b'"\\ud83d"',
    "no UTF-8": b'"\xff\xfe"',
    "a control character": b'"a\nb"',
    "a number in a list": b'[0.5,-Infinity,{"x":NaN}]',
}


def test_pieces_of_text_are_whole_in_every_format():
    wrong = []
    for name, (pieces, expected) in PIECES.items():
        for format_, kind in ALL:
            if kind == "tool_call":
                # What a call says is JSON text itself.
                pieces_, expected_ = [b'{\\"t\\":\\"', *pieces, b'\\"}'], f'{{"t":"{expected}"}}'
            else:
                pieces_, expected_ = pieces, expected
            data = stream(format_, kind, pieces_)
            found = _outcome(format_, data, kind)
            if found != expected_:
                wrong.append((name, format_, kind, found))
    assert wrong == []


def test_odd_values_beside_the_text_cost_nothing_of_the_answer():
    wrong = []
    for name, value in ODD_FIELDS.items():
        for format_, kind in ALL:
            plain = stream(format_, kind, [b"a", b"b"])
            # As the first and as the last member of every event.
            first = plain.replace(
                b"data: {", b'data: {"odd":' + value.replace(b"\n", b"\ndata: ") + b","
            )
            nested = b'"delta":{"odd":' + value.replace(b"\n", b"\ndata: ") + b","
            inside = plain.replace(b'"delta":{"', nested + b'"')
            for data in (first, inside):
                found = _outcome(format_, data, kind)
                if found != "ab":
                    wrong.append((name, format_, kind, found))
    assert wrong == []


def test_odd_framing_costs_nothing_of_the_answer():
    bom = b"\xef\xbb\xbf"
    forms = {
        "a byte order mark": lambda data: bom + data,
        "two of them": lambda data: bom + bom + data,
        "one before each event": lambda data: data.replace(b"data: ", bom + b"data: "),
        "one before each value": lambda data: data.replace(
            b"data: {", b"data: " + bom + bom + b"{"
        ),
        "NUL behind each value": lambda data: data.replace(b"}\n\n", b"}\x00\n\n"),
        "no blank lines": lambda data: data.replace(b"\n\n", b"\n"),
    }
    wrong = []
    for name, form in forms.items():
        for format_, kind in ALL:
            found = _outcome(format_, form(stream(format_, kind, [b"a", b"b"])), kind)
            if found != "ab":
                wrong.append((name, format_, kind, found))
    assert wrong == []


def test_what_stands_behind_the_end_costs_nothing_of_the_answer():
    wrong = []
    for format_, kind in ALL:
        for junk in (b'"[DONE]"', b"done", b"[done]", b"<html>", b'{"cut":', b"null"):
            data = stream(format_, kind, [b"a", b"b"]).removesuffix(b"data: [DONE]\n\n")
            found = _outcome(format_, data + b"data: " + junk + b"\n\n", kind)
            if found != "ab":
                wrong.append((format_, kind, junk, found))
    assert wrong == []


def test_a_text_cut_anywhere_is_the_same_text():
    """Random texts, cut between any two code units or bytes, in every format."""
    dice, wrong = random.Random(20), []
    for _ in range(60):
        text = "".join(dice.choice("ab é世😀🌍\U0010ffff") for _ in range(dice.randint(1, 9)))
        for pieces in (_as_escapes(text, dice), _as_bytes(text, dice)):
            for format_, kind in ALL:
                if kind != "tool_call":
                    found = _outcome(format_, stream(format_, kind, pieces), kind)
                    if found != text:
                        wrong.append((text, pieces, format_, kind, found))
    assert wrong == []


def test_two_calls_whose_pieces_interleave_keep_their_own_halves():
    def piece(index: int, text: str) -> str:
        call = f'"index":{index},"function":{{"arguments":"{text}"}}'
        return f'{{"choices":[{{"delta":{{"tool_calls":[{{{call}}}]}}}}]}}'

    chunks = [
        _opening(0),
        _opening(1),
        piece(0, '{\\"t\\":\\"\\ud83d'),
        piece(1, '{\\"t\\":\\"\\ud83d'),
        piece(0, '\\ude00\\"}'),
        piece(1, '\\ude01\\"}'),
        '{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}',
    ]
    data = "".join(f"data: {chunk}\n\n" for chunk in chunks).encode()
    assert _outcome("openai_chat", data, "tool_call") == '{"t":"😀"}{"t":"😁"}'


WHOLE: dict[str, bytes] = {
    "openai_chat": b'{"id":"c","choices":[{"index":0,"message":{"content":"a\\ud83d\\ude00\\ud83d","odd":NaN},'
    b'"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"odd":-Infinity}}',
    "anthropic_messages": b'{"id":"m","type":"message","content":[{"type":"text","text":"a\\ud83d\\ude00\\ud83d",'
    b'"odd":NaN}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":2,"odd":1e999}}',
    "gemini": b'{"candidates":[{"content":{"parts":[{"text":"a\\ud83d\\ude00\\ud83d","odd":NaN}]},'
    b'"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2,"odd":Infinity}}',
    "openai_responses": b'{"id":"r","status":"completed","output":[{"type":"message","content":[{"type":'
    b'"output_text","text":"a\\ud83d\\ude00\\ud83d","odd":NaN}]}],"usage":{"input_tokens":10,"output_tokens":2}}',
}


@pytest.mark.parametrize("format_", ADAPTERS)
def test_a_whole_answer_is_read_twice_too(format_: str):
    marks = b"\xef\xbb\xbf" * 2
    for body in (WHOLE[format_], marks + WHOLE[format_], b" \n" + WHOLE[format_] + b"\x00\n"):
        events = ADAPTERS[format_].decode(body, golden.request(), golden.target(format_))
        check_grammar(events)
        assert text_of(events, "text") == "a😀�"
        [end] = [event for event in events if isinstance(event, Finished)]
        assert end.usage is not None
        assert (end.usage.input, end.usage.output, end.reason) == (10, 2, "stop")


@pytest.mark.parametrize("format_", ADAPTERS)
def test_the_bill_of_an_odd_stream_is_that_of_a_strict_one(format_: str):
    strict, odd = (
        events_of(format_, stream(format_, "text", pieces)) for pieces in ([b"ab"], [b"a\\ud83d"])
    )
    assert _end(strict).usage == _end(odd).usage != None  # noqa: E711


@pytest.mark.parametrize("format_", ADAPTERS)
def test_counts_of_any_type_never_cost_the_answer(format_: str):
    data = stream(format_, "text", [b"a", b"b"])
    for value in (
        b"2.0",
        b"NaN",
        b"1e999",
        b"-1",
        b'"2"',
        b"[]",
        b"{}",
        b"null",
        b"true",
        b"9" * 400,
    ):
        for old in (b'_tokens":2', b'candidatesTokenCount":2'):
            assert _outcome(format_, data.replace(old, old[:-1] + value), "text") == "ab"
    for value in (b"[]", b'""', b"7", b"null", b'"none"'):
        for name in (b"usage", b"usageMetadata"):
            begun, found, rest = data.partition(b'"%b":{' % name)
            if found and b'"usage":{"input_tokens":10' not in found + rest[:30]:
                cut = rest[rest.index(b"}") + 1 :]
                assert _outcome(format_, begun + b'"%b":' % name + value + cut, "text") == "ab"


MISFITS = (
    (b'"index":0', b'"index":"0"'),
    (b'"index":0', b'"index":0.0'),
    (b'"id":"c1"', b'"id":7'),
    (b'"model":"m"', b'"model":7'),
    (b'"id":"m"', b'"id":12345'),
    (b'"delta":{"role":"assistant"}', b'"delta":[]'),
    (b'"choices":[{', b'"choices":[null,{'),
)


def test_values_of_another_type_whose_meaning_is_plain():
    wrong = []
    for format_, kind in ALL:
        plain = stream(format_, kind, [b"a", b"b"])
        for old, new in MISFITS:
            found = _outcome(format_, plain.replace(old, new), kind)
            if found != "ab":
                wrong.append((format_, kind, new, found))
    assert wrong == []


@pytest.mark.parametrize("format_", ADAPTERS)
@pytest.mark.parametrize(
    "data", [b"{", b"{NaN}", b"<html>", b'{"a":undefined}', b"\xff" * 50, b"[" * 5_000]
)
def test_what_is_no_json_at_all_stays_undecodable(format_: str, data: bytes):
    with pytest.raises(UndecodableError):
        ADAPTERS[format_].decode(data, golden.request(), golden.target(format_))
    [frame] = SseSplitter().feed(b"data: " + data + b"\n\n")
    with pytest.raises(UndecodableError):
        ADAPTERS[format_].decoder(golden.request(), golden.target(format_)).feed(frame)


def _opening(index: int) -> str:
    call = f'"index":{index},"id":"c{index}","function":{{"name":"get_weather"}}'
    return f'{{"choices":[{{"delta":{{"tool_calls":[{{{call}}}]}}}}]}}'


def _outcome(format_: str, data: bytes, kind: str) -> object:
    """The text of an answer that ended well and reads as UTF-8 in every dialect, or what is wrong with it."""
    try:
        events = events_of(format_, data)
    except UndecodableError as error:
        return error
    check_grammar(events)
    if any(isinstance(event, Failed) for event in events):
        return events[-1]
    for dialect in DIALECTS:
        for suffix in (".sse", ".json"):
            path = golden.ROOT / f"x{suffix}"
            rendered = golden.render(dialect, golden.request(dialect=dialect.name), path, events)
            if not _is_clean(rendered):
                return f"{dialect.name}{suffix}: {rendered!r}"
    return text_of(events, kind)


def _is_clean(rendered: bytes) -> bool:
    """Valid UTF-8, and every JSON value in it strict."""
    text = rendered.decode()
    values = [line[6:] for line in text.split("\n") if line.startswith("data: {")] or [text]
    return all(isinstance(msgspec.json.decode(value), dict) for value in values)


def _end(events: list[Any]) -> Finished:
    return next(event for event in events if isinstance(event, Finished))


def _as_escapes(text: str, dice: random.Random) -> list[bytes]:
    raw = text.encode("utf-16-be")
    units = [b"\\u%04x" % int.from_bytes(raw[at : at + 2]) for at in range(0, len(raw), 2)]
    return _cut(units, dice)


def _as_bytes(text: str, dice: random.Random) -> list[bytes]:
    return _cut([bytes((byte,)) for byte in text.encode()], dice)


def _cut(units: list[bytes], dice: random.Random) -> list[bytes]:
    places = sorted(dice.sample(range(len(units) + 1), min(3, len(units))))
    bounds = [0, *places, len(units)]
    return [b"".join(units[a:b]) for a, b in pairwise(bounds)]
