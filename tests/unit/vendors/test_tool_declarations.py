"""Tools from every address to every vendor format: however they were declared, once, and as the vendor takes them."""

from typing import Any

import msgspec
import pytest

from gwd.core.errors import InvalidValue, MissingParameter
from gwd.core.request import Generate, Request, ToolChoice
from gwd.dialects import chat_completions, messages
from gwd.dialects.base import Dialect
from gwd.dialects.responses import dialect as responses
from gwd.vendors import anthropic_messages, gemini, openai_chat, openai_responses
from gwd.vendors.base import Adapter
from tests.golden.golden import target

Json = dict[str, Any]

DIALECTS: dict[str, Dialect] = {
    "chat": chat_completions.DIALECT,
    "messages": messages.DIALECT,
    "responses": responses.DIALECT,
}
ADAPTERS: dict[str, Adapter] = {
    adapter.format.name: adapter
    for adapter in (
        openai_chat.ADAPTER,
        anthropic_messages.ADAPTER,
        gemini.ADAPTER,
        openai_responses.ADAPTER,
    )
}
SCHEMA: Json = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
FUNCTION: Json = {"name": "look", "description": "d", "parameters": SCHEMA}
FORMS: dict[str, Json] = {
    "nested": {"type": "function", "function": FUNCTION},
    "flat": {"type": "function", **FUNCTION},
    "nested without a type": {"function": FUNCTION},
    "another vendor's": {"name": "look", "description": "d", "input_schema": SCHEMA},
    "another vendor's, nested": {
        "type": "function",
        "function": {"name": "look", "description": "d", "input_schema": SCHEMA},
    },
}


def parsed(name: str, tools: list[Json], said: list[Any] | None = None, **fields: Any) -> Request:
    user = {"role": "user", "content": "hi"}
    body: Json = {"model": "test/model", "tools": tools, **fields}
    if name == "responses":
        body["input"] = said or [user]
    else:
        body["messages"] = said or [user]
    if name == "messages":
        body["max_tokens"] = 9
    return DIALECTS[name].parse(msgspec.json.encode(body), {})


def offered(adapter: Adapter, request: Request) -> list[tuple[str, str | None, Any]]:
    """Name, description and schema of every tool that the vendor is sent."""
    body = msgspec.json.decode(adapter.build(request, target(adapter.format.name)).body)
    found = []
    for tool in body.get("tools", ()):
        for each in tool.get("functionDeclarations", [tool.get("function", tool)]):
            names = ("parameters", "input_schema", "parametersJsonSchema")
            schema = next((each[name] for name in names if name in each), None)
            found.append((each["name"], each.get("description"), schema))
    return found


def choice(name: str, wanted: Any) -> ToolChoice:
    body = parsed(name, [FORMS["flat"]], tool_choice=wanted).body
    assert isinstance(body, Generate)
    assert body.tool_choice is not None
    return body.tool_choice


def everywhere(*tools: Json) -> dict[tuple[str, str], Any]:
    return {
        (name, vendor): offered(adapter, parsed(name, list(tools)))
        for name in DIALECTS
        for vendor, adapter in ADAPTERS.items()
    }


def test_every_form_is_taken_at_every_address_and_reaches_every_vendor_alike():
    got = {
        (form, *place): tools
        for form, tool in FORMS.items()
        for place, tools in everywhere(tool).items()
    }
    assert {key: tools for key, tools in got.items() if tools != [("look", "d", SCHEMA)]} == {}


def test_a_tool_declared_twice_goes_out_once():
    other = {"type": "function", "function": {"name": "read", "parameters": SCHEMA}}
    twice = [FORMS["nested"], other, FORMS["flat"]]
    got = everywhere(*twice)
    wanted = [("look", "d", SCHEMA), ("read", None, SCHEMA)]
    assert {key: tools for key, tools in got.items() if tools != wanted} == {}


def test_a_tool_declared_twice_beside_one_that_the_vendor_runs_goes_out_once():
    search = {"type": "web_search_20250305", "name": "web_search"}
    request = parsed("messages", [FORMS["flat"], search, FORMS["nested"]])
    tools = [name for name, _, _ in offered(anthropic_messages.ADAPTER, request)]
    assert tools == ["look", "web_search"]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("other", [{"description": "another"}, {"parameters": {"type": "object"}}])
def test_two_different_tools_of_one_name_are_refused_by_both_places(name: str, other: Json):
    tools = [FORMS["nested"], {"type": "function", **FUNCTION, **other}]
    with pytest.raises(InvalidValue, match=r"`tools\[1\]`.*'look'.*`tools\[0\]`") as caught:
        parsed(name, tools)
    assert caught.value.param == "tools[1]"


def test_two_members_of_one_namespace_are_refused_alike():
    members = [{"type": "function", **FUNCTION}, {"type": "function", "name": "look"}]
    with pytest.raises(InvalidValue, match=r"`tools\[0\]\.tools\[1\]`"):
        parsed("responses", [{"type": "namespace", "name": "n", "tools": members}])


def test_the_choice_is_read_in_either_form():
    choices = [
        {"type": "function", "name": "look"},
        {"type": "function", "function": {"name": "look"}},
        {"type": "tool", "name": "look"},
    ]
    flat = {"type": "allowed_tools", "mode": "required", "tools": [choices[0]]}
    nested = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [choices[1]]},
    }
    for name in ("chat", "responses"):
        for wanted in choices:
            assert choice(name, wanted) == ToolChoice(mode="named", name="look")
        for among in (flat, nested):
            assert choice(name, among) == ToolChoice(mode="required", allowed=("look",))
        for loose in ("any", {"type": "any"}):
            assert choice(name, loose) == ToolChoice(mode="required")


EMPTY: Json = {"type": "object", "properties": {}}
MERGED: Json = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
}
UNION: Json = {
    "anyOf": [
        {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
    ]
}
# What a client declares, and what vendors take of it; Gemini takes unions at the root, and no empty object.
ROOTS: list[tuple[str, Any, Json, Any]] = [
    ("no schema", None, EMPTY, None),
    ("an empty one", {}, EMPTY, None),
    ("an empty list", [], EMPTY, None),
    ("a boolean one", True, EMPTY, None),
    ("null", {"type": "null"}, EMPTY, None),
    (
        "properties alone",
        {"properties": {"a": {}}},
        {"type": "object", "properties": {"a": {}}},
        ...,
    ),
    (
        "an object or null",
        {"type": ["object", "null"], "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {}}},
        ...,
    ),
    (
        "a reference",
        {"$ref": "#/definitions/A", "definitions": {"A": {**SCHEMA}}},
        {**SCHEMA, "$defs": {"A": SCHEMA}},
        ...,
    ),
    ("a union", UNION, MERGED, {**UNION, "type": "object", "properties": {}}),
    (
        "a text",
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": {"input": {"type": "string", "minLength": 1}},
            "required": ["input"],
        },
        ...,
    ),
    (
        "a list whose items are defined",
        {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "string"}}},
        {
            "type": "object",
            "properties": {"input": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
            "required": ["input"],
            "$defs": {"A": {"type": "string"}},
        },
        ...,
    ),
]


def test_every_vendor_gets_an_object_at_the_root():
    wrong = {}
    for case, schema, plain, for_gemini in ROOTS:
        tool = {"type": "function", "name": "look", "parameters": schema}
        for (name, vendor), [(_, _, sent)] in everywhere(tool).items():
            wanted = plain if vendor != "gemini" or for_gemini is ... else for_gemini
            if vendor == "openai_chat" and sent is None and wanted == EMPTY:
                continue  # a function without parameters is one that takes none
            if sent != wanted:
                wrong[case, name, vendor] = sent
    assert wrong == {}


def test_the_draft_is_named_to_nobody_but_its_own_family():
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMA}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **SCHEMA}
    for schema, keeps in (
        (draft, {("chat", "openai_chat"), ("messages", "anthropic_messages")}),
        (old, set()),
    ):
        tool = {"type": "function", "name": "look", "parameters": schema}
        got = everywhere(tool)
        named = {place for place, [(_, _, sent)] in got.items() if "$schema" in sent}
        assert named - {(name, "anthropic_messages") for name in DIALECTS} <= keeps
        assert keeps <= named


@pytest.mark.parametrize("name", DIALECTS)
def test_a_schema_of_another_kind_is_refused_by_name(name: str):
    for schema in ("object", ["x"], 5):
        with pytest.raises(InvalidValue) as caught:
            parsed(name, [{"type": "function", "function": {"name": "f", "parameters": schema}}])
        assert caught.value.param == "tools[0].function.parameters"
    with pytest.raises(MissingParameter) as missing:
        parsed(name, [{"type": "function", "function": {"parameters": {}}}])
    assert missing.value.param == "tools[0].function.name"


def _visible(name: str, tools: list[Json], said: list[Any] | None = None, **fields: Any) -> Any:
    got = {
        vendor: [tool for tool, _, _ in offered(adapter, parsed(name, tools, said, **fields))]
        for vendor, adapter in ADAPTERS.items()
    }
    own = got.pop("anthropic_messages") if name == "messages" else None
    assert len({tuple(names) for names in got.values()}) == 1, got
    return next(iter(got.values())), own


def _tools(*deferred: str, search: str = "Search") -> list[Json]:
    later = [{"name": name, "input_schema": SCHEMA, "defer_loading": True} for name in deferred]
    return [{"name": search, "input_schema": SCHEMA}, *later]


REFERENCE: Json = {"type": "tool_reference", "tool_name": "b"}
USE: Json = {"type": "tool_use", "id": "t", "name": "Search", "input": {}}
RESULT: Json = {"type": "tool_result", "tool_use_id": "t", "content": [REFERENCE]}
FOUND: list[Json] = [
    {"role": "user", "content": "x"},
    {"role": "assistant", "content": [USE]},
    {"role": "user", "content": [RESULT]},
]


def test_deferred_tools_are_shown_once_they_are_found_and_to_their_own_vendor_always():
    everything = ["Search", "a", "b"]
    called: list[Json] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [{**USE, "name": "a"}]},
        {"role": "user", "content": [{**RESULT, "content": "1"}]},
    ]
    tools = _tools("a", "b")
    assert _visible("messages", tools) == (["Search"], everything)
    assert _visible("messages", tools, FOUND) == (["Search", "b"], everything)
    assert _visible("messages", tools, called) == (["Search", "a"], everything)
    forced = {"type": "tool", "name": "b"}
    assert _visible("messages", tools, tool_choice=forced) == (["Search", "b"], everything)


def test_deferred_tools_that_only_the_vendor_could_find_are_all_shown():
    vendor_search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search"}
    later = _tools("a", "b")[1:]
    for tools in ([vendor_search, *_tools("a", "b")], later):
        request = parsed("messages", tools)
        shown = [name for name, _, _ in offered(openai_chat.ADAPTER, request)]
        assert shown[-2:] == ["a", "b"]
    hosted = [{"type": "tool_search"}, {"type": "function", **FUNCTION}]
    later = [{"type": "function", "name": "a", "defer_loading": True}]
    request = parsed("responses", [*hosted, *later])
    assert isinstance(request.body, Generate)
    assert [tool.name for tool in request.body.tools_in_sight] == ["look", "a"]


def test_deferred_tools_of_the_other_addresses_are_found_alike():
    later = {"type": "function", "name": "b", "parameters": SCHEMA, "defer_loading": True}
    tools = [FORMS["flat"], later]
    user = {"role": "user", "content": "x"}
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    chat = [
        user,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [REFERENCE]},
    ]
    items = [
        user,
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [REFERENCE]},
    ]
    for name, said in (("chat", chat), ("responses", items)):
        for vendor, adapter in ADAPTERS.items():
            hidden = [tool for tool, _, _ in offered(adapter, parsed(name, tools))]
            found = [tool for tool, _, _ in offered(adapter, parsed(name, tools, said))]
            assert (hidden, found) == (["look"], ["look", "b"]), (name, vendor)
            body = adapter.build(parsed(name, tools, said), target(vendor)).body
            assert b"defer_loading" not in body
