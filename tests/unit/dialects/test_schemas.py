"""A null in a JSON schema says nothing, unless it is a value."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.request import Generate, Request
from gwd.dialects import chat_completions, messages, responses
from gwd.dialects.schemas import without_nulls
from gwd.vendors import anthropic_messages
from tests.golden import golden

ODD = {
    "type": "object",
    "description": None,
    "required": None,
    "properties": {
        "a": {"type": "string", "enum": None, "format": None, "minLength": None},
        "required": {"type": ["string", "null"], "default": None, "const": None},
        "list": {"items": {"$ref": None, "pattern": None}, "enum": [None, 1]},
        "any": None,
    },
    "anyOf": [{"type": "object", "oneOf": None}, None],
    "additionalProperties": None,
    "$defs": {"d": {"maximum": None, "examples": [None, {"x": None}]}},
}
PLAIN = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "required": {"type": ["string", "null"], "default": None, "const": None},
        "list": {"items": {}, "enum": [None, 1]},
        "any": {},
    },
    "anyOf": [{"type": "object"}],
    "$defs": {"d": {"examples": [None, {"x": None}]}},
}
schemas = st.recursive(
    st.dictionaries(st.sampled_from(["type", "format", "default", "enum"]), st.text(max_size=3)),
    lambda inner: st.fixed_dictionaries(
        {}, optional={"properties": st.dictionaries(st.text(), inner), "items": inner}
    ),
    max_leaves=6,
)


def test_null_keywords_are_dropped_at_every_depth_and_null_values_stay():
    assert without_nulls(ODD) == PLAIN


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"description": "null"}])
def test_a_schema_without_nulls_is_not_copied(schema: dict[str, Any] | None):
    assert without_nulls(schema) is schema


@given(schemas)
def test_a_plain_schema_stays_itself(schema: dict[str, Any]):
    assert without_nulls(schema) == schema


CHAT = {
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": ODD}}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": ODD}},
}
MESSAGES = {
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"name": "f", "input_schema": ODD}],
    "output_config": {"format": {"type": "json_schema", "schema": ODD}},
}
RESPONSES = {
    "input": "hi",
    "tools": [
        {"type": "function", "name": "f", "parameters": ODD},
        {
            "type": "namespace",
            "name": "n",
            "tools": [{"type": "function", "name": "g", "parameters": ODD}],
        },
    ],
    "text": {"format": {"type": "json_schema", "name": "n", "schema": ODD}},
}


def parsed(dialect: Any, body: dict[str, Any]) -> tuple[Request, Generate]:
    request: Request = dialect.parse(msgspec.json.encode({"model": "test/model", **body}), {})
    assert isinstance(request.body, Generate)
    return request, request.body


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (chat_completions.DIALECT, CHAT),
        (messages.DIALECT, MESSAGES),
        (responses.DIALECT, RESPONSES),
    ],
    ids=["chat", "messages", "responses"],
)
def test_every_dialect_reads_tools_and_answer_formats_so(dialect: Any, body: dict[str, Any]):
    _, generate = parsed(dialect, body)
    assert all(tool.parameters == PLAIN for tool in generate.tools)
    assert generate.output is not None
    assert generate.output.schema == PLAIN


@pytest.mark.parametrize("older", [False, True])
def test_an_answer_format_that_goes_to_its_own_vendor_as_it_came_is_plain_too(older: bool):
    body = dict(MESSAGES)
    if older:
        body["output_format"] = body.pop("output_config")["format"]  # type: ignore[index]
    request, _ = parsed(messages.DIALECT, body)
    call = anthropic_messages.ADAPTER.build(request, golden.target("anthropic_messages"))
    sent = msgspec.json.decode(call.body)
    format_ = sent["output_format"] if older else sent["output_config"]["format"]
    assert format_["schema"] == PLAIN
