"""What a server puts on its calls for itself comes back to it, and to nobody else."""

from typing import Any

import msgspec
import pytest

from gwd.core.events import PartEnded, PartStarted, collect
from gwd.core.request import Request, ToolCallPart
from gwd.dialects.messages import DIALECT as MESSAGES
from gwd.vendors.openai_chat import ADAPTER, signatures
from tests.unit.vendors.builders import HI, chat, chunk, sent, streamed, target

SIGNED = {"google": {"thought_signature": "SIG"}}
ORIGINS = {"extra_content": SIGNED, "origin": "host"}


def _call(call_id: str, **more: Any) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": "f", "arguments": "{}"}, **more}


def _answered(*calls: dict[str, Any]) -> list[Any]:
    """The parts of a whole answer with these calls."""
    answer = {"choices": [{"message": {"tool_calls": list(calls)}}]}
    return list(collect(ADAPTER.decode(msgspec.json.encode(answer), chat(), target())).parts)


def _chat_turn(*calls: dict[str, Any]) -> Request:
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "r"} for call in calls]
    return chat(messages=[HI, {"role": "assistant", "tool_calls": list(calls)}, *results])


def _messages_turn(*call_ids: str) -> Request:
    uses = [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in call_ids]
    results = [{"type": "tool_result", "tool_use_id": one, "content": "r"} for one in call_ids]
    messages = [
        HI,
        {"role": "assistant", "content": uses},
        {"role": "user", "content": results},
    ]
    body = {"model": "test/model", "max_tokens": 9, "messages": messages}
    return MESSAGES.parse(msgspec.json.encode(body), {})


def _sent_contents(request: Request, provider: str = "host") -> list[Any]:
    body = sent(request, target(provider=provider))
    return [call.get("extra_content") for call in body["messages"][1]["tool_calls"]]


def test_it_is_read_from_a_whole_answer_and_from_a_stream():
    (part,) = _answered(_call("x", extra_content=SIGNED))
    assert part.extras == ORIGINS
    piece = chunk(tool_calls=[_call("x", index=0, extra_content=SIGNED)])
    events = streamed(piece, chunk("tool_calls"), b"[DONE]")
    assert [e.extras for e in events if isinstance(e, PartStarted)] == [ORIGINS]
    assert collect(events).parts == (part,)


def test_one_that_comes_behind_the_call_ends_it():
    late = chunk(tool_calls=[{"index": 0, "extra_content": SIGNED}])
    events = streamed(chunk(tool_calls=[_call("x", index=0)]), late, chunk("stop"), b"[DONE]")
    assert [e.extras for e in events if isinstance(e, PartStarted | PartEnded)] == [None, ORIGINS]
    (part,) = collect(events).parts
    assert isinstance(part, ToolCallPart)
    assert part.extras == ORIGINS


def test_what_a_client_sends_goes_upstream():
    assert _sent_contents(_chat_turn(_call("x", extra_content=SIGNED), _call("y"))) == [
        SIGNED,
        None,
    ]


@pytest.mark.parametrize("lost", [_chat_turn(_call("x"), _call("y")), _messages_turn("x", "y")])
def test_what_a_client_lost_is_put_back_for_the_provider_that_wrote_it(lost: Request):
    memory = signatures.remember(_answered(_call("x"), _call("y", extra_content=SIGNED)))
    assert list(memory) == ["x"]
    assert signatures.missing(lost) == ("x",)
    repaired = signatures.reattach(lost, memory)
    assert _sent_contents(repaired) == [None, SIGNED]
    assert _sent_contents(repaired, provider="another") == [None, None]
    assert signatures.missing(repaired) == ()
    assert _sent_contents(ADAPTER.without_signatures(repaired)) == [None, None]


def test_what_a_client_sends_wins():
    kept = _chat_turn(_call("x", extra_content={"mine": 1}))
    memory = signatures.remember(_answered(_call("x", extra_content=SIGNED)))
    assert signatures.missing(kept) == ()
    assert _sent_contents(signatures.reattach(kept, memory)) == [{"mine": 1}]


def test_nothing_is_remembered_of_calls_that_carry_nothing():
    assert signatures.remember(_answered(_call("x"))) == {}
    assert signatures.remember([]) == {}


@pytest.mark.parametrize("blob", [b"c2ln", b"[]", b"{}", b"\xff", b'{"origin":1,"calls":{}}'])
def test_blobs_of_other_formats_are_ignored(blob: bytes):
    lost = _chat_turn(_call("x"))
    assert signatures.reattach(lost, {"x": blob}) == lost
