"""What a chat client may send and what it is told otherwise."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.errors import InvalidRequest
from gwd.core.request import Generate, Reasoning, Request, TextPart, ToolCallPart, ToolResultPart
from gwd.dialects.chat_completions import DIALECT

HI = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f"}}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def _parse(headers: dict[str, str] | None = None, **body: Any) -> Request:
    full = {"model": "test/model", "messages": [HI], **body}
    return DIALECT.parse(msgspec.json.encode(full), headers or {})


def _generate(**body: Any) -> Generate:
    generate = _parse(**body).body
    assert isinstance(generate, Generate)
    return generate


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"messages": None}, "invalid_value", "messages"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": "hi"}, "invalid_value", "messages"),
        ({"messages": [{"content": "hi"}]}, "missing_parameter", "messages[0].role"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "missing_parameter", "messages[0].content"),
        (
            {"messages": [HI, {"role": "user", "content": 1}]},
            "invalid_value",
            "messages[1].content",
        ),
        (
            {"messages": [{"role": "tool", "content": "x"}]},
            "missing_parameter",
            "messages[0].tool_call_id",
        ),
        (
            {"messages": [{"role": "function", "name": "f", "content": "x"}]},
            "unsupported_parameter",
            "messages[0]",
        ),
        ({"n": 2}, "unsupported_parameter", "n"),
        ({"functions": [{"name": "f"}]}, "unsupported_parameter", "functions"),
        ({"function_call": "auto"}, "unsupported_parameter", "function_call"),
        ({"modalities": ["text", "audio"]}, "unsupported_parameter", "modalities"),
        ({"max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"max_tokens": 1.5}, "invalid_value", "max_tokens"),
        ({"max_tokens": True}, "invalid_value", "max_tokens"),
        ({"temperature": 3}, "invalid_value", "temperature"),
        ({"temperature": "hot"}, "invalid_value", "temperature"),
        ({"stop": [1]}, "invalid_value", "stop[0]"),
        ({"stream": "yes"}, "invalid_value", "stream"),
        ({"reasoning": {"effort": "huge"}}, "invalid_value", "reasoning.effort"),
        (
            {"reasoning": {"effort": "low"}, "reasoning_effort": "high"},
            "invalid_value",
            "reasoning_effort",
        ),
        ({"tools": [{"type": "web_search"}]}, "unsupported_tool", "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "missing_parameter", "tools[0].function"),
        (
            {"tools": [{"type": "function", "function": {"name": ""}}]},
            "invalid_value",
            "tools[0].function.name",
        ),
        ({"tools": [TOOL], "tool_choice": "maybe"}, "invalid_value", "tool_choice"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
            "invalid_value",
            "tool_choice.function.name",
        ),
        ({"response_format": {"type": "yaml"}}, "invalid_value", "response_format.type"),
        (
            {"response_format": {"type": "json_schema"}},
            "missing_parameter",
            "response_format.json_schema",
        ),
        ({"provider": {"sort": "beauty"}}, "invalid_value", "provider.sort"),
        ({"models": ["a", "b", "c", "d"]}, "invalid_value", "models"),
        ({"user": "u" * 257}, "invalid_value", "user"),
    ],
)
def test_a_bad_field_is_named(change: dict[str, Any], code: str, param: str):
    with pytest.raises(InvalidRequest) as caught:
        _parse(**change)
    assert (caught.value.code, caught.value.param) == (code, param)


@pytest.mark.parametrize(
    ("part", "code", "param"),
    [
        ({"type": "input_audio", "input_audio": {}}, "unsupported_content", "type"),
        ({"type": "video_url", "video_url": {"url": "x"}}, "unsupported_content", "type"),
        ({"type": "text"}, "missing_parameter", "text"),
        ({"type": "image_url"}, "missing_parameter", "image_url"),
        ({"type": "image_url", "image_url": {"url": "ftp://x"}}, "invalid_image", "image_url.url"),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}},
            "invalid_image",
            "image_url.url",
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png,abc"}},
            "invalid_image",
            "image_url.url",
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAAA"}},
            "invalid_image",
            "image_url.url",
        ),
        ({"type": "file", "file": {}}, "missing_parameter", "file.file_data"),
        ({"type": "file", "file": {"file_data": "abc"}}, "invalid_value", "file.file_data"),
        (
            {"type": "text", "text": "x", "cache_control": {"type": "for ever"}},
            "invalid_value",
            "cache_control.type",
        ),
    ],
)
def test_a_bad_part_is_named(part: dict[str, Any], code: str, param: str):
    with pytest.raises(InvalidRequest) as caught:
        _parse(messages=[{"role": "user", "content": [part]}])
    assert (caught.value.code, caught.value.param) == (code, f"messages[0].content[0].{param}")


@given(
    st.sampled_from(
        (
            "messages",
            "tools",
            "tool_choice",
            "response_format",
            "reasoning",
            "stop",
            "provider",
            "usage",
            "models",
            "max_tokens",
            "temperature",
            "logit_bias",
            "user",
            "modalities",
            "n",
        )
    ),
    json_values,
)
def test_any_value_in_any_field_is_a_request_or_a_400(field: str, value: Any):
    try:
        _parse(**{"tools": [TOOL], field: value})
    except InvalidRequest:
        return


@given(
    st.sampled_from(("role", "content", "tool_calls", "reasoning_details", "name", "refusal")),
    json_values,
)
def test_any_value_in_any_message_field_is_a_request_or_a_400(field: str, value: Any):
    try:
        _parse(messages=[{"role": "assistant", "content": "x", field: value}])
    except InvalidRequest:
        return


def test_nulls_are_as_good_as_absent():
    nulls = dict.fromkeys(
        (
            "stream",
            "max_tokens",
            "temperature",
            "stop",
            "tools",
            "tool_choice",
            "response_format",
            "reasoning",
            "provider",
            "usage",
            "user",
            "n",
            "functions",
            "logit_bias",
            "stream_options",
        )
    )
    plain, with_nulls = _parse(), _parse(**nulls)
    assert msgspec.structs.replace(with_nulls, body_bytes=plain.body_bytes) == plain


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"reasoning": {"effort": "low"}, "reasoning_effort": "low"}, Reasoning(effort="low")),
        ({"reasoning": {"enabled": True}}, Reasoning(enabled=True)),
        ({"include_reasoning": False}, Reasoning(exclude=True)),
        ({"reasoning": {}}, None),
        ({"include_reasoning": True}, None),
    ],
)
def test_reasoning_has_one_meaning_in_all_its_spellings(body: dict[str, Any], expected: Reasoning):
    assert _generate(**body).reasoning == expected


def test_hiding_reasoning_asks_nothing_of_the_model():
    assert _parse(reasoning={"exclude": True}).sent_parameters == frozenset()


def test_the_newer_cap_wins():
    assert _generate(max_tokens=10, max_completion_tokens=20).max_output_tokens == 20


def test_a_choice_among_no_tools_is_left_out():
    request = _parse(tools=[], tool_choice="auto", parallel_tool_calls=False)
    assert isinstance(request.body, Generate)
    assert request.body.tool_choice is None
    assert request.sent_parameters == frozenset()


def test_unknown_fields_are_kept_and_those_of_other_routers_are_not():
    request = _parse(brand_new=1, transforms=[], plugins=[{"id": "web"}], empty=None)
    assert request.extras == {"brand_new": 1}


def test_headers_tag_the_request_and_ask_for_the_receipt():
    request = _parse({"x-gw-metadata": "enabled", "x-gw-session-id": "s", "x-title": "app"})
    assert request.include_receipt
    assert (request.sender.session_id, request.sender.title) == ("s", "app")


def test_a_message_mark_goes_to_its_last_part():
    content = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    marked = {
        "role": "user",
        "content": content,
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
    }
    assert _generate(messages=[marked]).messages[0].parts == (
        TextPart(text="a"),
        TextPart(text="b", cache="1h"),
    )


def test_a_mark_inside_a_tool_message_marks_the_result():
    content = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]
    message = {"role": "tool", "tool_call_id": "c", "content": content}
    assert _generate(messages=[HI, message]).messages[1].parts == (
        ToolResultPart(call_id="c", parts=(TextPart(text="a"),), cache="5m"),
    )


def test_a_custom_call_travels_as_json_inside():
    call = {"id": "c", "type": "custom", "custom": {"name": "sh", "input": 'echo "x"'}}
    message = {"role": "assistant", "tool_calls": [call]}
    assert _generate(messages=[HI, message]).messages[1].parts == (
        ToolCallPart(call_id="c", name="sh", arguments='{"input":"echo \\"x\\""}'),
    )


@pytest.mark.parametrize("arguments", ["", "  ", None, {}])
def test_no_arguments_are_an_empty_object(arguments: object):
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    (part,) = (
        _generate(messages=[HI, {"role": "assistant", "tool_calls": [call]}]).messages[1].parts
    )
    assert isinstance(part, ToolCallPart)
    assert part.arguments == "{}"


@pytest.mark.parametrize("kind", ["function", "custom"])
def test_a_cache_mark_inside_a_tools_function_counts_like_one_on_the_tool(kind: str):
    mark = {"type": "ephemeral", "ttl": "1h"}
    inside = _generate(tools=[{"type": kind, kind: {"name": "f", "cache_control": mark}}])
    beside = _generate(tools=[{"type": kind, kind: {"name": "f"}, "cache_control": mark}])
    assert inside.tools == beside.tools
    assert (inside.tools[0].cache, inside.tools[0].extras) == ("1h", None)
