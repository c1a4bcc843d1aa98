"""What is left of a request and its answer: bounded, hidden, without bytes that are no text."""

import msgspec
import pytest

from gwd.content_log import content
from gwd.content_log.content import content_of, decode, encode
from gwd.core.events import (
    Embedded,
    Event,
    Finished,
    PartDelta,
    PartEnded,
    PartStarted,
    Started,
)
from gwd.core.personal_data import RULES, Redactor
from gwd.core.request import (
    Embed,
    Generate,
    Message,
    ReasoningPart,
    Request,
    Sender,
    TextPart,
    ToolCallPart,
)

ALL = Redactor(RULES)


def request(*parts: object, **fields: object) -> Request:
    message = {"role": "user", "parts": parts}
    return Request(
        dialect="chat_completions",
        family="openai_chat",
        models=("demo/chat",),
        body=Generate(messages=(Message(**message),)),  # type: ignore[arg-type]
        sender=Sender(user_id="ada"),
        **fields,  # type: ignore[arg-type]
    )


def parts_of(asked: Request) -> list[dict[str, object]]:
    stored = content_of(asked, [], ALL)
    parts: list[dict[str, object]] = stored.request["body"]["messages"][0]["parts"]
    return parts


def test_what_is_stored_comes_back_as_it_was() -> None:
    stored = content_of(request(TextPart(text="hello"), extras={"n": 1}), [], ALL)
    assert decode(encode(stored)) == stored
    assert stored.request == {
        "dialect": "chat_completions",
        "models": ["demo/chat"],
        "body": {
            "type": "generate",
            "messages": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}],
        },
        "extras": {"n": 1},
    }
    assert (stored.answer, stored.cut) == (None, ())


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many characters are stored, fewer than are outside of tests."""
    monkeypatch.setattr(content, "MAX_CHARACTERS", 20_000)
    return 20_000


@pytest.mark.parametrize("piece", ["word ", "x", "é", "\U0001f600 "])
def test_a_long_text_is_cut_and_what_follows_is_left_out(little_room: int, piece: str) -> None:
    long = piece * (3 * little_room // len(piece))
    long = "- " + long  # no run of letters and digits alone
    stored = content_of(request(TextPart(text=long), TextPart(text="after")), [], ALL)
    assert stored.cut == ("request",)
    (kept,) = stored.request["body"]["messages"][0]["parts"]
    assert kept["text"] == long[: len(kept["text"])]
    assert little_room - 1_000 < len(kept["text"]) <= little_room


def test_what_is_cut_off_was_hidden_before(little_room: int) -> None:
    """A number of which the cut would leave half."""
    card = "4111 1111 1111 1111"
    for before in range(little_room - 160, little_room - 100, 7):
        stored = content_of(request(TextPart(text="- " * (before // 2) + card)), [], ALL)
        assert "4111" not in encode(stored).decode()


def test_many_small_things_are_bounded_too(little_room: int) -> None:
    stored = content_of(request(extras={"many": [{}] * 100_000}), [], ALL)
    assert stored.cut == ("request",)
    assert len(encode(stored)) < 2 * little_room


def test_bytes_written_as_text_are_told_and_not_stored() -> None:
    sound = "QUJD" * 1_000
    shown = content_of(
        request(extras={"sound": sound, "url": f"data:audio/mp3;base64,{sound}"}), [], ALL
    )
    assert shown.request["extras"] == {
        "sound": "[4000 characters]",
        "url": "[audio/mp3, 3000 bytes]",
    }


def test_what_only_its_vendor_can_read_is_left_out() -> None:
    parts = parts_of(
        request(ReasoningPart(text="so", signature="sig-canary", redacted="red-canary"))
    )
    assert parts == [{"type": "reasoning", "text": "so"}]


def test_arguments_are_hidden_unescaped_and_stay_as_they_were_without() -> None:
    plain = '{ "at" :  1.50e1 }'
    kept, hidden = parts_of(
        request(
            ToolCallPart(call_id="1", name="look", arguments=plain),
            ToolCallPart(call_id="2", name="look", arguments='["ada\\u0040example.com"]'),
        )
    )
    assert kept["arguments"] == plain
    assert hidden["arguments"] == '["[email]"]'


def test_tokens_are_counted_and_vectors_too() -> None:
    asked = msgspec.structs.replace(request(), body=Embed(inputs=("ada@example.com", (1, 2, 3))))
    events: list[Event] = [Started(), Embedded(((0.5,), (0.25,))), Finished("stop")]
    stored = content_of(asked, events, ALL)
    assert stored.request["body"]["inputs"] == ["[email]", "[3 tokens]"]
    assert stored.answer == {"finish_reason": "stop", "embeddings": 2}


def test_an_answer_is_stored_from_every_point_at_which_it_may_break_off() -> None:
    events: list[Event] = [
        Started(),
        PartStarted(0, "reasoning"),
        PartDelta(0, "hm "),
        PartEnded(0, "signature"),
        PartStarted(1, "text"),
        PartDelta(1, "ada@exam"),
        PartDelta(1, "ple.com"),
        PartEnded(1),
        PartStarted(2, "tool_call", "c", "look"),
        PartDelta(2, '{"a": 1}'),
        PartEnded(2),
        Finished("tool_calls"),
    ]
    answers = [content_of(request(), events[:end], ALL).answer for end in range(len(events) + 1)]
    assert not any(answers[:2])
    assert all(answers[2:])
    assert answers[-1] == {
        "parts": [
            {"type": "reasoning", "text": "hm "},
            {"type": "text", "text": "[email]"},
            {"type": "tool_call", "call_id": "c", "name": "look", "arguments": '{"a": 1}'},
        ],
        "finish_reason": "tool_calls",
    }
