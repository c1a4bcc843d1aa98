"""What a chat client receives, streamed and whole."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.cost import Cost
from gwd.core.errors import Fault, InternalError, UpstreamFailed
from gwd.core.events import (
    Event,
    Failed,
    Finished,
    PartDelta,
    PartEnded,
    PartStarted,
    Settled,
    Started,
    check_grammar,
    collect,
)
from gwd.core.request import Generate, Message, Reasoning, Request, TextPart, Tool
from gwd.core.sse import COMMENT, SseSplitter
from gwd.core.usage import Usage
from gwd.dialects.base import Reply
from gwd.dialects.chat_completions import DIALECT

REPLY = Reply(generation_id="gen-1", created_s=1, model="test/model", vendor="Test")
USAGE = Usage(input=6, cache_read=3, cache_write_5m=1, output=5, reasoning=2)
COST = Cost(
    prompt_nano=100, cache_read_nano=20, completion_nano=300, reasoning_nano=30, total_nano=450
)
SETTLED = Settled(USAGE, COST, None)
RECEIPT = msgspec.Raw(b'{"generation_id":"gen-1"}')
DONE = Finished("stop", upstream_reason="stop")
TEXT: list[Event] = [Started(), PartStarted(0, "text"), PartDelta(0, "Hi"), PartEnded(0)]


def _request(**changes: Any) -> Request:
    generate = Generate(
        messages=(Message(role="user", parts=(TextPart(text="x"),)),),
        tools=(Tool(name="shell", custom=True), Tool(name="f")),
        reasoning=changes.pop("reasoning", None),
    )
    base = Request(
        dialect="chat_completions", family="openai_chat", models=("test/model",), body=generate
    )
    return msgspec.structs.replace(base, **changes)


def _chunks(events: list[Event], request: Request | None = None) -> list[dict[str, Any]]:
    """The JSON of every data line but the end mark, which must come last."""
    check_grammar(events)
    renderer = DIALECT.renderer(request or _request(), REPLY)
    data = b"".join(renderer.feed([event]) for event in events)
    assert renderer_at_once(events, request) == data
    frames = [frame.data for frame in SseSplitter().feed(data)]
    assert frames[-1] == b"[DONE]"
    return [msgspec.json.decode(frame) for frame in frames[:-1]]


def renderer_at_once(events: list[Event], request: Request | None) -> bytes:
    return DIALECT.renderer(request or _request(), REPLY).feed(events)


def _whole(events: list[Event], settled: Settled = SETTLED, request: Request | None = None) -> Any:
    renderer = DIALECT.renderer(request or _request(), REPLY)
    return msgspec.json.decode(renderer.whole(collect(events), settled))


def _joined(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that a client puts together from the deltas: strings are joined, calls by index."""
    message: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    details: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            for name, value in choice["delta"].items():
                if name == "tool_calls":
                    for call in value:
                        _join(calls.setdefault(call["index"], {}), call)
                elif name == "reasoning_details":
                    for detail in value:
                        _join(details.setdefault(detail["index"], {}), detail)
                elif isinstance(value, str):
                    message[name] = message.get(name, "") + value
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    if details:
        message["reasoning_details"] = [details[index] for index in sorted(details)]
    return message


def _join(into: dict[str, Any], piece: dict[str, Any]) -> None:
    fixed = ("index", "id", "type", "format", "name")
    for name, value in piece.items():
        if isinstance(value, dict):
            _join(into.setdefault(name, {}), value)
        elif isinstance(value, str) and name not in fixed:
            into[name] = (into.get(name) or "") + value
        elif value is not None or name not in into:
            into[name] = value


def test_the_role_comes_once_and_first():
    chunks = _chunks([*TEXT, DONE, SETTLED])
    roles = [c["delta"].get("role") for chunk in chunks for c in chunk["choices"]]
    assert roles == ["assistant", *[None] * (len(roles) - 1)]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}


def test_all_chunks_share_their_envelope():
    started = Started(extras={"system_fingerprint": "fp", "service_tier": "flex"})
    for chunk in _chunks([started, *TEXT[1:], DONE, SETTLED]):
        assert chunk["id"] == "gen-1"
        assert chunk["object"] == "chat.completion.chunk"
        assert (chunk["model"], chunk["provider"]) == ("test/model", "Test")
        assert (chunk["system_fingerprint"], chunk["service_tier"]) == ("fp", "flex")


def test_what_a_vendor_found_stands_beside_the_choice_that_ends_the_answer():
    finished = Finished("stop", extras={"envelope": {"citations": ["https://x.example"]}})
    *others, last, usage = _chunks([*TEXT, finished, SETTLED])
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["citations"] == ["https://x.example"]
    assert not [chunk for chunk in [*others, usage] if "citations" in chunk]
    assert _whole([*TEXT, finished])["citations"] == ["https://x.example"]


@pytest.mark.parametrize("name", ["f", "shell"])
def test_what_a_vendor_put_on_a_call_stands_on_the_call(name: str):
    own = {"extra_content": {"google": {"thought_signature": "SIG"}}}
    held = {**own, "origin": "host"}
    early = (PartStarted(0, "tool_call", call_id="c", name=name, extras=held), PartEnded(0))
    late = (PartStarted(0, "tool_call", call_id="c", name=name), PartEnded(0, extras=held))
    for opened, ended in (early, late):
        events: list[Event] = [Started(), opened, ended, Finished("tool_calls")]
        chunks = _chunks([*events, SETTLED])
        pieces = [
            call
            for chunk in chunks
            for choice in chunk["choices"]
            for call in choice["delta"].get("tool_calls", ())
        ]
        (shown,) = [piece for piece in pieces if "extra_content" in piece]
        assert {"index": 0, **own}.items() <= shown.items()
        (call,) = _whole(events)["choices"][0]["message"]["tool_calls"]
        assert call["extra_content"] == own["extra_content"]
        assert "host" not in str(pieces) + str(call)


def test_usage_comes_last_alone_and_only_once():
    *others, last = _chunks([*TEXT, DONE, SETTLED])
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    assert all("usage" not in chunk for chunk in others)
    assert all("error" not in chunk for chunk in [*others, last])


def test_nothing_closes_before_it_is_settled():
    renderer = DIALECT.renderer(_request(), REPLY)
    assert b'finish_reason":"' not in renderer.feed([*TEXT, DONE])
    assert b"[DONE]" in renderer.feed([SETTLED])


def test_cost_is_shown_only_where_it_was_asked_for():
    request = _request(include_cost=True)
    usage = _chunks([*TEXT, DONE, SETTLED], request)[-1]["usage"]
    assert usage["cost"] == 4.5e-7
    assert usage["is_byok"] is False
    assert usage["cost_details"] == {
        "upstream_inference_cost": None,
        "upstream_inference_prompt_cost": 1.2e-7,
        "upstream_inference_completions_cost": 3.3e-7,
    }
    assert _whole([*TEXT, DONE], request=request)["usage"] == usage
    assert "cost" not in _whole([*TEXT, DONE])["usage"]


def test_on_the_owners_own_key_the_cost_is_the_fee_and_the_list_price_stands_beside_it():
    cost = Cost(
        prompt_nano=100, completion_nano=300, platform_fee_nano=20, total_nano=20, byok=True
    )
    request = _request(include_cost=True)
    usage = _whole([*TEXT, DONE], Settled(USAGE, cost, None), request)["usage"]
    assert (usage["cost"], usage["is_byok"]) == (2e-8, True)
    assert usage["cost_details"]["upstream_inference_cost"] == 4e-7


def test_the_receipt_is_on_the_usage_chunk_and_at_the_top_of_a_whole_answer():
    settled = Settled(USAGE, COST, RECEIPT)
    chunks = _chunks([*TEXT, DONE, settled])
    assert chunks[-1]["gateway_metadata"] == {"generation_id": "gen-1"}
    assert _whole([*TEXT, DONE], settled)["gateway_metadata"] == {"generation_id": "gen-1"}


def test_a_broken_stream_ends_in_three_parts():
    error = UpstreamFailed("it broke", metadata={"provider_code": "x"})
    failed = Failed(Fault(reason="upstream_error", message="it broke"), error)
    events: list[Event] = [Started(), PartStarted(0, "text"), PartDelta(0, "Ha"), failed]
    *_, chunk, bare = _chunks([*events, Settled(USAGE, COST, RECEIPT)])
    assert chunk["choices"] == [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]
    assert chunk["usage"]["total_tokens"] == 17
    assert (chunk["error"]["code"], chunk["error"]["message"]) == ("upstream_error", "it broke")
    assert chunk["error"]["metadata"]["provider_code"] == "x"
    assert chunk["error"]["metadata"]["gateway_metadata"] == {"generation_id": "gen-1"}
    assert bare == {
        "error": {
            "code": "upstream_error",
            "type": "upstream_error",
            "message": "it broke",
            "param": None,
        }
    }


def test_a_stream_that_breaks_before_any_output_still_ends_in_three_parts():
    chunks = _chunks([Failed(Fault(reason="network", message="gone")), SETTLED])
    assert chunks[-2]["choices"][0]["finish_reason"] == "error"
    assert chunks[-1]["error"]["param"] is None


def test_an_error_of_our_own_says_nothing_of_its_cause():
    error = InternalError("KeyError: 'secret_table'")
    chunks = _chunks([Failed(Fault(reason="upstream_error", message="x"), error), SETTLED])
    assert "secret_table" not in str(chunks)
    assert "gen-1" in chunks[-1]["error"]["message"]


def test_a_call_without_arguments_ends_as_an_empty_object():
    call: list[Event] = [PartStarted(0, "tool_call", call_id="c", name="f"), PartEnded(0)]
    events = [Started(), *call, Finished("tool_calls")]
    expected = {"name": "f", "arguments": "{}"}
    assert _joined(_chunks([*events, SETTLED]))["tool_calls"][0]["function"] == expected
    message = _whole(events)["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == expected
    assert message["content"] is None


def test_a_custom_tools_input_is_its_free_text():
    events: list[Event] = [
        Started(),
        PartStarted(0, "tool_call", call_id="c", name="shell"),
        PartDelta(0, '{"input":"echo '),
        PartDelta(0, '\\"x\\""}'),
        PartEnded(0),
        Finished("tool_calls"),
    ]
    expected = {"name": "shell", "input": 'echo "x"'}
    (call,) = _joined(_chunks([*events, SETTLED]))["tool_calls"]
    assert (call["type"], call["custom"]) == ("custom", expected)
    (call,) = _whole(events)["choices"][0]["message"]["tool_calls"]
    assert (call["type"], call["custom"]) == ("custom", expected)


REASONING: list[Event] = [
    Started(),
    PartStarted(0, "reasoning", format="anthropic-claude-v1"),
    PartDelta(0, "h"),
    PartDelta(0, "m"),
    PartEnded(0, signature="sig"),
    PartStarted(1, "reasoning", format="anthropic-claude-v1", redacted="red"),
    PartEnded(1),
    PartStarted(2, "reasoning", format="openai-responses-v1", summary=True, item_id="rs"),
    PartDelta(2, "short"),
    PartEnded(2, signature="enc"),
    PartStarted(3, "tool_call", call_id="c", name="f", format="google-gemini-v1"),
    PartEnded(3, signature="gem"),
    Finished("tool_calls"),
]


def test_reasoning_is_the_same_streamed_and_whole():
    streamed = _joined(_chunks([*REASONING, SETTLED]))
    whole = _whole(REASONING)["choices"][0]["message"]
    assert streamed["reasoning"] == streamed["reasoning_content"] == whole["reasoning"] == "hmshort"
    assert streamed["reasoning_details"] == whole["reasoning_details"]
    assert [(d["type"], d["format"], d["index"]) for d in whole["reasoning_details"]] == [
        ("reasoning.text", "anthropic-claude-v1", 0),
        ("reasoning.encrypted", "anthropic-claude-v1", 1),
        ("reasoning.summary", "openai-responses-v1", 2),
        ("reasoning.encrypted", "openai-responses-v1", 3),
        ("reasoning.encrypted", "google-gemini-v1", 4),
    ]
    assert whole["reasoning_details"][0]["signature"] == "sig"


def test_what_a_client_is_shown_is_what_it_replays():
    message = _whole(REASONING)["choices"][0]["message"]
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}, message]}
    replayed = DIALECT.parse(msgspec.json.encode(body), {}).body
    assert isinstance(replayed, Generate)
    assert replayed.messages[1].parts == collect(REASONING).parts


def test_excluded_reasoning_is_not_shown_but_counted():
    request = _request(reasoning=Reasoning(exclude=True))
    chunks = _chunks([*REASONING, SETTLED], request)
    assert "reasoning" not in str([chunk["choices"] for chunk in chunks])
    message = _whole(REASONING, request=request)["choices"][0]["message"]
    assert not {"reasoning", "reasoning_content", "reasoning_details"} & message.keys()
    assert chunks[-1]["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2


def test_a_vendors_refusal_is_told_in_both_forms():
    finished = Finished("content_filter", upstream_reason="refusal", explanation="not that")
    events: list[Event] = [Started(), finished]
    assert _joined(_chunks([*events, SETTLED]))["refusal"] == "not that"
    choice = _whole(events)["choices"][0]
    assert (choice["finish_reason"], choice["message"]["refusal"]) == ("content_filter", "not that")
    assert choice["message"]["content"] == ""


def test_a_whole_answer_that_ended_in_an_error_says_so():
    choice = _whole([*TEXT, Finished("error", upstream_reason="OTHER")])["choices"][0]
    assert (choice["finish_reason"], choice["native_finish_reason"]) == ("error", "OTHER")
    assert choice["message"]["content"] == "Hi"
    assert choice["error"] == {
        "code": "upstream_error",
        "type": "upstream_error",
        "message": "the vendor ended its answer with `OTHER`; please try again",
    }


def test_a_stream_that_the_vendor_ended_in_error_ends_in_three_parts_too():
    ended = Finished("error", upstream_reason="OTHER")
    *_, chunk, bare = _chunks([*TEXT, ended, Settled(USAGE, COST, RECEIPT)])
    assert chunk["choices"][0]["finish_reason"] == "error"
    assert chunk["choices"][0]["native_finish_reason"] == "OTHER"
    assert chunk["usage"]["total_tokens"] == 17
    assert chunk["error"]["metadata"] == {"gateway_metadata": {"generation_id": "gen-1"}}
    assert "OTHER" in chunk["error"]["message"]
    assert bare["error"]["code"] == "upstream_error"


def test_log_probabilities_and_annotations_are_passed_on():
    events: list[Event] = [
        Started(),
        PartStarted(0, "text"),
        PartDelta(0, "H", extras={"logprobs": {"content": [{"token": "H"}], "refusal": None}}),
        PartDelta(0, "i", extras={"logprobs": {"content": [{"token": "i"}], "refusal": None}}),
        PartEnded(0, extras={"annotations": [{"type": "url_citation"}]}),
        DONE,
    ]
    choice = _whole(events)["choices"][0]
    assert choice["logprobs"] == {"content": [{"token": "H"}, {"token": "i"}], "refusal": None}
    assert choice["message"]["annotations"] == [{"type": "url_citation"}]
    chunks = _chunks([*events, SETTLED])
    assert chunks[1]["choices"][0]["logprobs"]["content"] == [{"token": "H"}]
    assert chunks[3]["choices"][0]["delta"]["annotations"] == [{"type": "url_citation"}]


@pytest.mark.parametrize("text", ["a\u2028b", "\x00", "data: [DONE]\n\n", '"}]}', "😀"])
def test_no_text_can_break_the_framing(text: str):
    events: list[Event] = [
        Started(),
        PartStarted(0, "text"),
        PartDelta(0, text),
        PartEnded(0),
        DONE,
    ]
    assert _joined(_chunks([*events, SETTLED]))["content"] == text


def test_a_silent_stream_is_kept_alive_by_a_comment():
    assert DIALECT.renderer(_request(), REPLY).idle() == COMMENT


part_texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=3)


@given(
    st.lists(
        st.tuples(st.sampled_from(("text", "reasoning", "tool_call", "refusal")), part_texts),
        max_size=5,
    )
)
def test_a_stream_adds_up_to_the_whole(parts: list[tuple[Any, list[str]]]):
    events: list[Event] = [Started()]
    for index, (kind, texts) in enumerate(parts):
        is_call = kind == "tool_call"
        events.append(
            PartStarted(
                index, kind, call_id=f"c{index}" if is_call else None, name="f" if is_call else None
            )
        )
        events += [PartDelta(index, text) for text in texts]
        events.append(PartEnded(index))
    events.append(DONE)
    streamed = _joined(_chunks([*events, SETTLED]))
    whole = _whole(events)["choices"][0]["message"]
    assert streamed.get("content", "") == (whole["content"] or "")
    assert streamed.get("reasoning", "") == whole.get("reasoning", "")
    assert streamed.get("refusal", "") == (whole["refusal"] or "")
    functions = [call["function"] for call in streamed.get("tool_calls", ())]
    assert functions == [call["function"] for call in whole.get("tool_calls", ())]
