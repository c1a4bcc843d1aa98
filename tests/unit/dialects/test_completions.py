"""Legacy completions: prompts in, one text out."""

from typing import Any

import msgspec
import pytest

from gwd.core.cost import Cost
from gwd.core.errors import InvalidRequest
from gwd.core.events import (
    Event,
    Finished,
    PartDelta,
    PartEnded,
    PartStarted,
    Settled,
    Started,
    collect,
)
from gwd.core.request import Generate, Message, Request, TextPart
from gwd.core.sse import SseSplitter
from gwd.core.usage import Usage
from gwd.dialects.base import Reply
from gwd.dialects.completions import DIALECT

REPLY = Reply(generation_id="gen-1", created_s=1, model="test/model", vendor="Test")


def _parse(**body: Any) -> Request:
    return DIALECT.parse(msgspec.json.encode({"model": "test/model", **body}), {})


@pytest.mark.parametrize(
    ("prompt", "text"),
    [("Say A.", "Say A."), (["Say A."], "Say A."), (["Say A.", "Say B."], "Say A.\nSay B.")],
)
def test_prompts_become_one_user_message(prompt: object, text: str):
    generate = _parse(prompt=prompt).body
    assert isinstance(generate, Generate)
    assert generate.messages == (Message(role="user", parts=(TextPart(text=text),)),)


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "missing_parameter", "prompt"),
        ({"prompt": []}, "missing_parameter", "prompt"),
        ({"prompt": [1, 2]}, "unsupported_input", "prompt"),
        ({"prompt": [[1], [2]]}, "unsupported_input", "prompt"),
        ({"prompt": ["a", None]}, "invalid_value", "prompt[1]"),
        ({"prompt": {"a": 1}}, "invalid_value", "prompt"),
        ({"prompt": "a", "n": 3}, "unsupported_parameter", "n"),
    ],
)
def test_a_bad_prompt_is_named(body: dict[str, Any], code: str, param: str):
    with pytest.raises(InvalidRequest) as caught:
        _parse(**body)
    assert (caught.value.code, caught.value.param) == (code, param)


def test_what_a_chat_model_cannot_do_is_left_out():
    request = _parse(prompt="a", suffix="b", echo=True, best_of=2, logprobs=3)
    assert request.extras is None
    assert request.sent_parameters == frozenset()


def test_an_answer_that_ended_in_an_error_says_so_streamed_and_whole():
    events: list[Event] = [
        Started(),
        PartStarted(0, "text"),
        PartDelta(0, "A"),
        PartEnded(0),
        Finished("error", upstream_reason="OTHER"),
    ]
    settled = Settled(Usage(input=1, output=1), Cost(), None)
    renderer = DIALECT.renderer(_parse(prompt="x"), REPLY)
    choice = msgspec.json.decode(renderer.whole(collect(events), settled))["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == ("A", "error")
    assert "OTHER" in choice["error"]["message"]
    frames = [frame.data for frame in SseSplitter().feed(renderer.feed([*events, settled]))]
    *_, chunk, bare = [msgspec.json.decode(frame) for frame in frames[:-1]]
    assert frames[-1] == b"[DONE]"
    assert chunk["choices"][0]["finish_reason"] == "error"
    assert chunk["choices"][0]["native_finish_reason"] == "OTHER"
    assert (chunk["usage"]["total_tokens"], bare["error"]["param"]) == (2, None)
    assert chunk["error"]["message"] == bare["error"]["message"] == choice["error"]["message"]


def test_a_tool_turn_is_a_stop_here():
    events: list[Event] = [
        Started(),
        PartStarted(0, "text"),
        PartDelta(0, "A"),
        PartEnded(0),
        Finished("tool_calls", upstream_reason="tool_calls"),
    ]
    settled = Settled(Usage(input=1, output=1), Cost(), msgspec.Raw(b'{"a":1}'))
    renderer = DIALECT.renderer(_parse(prompt="x"), REPLY)
    body = msgspec.json.decode(renderer.whole(collect(events), settled))
    assert (body["object"], body["choices"][0]["text"]) == ("text_completion", "A")
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["gateway_metadata"] == {"a": 1}
    stream = renderer.feed([*events, settled]).decode()
    assert stream.count('"object":"text_completion"') == 3
    assert stream.endswith("data: [DONE]\n\n")
    assert '"choices":[],"usage"' in stream
