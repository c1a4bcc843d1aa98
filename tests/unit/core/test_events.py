"""The grammar of the one stream, and the stream folded into a whole."""

import pytest

from gwd.core.cost import Cost
from gwd.core.errors import Fault
from gwd.core.events import (
    Embedded,
    Event,
    Failed,
    Finished,
    GrammarError,
    PartDelta,
    PartEnded,
    PartStarted,
    Settled,
    Started,
    check_grammar,
    collect,
)
from gwd.core.request import ReasoningPart, RefusalPart, TextPart, ToolCallPart
from gwd.core.usage import Usage

FAULT = Failed(Fault(reason="network", message="gone"))
SETTLED = Settled(Usage(), Cost(), None)
TEXT: list[Event] = [PartStarted(0, "text"), PartDelta(0, "a"), PartDelta(0, "b"), PartEnded(0)]
DONE = Finished("stop")


@pytest.mark.parametrize(
    "events",
    [
        [Started(), *TEXT, DONE, SETTLED],
        [Started(), DONE],
        [Started(), Embedded(((0.1,),)), DONE, SETTLED],
        [FAULT, SETTLED],
        [Started(), FAULT],
        [Started(), PartStarted(0, "text"), PartDelta(0, "a"), FAULT, SETTLED],
        [Started(), *TEXT, PartStarted(1, "tool_call"), PartEnded(1), DONE],
        [],
    ],
)
def test_allowed_streams_pass(events: list[Event]):
    check_grammar(events)


@pytest.mark.parametrize(
    "events",
    [
        TEXT,
        [Started(), Started()],
        [Started(), PartStarted(1, "text")],
        [Started(), PartStarted(0, "text"), PartStarted(1, "text")],
        [Started(), PartStarted(0, "text"), PartDelta(1, "a")],
        [Started(), PartStarted(0, "text"), DONE],
        [Started(), PartDelta(0, "a")],
        [Started(), *TEXT, PartEnded(0)],
        [Started(), *TEXT, PartStarted(0, "text")],
        [Started(), *TEXT, Embedded(((0.1,),))],
        [Started(), DONE, DONE],
        [Started(), DONE, FAULT],
        [Started(), DONE, SETTLED, SETTLED],
        [DONE],
        [SETTLED],
        [FAULT, *TEXT],
    ],
)
def test_anything_else_is_named(events: list[Event]):
    with pytest.raises(GrammarError):
        check_grammar(events)


def test_a_whole_is_the_sum_of_its_parts():
    events: list[Event] = [
        Started(upstream_id="x"),
        PartStarted(0, "reasoning", format="anthropic-claude-v1", item_id="r"),
        PartDelta(0, "h"),
        PartDelta(0, "m"),
        PartEnded(0, signature="sig"),
        PartStarted(1, "text"),
        PartDelta(1, "Hi", extras={"logprobs": 1}),
        PartEnded(1, extras={"annotations": [2]}),
        PartStarted(2, "tool_call", call_id="c", name="f"),
        PartEnded(2),
        PartStarted(3, "refusal"),
        PartDelta(3, "no"),
        PartEnded(3),
        DONE,
    ]
    whole = collect(events)
    assert whole.parts == (
        ReasoningPart(text="hm", signature="sig", format="anthropic-claude-v1", item_id="r"),
        TextPart(text="Hi"),
        ToolCallPart(call_id="c", name="f", arguments="{}"),
        RefusalPart(text="no"),
    )
    assert whole.part_extras == {1: [{"logprobs": 1}, {"annotations": [2]}]}
    assert whole.started.upstream_id == "x"


def test_a_proof_on_a_call_survives_in_its_extras():
    events: list[Event] = [
        Started(),
        PartStarted(0, "tool_call", call_id="c", name="f", format="google-gemini-v1"),
        PartEnded(0, signature="sig"),
        DONE,
    ]
    (call,) = collect(events).parts
    assert isinstance(call, ToolCallPart)
    assert call.extras == {"signature": "sig", "format": "google-gemini-v1"}


def test_vectors_are_kept_in_order():
    whole = collect([Started(), Embedded(((0.1,), (0.2,))), DONE])
    assert whole.vectors == ((0.1,), (0.2,))
