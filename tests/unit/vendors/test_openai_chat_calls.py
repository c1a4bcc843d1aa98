"""Tool calls as OpenAI-format servers really stream them: repeated, restated, renumbered (reports: streaming)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.events import Finished, PartDelta, PartStarted, collect
from gwd.core.request import TextPart, ToolCallPart
from gwd.core.sse import Frame
from gwd.vendors.openai_chat import ADAPTER
from gwd.vendors.openai_chat.arguments import Arguments
from tests.unit.vendors.builders import chat, chunk, streamed, target

DONE = b"[DONE]"
WHOLE = '{"city":"A"}'


def call(
    index: int | None = None,
    call_id: str | None = None,
    name: str | None = None,
    arguments: str | None = None,
) -> Any:
    function = {"name": name, "arguments": arguments}
    return chunk(tool_calls=[{"index": index, "id": call_id, "function": function}])


def calls(*data: object) -> list[tuple[str, str, str]]:
    """Id, name and arguments of the calls of a stream; minted ids as `*`."""
    parts = collect(streamed(*data, DONE)).parts
    return [
        ("*" if part.call_id.startswith("call_") else part.call_id, part.name, part.arguments)
        for part in parts
        if isinstance(part, ToolCallPart)
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        # An empty object holds the place of the arguments.
        [call(0, "x", "f", "{}"), call(0, None, None, '{"city":'), call(0, None, None, '"A"}')],
        [call(0, "x", "f", "{}"), call(0, "x", "f", '{"city":'), call(0, "x", "f", '"A"}')],
        [call(0, "x", "f", "{}"), call(0, "x", "f", ""), call(0, None, None, WHOLE)],
        [call(0, "x", "f", "{"), call(0, None, None, "}"), call(0, None, None, WHOLE)],
        [call(0, "x", "f", "{}"), call(0, None, None, "{}"), call(0, None, None, WHOLE)],
        # The whole call again, or its arguments, in one piece or several.
        [call(0, "x", "f", ""), call(0, None, None, WHOLE), call(0, "x", "f", WHOLE)],
        [call(0, "x", "f", WHOLE), call(0, "x", "f", WHOLE), call(0, "x", "f", WHOLE)],
        [call(0, "x", "f", WHOLE), call(0, "x", "f", '{"city": "A"}')],
        [call(0, "x", "f", WHOLE), call(0, "x", "f", '{"city":'), call(0, None, None, '"A"}')],
        [call(0, "x", "f", WHOLE), call(0, None, "f", WHOLE)],
        [call(0, "x", "f", WHOLE), call(0, "x", "f", "")],
        [call(0, "x", "f", WHOLE), call(0, "x", "f", None), chunk(content="")],
        [call(0, "x", "f", WHOLE), call(0, None, None, WHOLE)],
        [call(0, "x", "f", WHOLE), call(0, None, None, '{ "city"'), call(0, None, None, ':"A"}')],
        [call(None, "x", "f", WHOLE), call(None, None, None, WHOLE)],
        # Another id without a name.
        [call(0, "x", "f", ""), call(0, "y", None, '{"city":'), call(0, "y", None, '"A"}')],
        [call(0, "x", "f", '{"city":'), call(0, "y", None, '"A'), call(0, "z", None, '"}')],
        [call(0, "x", "f", WHOLE), call(0, "y", None, WHOLE)],
        [call(0, "x", "f", '{"city":'), call(1, "x", None, '"A"}')],
        # Everything so far in every piece.
        [call(0, "x", "f", '{"ci'), call(0, "x", "f", '{"city":'), call(0, "x", "f", WHOLE)],
        [call(0, "x", "f", '{"city":'), call(0, "x", "f", '{"city":"'), call(0, "x", "f", WHOLE)],
        [call(0, "x", "f", '{"city":'), call(0, None, None, WHOLE)],
        [call(0, "x", "f", '{"ci'), call(0, None, None, '{"city":'), call(0, None, None, '"A"}')],
        [call(0, "x", "f", ""), call(0, None, None, '{"city":"'), call(0, None, None, WHOLE)],
    ],
)
def test_one_call_is_one_call_however_it_is_told(pieces: list[Any]):
    assert calls(*pieces) == [("x", "f", WHOLE)]
    text = [("x", "f", WHOLE)]
    assert calls(*pieces, chunk(content="so")) == text
    *_, finished = streamed(*pieces, chunk("stop"), DONE)
    assert isinstance(finished, Finished)
    assert finished.reason == "tool_calls"


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        (
            [call(0, "x", "f", "{}"), call(1, "y", "f", "{}")],
            [("x", "f", "{}"), ("y", "f", "{}")],
        ),
        (
            [call(0, "x", "f", WHOLE), call(0, "x", "f", '{"city":"B"}')],
            [("x", "f", WHOLE), ("*", "f", '{"city":"B"}')],
        ),
        (
            [call(0, "x", "f", WHOLE), call(0, "y", "f", WHOLE)],
            [("x", "f", WHOLE), ("y", "f", WHOLE)],
        ),
        ([call(0, "x", "f", WHOLE), call(0, "x", "g", "")], [("x", "f", WHOLE), ("*", "g", "{}")]),
        # Without any id nothing says that the second is not meant.
        (
            [call(None, None, "f", WHOLE), call(None, None, "f", WHOLE)],
            [("*", "f", WHOLE), ("*", "f", WHOLE)],
        ),
        (
            [call(None, None, "f", WHOLE), call(None, None, "f", ""), call(None, None, None, "{}")],
            [("*", "f", WHOLE), ("*", "f", "{}")],
        ),
        # The id of a new call comes before its name, although the index is used again.
        (
            [call(0, "x", "f", WHOLE), call(0, "y", None, ""), call(0, None, "g", WHOLE)],
            [("x", "f", WHOLE), ("y", "g", WHOLE)],
        ),
        # All calls once more at the end.
        (
            [
                *(call(0, "x", "f", WHOLE), call(1, "y", "g", "{}")),
                *(call(0, "x", "f", WHOLE), call(1, "y", "g", "{}")),
            ],
            [("x", "f", WHOLE), ("y", "g", "{}")],
        ),
    ],
)
def test_calls_that_are_several_stay_several(pieces: list[Any], wanted: list[tuple[str, str, str]]):
    assert calls(*pieces) == wanted


def test_text_behind_a_repeated_call_does_not_wait_for_the_end():
    decoder = ADAPTER.decoder(chat(), target())
    for value in (call(0, "x", "f", WHOLE), call(0, "x", "f", WHOLE)):
        decoder.feed(Frame(b"", msgspec.json.encode(value)))
    events = decoder.feed(Frame(b"", msgspec.json.encode(chunk(content="so"))))
    assert events[-1] == PartDelta(1, "so")


def test_a_call_without_a_name_is_none():
    events = streamed(chunk(content="so"), call(0, "x", None, WHOLE), chunk("tool_calls"), DONE)
    assert collect(events).parts == (TextPart(text="so"),)
    assert events[-1] == Finished("stop", upstream_reason="tool_calls")


def test_an_answer_that_is_only_a_call_without_a_name_is_broken():
    started, finished = streamed(call(0, "x", None, WHOLE), chunk("tool_calls"), DONE)
    assert finished == Finished("error", upstream_reason="tool_calls")
    assert not isinstance(started, PartStarted)


# --- custom calls


def custom(index: int, call_id: str | None, name: str | None, text: str | None) -> Any:
    called = {"name": name, "input": text}
    piece = {"index": index, "id": call_id, "type": "custom", "custom": called}
    return chunk(tool_calls=[piece])


def test_the_input_of_a_custom_call_is_put_together():
    pieces = [
        custom(0, "x", "f", 'say "'),
        custom(0, None, None, 'hi"\n'),
        custom(0, "x", None, "{}"),
    ]
    wanted = ("x", "f", '{"input":"say \\"hi\\"\\n{}"}')
    assert calls(*pieces) == [wanted]
    assert calls(*pieces, call(1, "y", "g", WHOLE)) == [wanted, ("y", "g", WHOLE)]


def test_a_custom_call_of_a_whole_answer_keeps_name_and_input():
    called = {"id": "x", "type": "custom", "custom": {"name": "f", "input": "go"}}
    answer = {"choices": [{"message": {"tool_calls": [called]}, "finish_reason": "tool_calls"}]}
    parts = collect(ADAPTER.decode(msgspec.json.encode(answer), chat(), target())).parts
    assert parts == (ToolCallPart(call_id="x", name="f", arguments='{"input":"go"}'),)


def test_a_call_of_a_kind_nobody_knows_is_none():
    piece = {"index": 0, "id": "x", "type": "computer", "computer": {"action": "click"}}
    events = streamed(chunk(content="so"), chunk(tool_calls=[piece]), chunk("stop"), DONE)
    assert collect(events).parts == (TextPart(text="so"),)


# --- pieces of arguments

names = st.sampled_from(("a", "b", "{", '{"a":', ""))
objects = st.recursive(
    st.dictionaries(names, st.integers(0, 9) | st.text('{}[]":, a\\', max_size=6), max_size=2),
    lambda inner: st.dictionaries(
        names, inner | st.lists(inner, max_size=3), min_size=1, max_size=2
    ),
    max_leaves=6,
)


def cuts(data: st.DataObject, text: str) -> list[int]:
    inside = data.draw(st.sets(st.integers(1, len(text)), max_size=6))
    return sorted(inside | {len(text)})


def put_together(pieces: list[str]) -> str:
    arguments = Arguments()
    out: list[str] = []
    for piece in pieces:
        arguments.add(piece)
        out += arguments.take()
    return "".join(out + arguments.close())


@given(objects, st.data())
def test_pieces_that_are_new_are_put_together(value: Any, data: st.DataObject):
    text = msgspec.json.encode(value).decode()
    ends = cuts(data, text)
    pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert put_together(pieces) == text
    assert put_together([*pieces, text]) == text
    assert put_together(["{}", *pieces]) == text


@given(objects, st.data())
def test_pieces_that_hold_everything_so_far_are_taken_once(value: Any, data: st.DataObject):
    text = msgspec.json.encode(value).decode()
    assert put_together([text[:end] for end in cuts(data, text)]) == text


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"a":', '{"a":1}', "}"],
        ['{"a":', '{"a":{"a":1}}', "}"],
        ['{"a":[', '{"a":[]}', ',{"a":[]}', "]}"],
        ['{"a":', '{"a":', '{"a":1}}', "}"],
        ['{"a":"', '{\\"a\\":\\"', '"}'],
    ],
)
def test_an_object_inside_that_begins_like_the_one_around_it_is_kept(pieces: list[str]):
    assert put_together(pieces) == "".join(pieces)


def test_what_may_go_out_goes_out_at_once():
    arguments = Arguments()
    arguments.add("{")
    assert arguments.take() == []
    arguments.add('"a":')
    assert arguments.take() == ["{", '"a":']
    arguments.add("1")
    assert arguments.take() == ["1"]
    assert arguments.close() == []
