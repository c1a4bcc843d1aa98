"""JSON schemas of clients in draft 2020-12, whichever draft or habit they were written in."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.request import Generate, Request
from gwd.dialects import chat_completions, messages, responses
from gwd.dialects.schemas import DRAFT, _Rewriting, modern
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
WORDS = st.sampled_from(["string", "object", "array", "null"])
schemas = st.recursive(
    st.fixed_dictionaries({}, optional={"type": WORDS, "format": st.text(max_size=3)}),
    lambda inner: st.fixed_dictionaries(
        {}, optional={"properties": st.dictionaries(st.text(), inner), "items": inner}
    ),
    max_leaves=6,
)
KEYWORDS = st.sampled_from(
    [
        "id",
        "nullable",
        "items",
        "required",
        "definitions",
        "$defs",
        "$ref",
        "type",
        "anyOf",
        "minimum",
        "exclusiveMinimum",
        "dependencies",
        "additionalItems",
        "properties",
        "enum",
        "$schema",
    ]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["object", "#/definitions/a", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=8,
)
# An older way to write something, and the same in draft 2020-12.
TABLE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "definitions and what refers to them",
        {
            "definitions": {"a": {"type": "string"}, "b": {"$ref": "#/definitions/a"}},
            "properties": {"x": {"$ref": "#/definitions/b"}},
        },
        {
            "$defs": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/a"}},
            "properties": {"x": {"$ref": "#/$defs/b"}},
        },
    ),
    (
        "two tables of definitions with one name",
        {
            "$defs": {"a": {"type": "string"}},
            "definitions": {"a": {"type": "integer"}, "b": {}},
            "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/definitions/a"}],
        },
        {
            "$defs": {"a": {"type": "string"}, "a_2": {"type": "integer"}, "b": {}},
            "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a_2"}],
        },
    ),
    (
        "a property called definitions, and a pointer through it",
        {
            "properties": {
                "definitions": {"items": [{"type": "string"}]},
                "x": {"$ref": "#/properties/definitions/items/0"},
            }
        },
        {
            "properties": {
                "definitions": {"prefixItems": [{"type": "string"}]},
                "x": {"$ref": "#/properties/definitions/prefixItems/0"},
            }
        },
    ),
    ("draft 4 bounds", {"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
    (
        "draft 4 bounds that are not exclusive",
        {"maximum": 9, "exclusiveMaximum": False},
        {"maximum": 9},
    ),
    (
        "tuples",
        {"items": [{"type": "string"}, True], "additionalItems": False},
        {"prefixItems": [{"type": "string"}, {}], "items": {"not": {}}},
    ),
    ("a rest beside no tuple", {"items": {}, "additionalItems": False}, {"items": {}}),
    (
        "dependencies",
        {"dependencies": {"a": ["b"], "c": "d", "e": {"required": ["f"]}}},
        {
            "dependentRequired": {"a": ["b"], "c": ["d"]},
            "dependentSchemas": {"e": {"required": ["f"]}},
        },
    ),
    ("id", {"id": "https://x.example/s"}, {"$id": "https://x.example/s"}),
    (
        "a property called id",
        {"properties": {"id": {"type": "string"}}, "nullable": False},
        {"properties": {"id": {"type": "string"}}},
    ),
    (
        "an id that is an anchor",
        {"$defs": {"a": {"$id": "#a"}}},
        {"$defs": {"a": {"$anchor": "a"}}},
    ),
    ("the draft it was written in", {"$schema": "http://json-schema.org/draft-07/schema#"}, {}),
    (
        "nullable",
        {"properties": {"a": {"type": "string", "enum": ["x"], "nullable": True}}},
        {"properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}}},
    ),
    (
        "a reference that may be null",
        {"properties": {"a": {"$ref": "#/$defs/b", "nullable": True, "description": "d"}}},
        {
            "properties": {
                "a": {"description": "d", "anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]}
            }
        },
    ),
    (
        "required at the property",
        {"properties": {"a": {"type": "string", "required": True}, "b": {"required": False}}},
        {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
    ),
    (
        "boolean schemas",
        {"properties": {"a": True, "b": False}, "additionalProperties": False},
        {"properties": {"a": {}, "b": {"not": {}}}, "additionalProperties": False},
    ),
    (
        "empty lists for empty objects",
        {"properties": [], "enum": [], "required": []},
        {"properties": {}, "required": []},
    ),
    (
        "types in other words",
        {"type": "OBJECT", "properties": {"a": {"type": "str"}, "b": {"type": "any"}}},
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}},
    ),
    ("a list of one type", {"type": ["String", "NULL"]}, {"type": ["string", "null"]}),
    ("divisibleBy", {"divisibleBy": 2}, {"multipleOf": 2}),
    (
        "recursion",
        {"$recursiveAnchor": True, "items": {"$recursiveRef": "#"}},
        {"items": {"$ref": "#"}},
    ),
    (
        "values are the client's",
        {"default": {"nullable": True}, "enum": [{"items": []}], "const": None},
        {"default": {"nullable": True}, "enum": [{"items": []}], "const": None},
    ),
]


def test_null_keywords_are_dropped_at_every_depth_and_null_values_stay():
    assert modern(ODD) == PLAIN


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"description": "null"}])
def test_a_schema_modern_is_not_copied(schema: dict[str, Any] | None):
    assert modern(schema) is schema


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": DRAFT, "type": ["string", "null"], "additionalProperties": False},
        {"properties": {"id": {"type": "string"}, "type": {}}, "required": []},
    ],
)
def test_the_usual_schemas_of_agents_need_no_work(schema: dict[str, Any]):
    assert modern(schema) is schema


def test_older_drafts_and_other_habits_are_written_in_the_newer_draft():
    got = {name: modern(old) for name, old, _ in TABLE}
    assert got == {name: new for name, _, new in TABLE}


@given(anything)
def test_whatever_comes_a_second_time_changes_nothing(value: Any):
    once = modern({"type": "object", "properties": {"a": value}})
    assert once is not None
    assert modern(once) == once


@given(anything)
def test_a_schema_that_is_left_alone_needed_nothing(value: Any):
    schema = {"type": "object", "properties": {"a": value}}
    if modern(schema) is schema:
        assert _Rewriting(schema).result() == schema


@given(schemas)
def test_a_plain_schema_stays_itself(schema: dict[str, Any]):
    assert modern(schema) == schema


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
