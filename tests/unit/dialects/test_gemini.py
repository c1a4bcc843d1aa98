"""Google's dialect piece by piece: names in two forms, schemas, signatures, ids, and bodies that nobody thought of."""

import base64
import contextlib
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.cost import Cost
from gwd.core.errors import InvalidRequest, UpstreamFailed
from gwd.core.events import (
    Completion,
    Event,
    Finished,
    PartDelta,
    PartEnded,
    PartStarted,
    Settled,
    Started,
    collect,
)
from gwd.core.extras import SEARCHES
from gwd.core.request import Generate, ReasoningPart, Request, TextPart, ToolCallPart
from gwd.core.usage import Usage
from gwd.dialects.base import Reply
from gwd.dialects.gemini import DIALECT
from gwd.dialects.gemini.casing import normal
from gwd.dialects.gemini.provenance import Signed, shown, signed_by
from gwd.dialects.gemini.schemas import json_schema
from gwd.pipeline.dispatch.priced_extras import with_sold_extras
from gwd.pricing.extras import sell
from gwd.vendors import anthropic_messages, gemini, openai_chat, openai_responses
from tests.golden import golden

AT = DIALECT.at("test/model", "generateContent")
FULL = (Path(golden.__file__).parent / "requests" / "gemini" / "full.json").read_bytes()
REPLAY = (Path(golden.__file__).parent / "requests" / "gemini" / "tool_result.json").read_bytes()
ADAPTERS = (
    openai_chat.ADAPTER,
    anthropic_messages.ADAPTER,
    openai_responses.ADAPTER,
    gemini.ADAPTER,
)
REPLY = Reply(generation_id="gen-1", created_s=0, model="test/model", vendor="Test")
SETTLED = Settled(Usage(input=3, output=2), Cost(total_nano=5), None)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def parsed(**body: Any) -> Request:
    full = {"contents": [{"parts": [{"text": "hi"}]}], **body}
    return AT.parse(msgspec.json.encode(full), {})


def generate(**body: Any) -> Generate:
    found = parsed(**body).body
    assert isinstance(found, Generate)
    return found


def test_names_are_read_in_both_forms_and_the_clients_own_are_left_alone():
    given_ = {
        "generation_config": {"top_p": 1, "stop_sequences": "x"},
        "contents": {"parts": {"function_call": {"args": {"a_b": {"c_d": 1}}}}},
        "labels": {"my_team": "x"},
        "tools": {"function_declarations": [{"parameters": {"properties": {"a_b": {}}}}]},
    }
    assert normal(given_) == {
        "generationConfig": {"topP": 1, "stopSequences": ["x"]},
        "contents": [{"parts": [{"functionCall": {"args": {"a_b": {"c_d": 1}}}}]}],
        "labels": {"my_team": "x"},
        "tools": [{"functionDeclarations": [{"parameters": {"properties": {"a_b": {}}}}]}],
    }


def test_a_number_may_be_a_text_as_in_all_of_googles_json():
    config = {
        "maxOutputTokens": "5",
        "temperature": "0.5",
        "thinkingConfig": {"thinkingBudget": "0"},
    }
    read = generate(generationConfig=config)
    assert (read.max_output_tokens, read.sampling.temperature) == (5, 0.5)
    assert read.reasoning is not None
    assert read.reasoning.enabled is False
    for text in ("many", "5.5", "0", ""):
        with pytest.raises(InvalidRequest) as refused:
            parsed(generationConfig={"maxOutputTokens": text})
        assert refused.value.param == "generationConfig.maxOutputTokens"


def test_a_schema_of_openapis_form_is_json_schema_in_the_order_that_is_asked_for():
    schema = {
        "type": "OBJECT",
        "properties": {
            "b_c": {"type": "STRING", "nullable": True, "max_length": "9"},
            "a": {"type": "ARRAY", "items": {"any_of": [{"type": "INTEGER"}]}, "min_items": "1"},
        },
        "property_ordering": ["a", "b_c"],
    }
    found = json_schema(schema)
    assert found == {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"anyOf": [{"type": "integer"}]}, "minItems": 1},
            "b_c": {"type": ["string", "null"], "maxLength": 9},
        },
    }
    assert list(found["properties"]) == ["a", "b_c"]


@pytest.mark.parametrize(
    "signed",
    [
        Signed(value="QUJD"),
        Signed(value="sig:with:colons", format="anthropic-claude-v1", kind="t"),
        Signed(value="data", format="anthropic-claude-v1", kind="r"),
        Signed(value="gAAA", format="openai-responses-v1", kind="s", item_id="rs_1"),
    ],
    ids=lambda each: f"{each.format}-{each.kind}",
)
def test_a_signature_comes_back_as_whose_it_is_in_either_alphabet(signed: Signed):
    sent = shown(signed)
    base64.b64decode(sent, validate=True)
    assert signed_by(sent) == signed
    assert signed_by(sent.translate(str.maketrans("+/", "-_")).rstrip("=")) == (
        signed if signed.format != "google-gemini-v1" else Signed(value="QUJD")
    )


def test_what_no_client_sends_is_a_signature_of_googles_own():
    assert signed_by("§ not base64 §") == Signed(value="§ not base64 §")


def test_chunks_of_a_stream_that_come_back_are_one_turn():
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"text": "Hm", "thought": True}]},
        {"role": "model", "parts": [{"text": ", so", "thought": True}]},
        {
            "role": "model",
            "parts": [
                {
                    "text": "",
                    "thought": True,
                    "thoughtSignature": shown(
                        Signed(value="s", format="anthropic-claude-v1", kind="t")
                    ),
                }
            ],
        },
        {"role": "model", "parts": [{"text": "Hel"}]},
        {"role": "model", "parts": [{"text": "lo"}]},
        {"role": "model", "parts": [{"text": ""}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
    ]
    [_, turn] = generate(contents=contents).messages
    assert turn.parts == (
        ReasoningPart(text="Hm, so", signature="s", format="anthropic-claude-v1"),
        TextPart(text="Hello"),
        ToolCallPart(call_id="call_7_0", name="f", arguments="{}"),
    )


def test_a_result_belongs_to_the_call_of_its_id_or_the_earliest_of_its_name():
    def call(name: str, **more: str) -> dict[str, Any]:
        return {"functionCall": {"name": name, **more}}

    def result(name: str, value: str, **more: str) -> dict[str, Any]:
        return {"functionResponse": {"name": name, "response": {"output": value}, **more}}

    contents = [
        {"role": "model", "parts": [call("f"), call("f", id="x"), call("g")]},
        {"parts": [result("f", "2", id="x"), result("g", "3"), result("f", "1")]},
        {"parts": [result("h", "4")]},
    ]
    messages = generate(contents=contents).messages
    ids = [part.call_id for part in messages[0].parts if isinstance(part, ToolCallPart)]
    found = {
        getattr(part, "call_id", None): part.parts[0].text  # type: ignore[union-attr]
        for message in messages[1:]
        for part in message.parts
    }
    assert [found[call_id] for call_id in ids] == ["1", "2", "3"]
    assert found["call_2_0"] == "4"


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        ({}, None),
        ({"includeThoughts": False}, None),
        ({"thinkingBudget": 0, "includeThoughts": True}, {"enabled": False}),
        ({"thinkingBudget": -1}, {"enabled": True, "adaptive": True, "exclude": True}),
        ({"thinkingBudget": 99, "includeThoughts": True}, {"enabled": True, "max_tokens": 99}),
        ({"thinkingLevel": "high"}, {"effort": "high", "exclude": True}),
        ({"includeThoughts": True}, {"enabled": True, "adaptive": True}),
    ],
    ids=str,
)
def test_thinking_is_read(thinking: dict[str, Any], expected: dict[str, Any] | None):
    found = generate(generationConfig={"thinkingConfig": thinking}).reasoning
    assert (None if found is None else msgspec.to_builtins(found)) == expected


@pytest.mark.parametrize(
    ("finished", "word"),
    [
        (Finished("stop"), "STOP"),
        (Finished("tool_calls"), "STOP"),
        (Finished("length"), "MAX_TOKENS"),
        (Finished("content_filter"), "SAFETY"),
        (Finished("content_filter", upstream_reason="RECITATION"), "RECITATION"),
        (Finished("content_filter", upstream_reason="refusal"), "SAFETY"),
        (Finished(None), "OTHER"),
    ],
    ids=str,
)
def test_every_end_has_googles_word(finished: Finished, word: str):
    body = msgspec.json.decode(_whole(finished))
    assert body["candidates"][0]["finishReason"] == word


def test_an_answer_that_ended_in_an_error_is_one():
    with pytest.raises(UpstreamFailed):
        _whole(Finished("error", upstream_reason="MALFORMED_FUNCTION_CALL"))


def test_an_array_stays_whole_while_it_is_idle():
    renderer = DIALECT.at("m", "streamGenerateContent").renderer(parsed(), REPLY)
    events: list[Event] = [
        PartStarted(0, "text"),
        PartDelta(0, "Hi"),
        PartEnded(0),
        Finished("stop"),
        SETTLED,
    ]
    body = renderer.idle()
    for event in events:
        body += renderer.feed([event]) + (b"" if event is SETTLED else renderer.idle())
    texts = [
        part["text"]
        for chunk in msgspec.json.decode(body)
        for part in chunk["candidates"][0]["content"]["parts"]
    ]
    assert texts == ["Hi", ""]


@given(st.integers(0, 2**32), json_values)
def test_a_body_that_nobody_thought_of_is_read_or_refused_at_every_format(seed: int, value: Any):
    chance = random.Random(seed)
    body = msgspec.json.decode(chance.choice((FULL, REPLAY)))
    replace_somewhere(body, value, chance)
    try:
        request = AT.parse(msgspec.json.encode(body), {})
    except InvalidRequest:
        return
    for adapter in ADAPTERS:
        with contextlib.suppress(InvalidRequest):
            adapter.build(request, golden.target(adapter.format.name))


@given(json_values)
def test_a_body_of_any_kind_is_read_or_refused(value: Any):
    for method in ("generateContent", "embedContent", "batchEmbedContents"):
        with contextlib.suppress(InvalidRequest):
            DIALECT.at("m", method).parse(msgspec.json.encode(value), {})
    with contextlib.suppress(InvalidRequest):
        DIALECT.at("m", "countTokens").parse_count(msgspec.json.encode(value), {})


def replace_somewhere(body: Any, value: Any, chance: random.Random) -> None:
    """Put a value in some place of the body, or take away what is there."""
    place = body
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = chance.choice(keys)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.2:
            break
        place = inner
    if chance.random() < 0.2:
        del place[key]
    else:
        place[key] = value


def _whole(finished: Finished) -> bytes:
    events: list[Event] = [
        Started(),
        PartStarted(0, "text"),
        PartDelta(0, "Hi"),
        PartEnded(0),
        finished,
    ]
    completion: Completion = collect(events)
    return DIALECT.renderer(parsed(), REPLY).whole(completion, SETTLED)


def test_a_search_of_googles_is_sent_where_it_has_a_price_and_only_there():
    request = parsed(tools=[{"googleSearch": {}}, {"codeExecution": {}}])
    to = golden.target("gemini")
    priced = msgspec.structs.replace(to.price, web_search_nano=14_000_000)
    sold = sell(request, to.format, priced)
    assert (sold.tools, sold.searches) == (("google_search",), SEARCHES)
    assert sold.refused_tools == ("code_execution",)
    call = gemini.ADAPTER.build(
        with_sold_extras(request, sold), msgspec.structs.replace(to, price=priced, sold=sold)
    )
    body = msgspec.json.decode(call.body)
    assert body["tools"] == [{"googleSearch": {}}]
    assert set(body) == {"contents", "tools"}
    for format_, price in (("gemini", to.price), ("openai_chat", priced)):
        unsold = sell(request, golden.target(format_).format, price)
        assert unsold.tools == ()
        assert set(unsold.refused_tools) == {"google_search", "code_execution"}


def test_a_tier_of_googles_is_priced_by_its_word():
    request = parsed(serviceTier="SERVICE_TIER_PRIORITY")
    to = golden.target("gemini")
    priced = msgspec.structs.replace(to.price, modifiers={"service_tier": {"priority": 2_000_000}})
    sold = sell(request, to.format, priced)
    assert sold.values == {"service_tier": "priority"}
    call = gemini.ADAPTER.build(request, msgspec.structs.replace(to, price=priced, sold=sold))
    assert msgspec.json.decode(call.body)["serviceTier"] == "priority"
    assert sell(request, to.format, to.price).refused == ("service_tier",)
