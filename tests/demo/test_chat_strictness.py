"""Chat completions refuses what OpenAI refuses, with OpenAI's error body."""

from typing import Any

import httpx
import pytest

from tests.demo.requests import CHAT_TOOL, PATHS, WEATHER_SCHEMA, chat

CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
USER = {"role": "user", "content": "hello"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "18"}


def said(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-demo", "messages": list(messages), **fields}


def json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}


def tool(**function: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "get_weather", **function}}]


def reasoning(**fields: Any) -> dict[str, Any]:
    return {**chat(), "model": "o-demo", **fields}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"messages": [USER]}, "must provide a model"),
    "unknown field": (chat(session_id="x"), "argument supplied: session_id"),
    "unknown fields": (chat(top_k=1, min_p=1), "arguments supplied: top_k, min_p"),
    "no messages": ({"model": "gpt-demo"}, "Missing required parameter: 'messages'"),
    "empty messages": (said(), "Invalid 'messages': empty array"),
    "unknown role": (said({"role": "model", "content": "x"}), "Supported values are: 'system'"),
    "null content": (said({"role": "user", "content": None}), "expected a string, got null"),
    "empty parts": (said({"role": "user", "content": []}), "empty array"),
    "unknown part": (
        said({"role": "user", "content": [{"type": "image", "source": {}}]}),
        "Invalid value: 'image'",
    ),
    "foreign key on a part": (
        said({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}),
        "Unknown parameter: 'messages[0].content[0].cache_control'",
    ),
    "foreign key on a message": (
        said(USER, {"role": "assistant", "content": "x", "reasoning_details": []}),
        "Unknown parameter: 'messages[1].reasoning_details'",
    ),
    "image from the assistant": (
        said(
            USER,
            {
                "role": "assistant",
                "content": [{"type": "image_url", "image_url": {"url": "https://a/b"}}],
            },
        ),
        "Invalid value: 'image_url'",
    ),
    "image in a tool result": (
        said(USER, CALLED, {**RESULT, "content": [{"type": "image_url", "image_url": {}}]}),
        "Invalid value: 'image_url'",
    ),
    "image of no URL": (
        said({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "abc"}}]}),
        "Expected a valid URL",
    ),
    "result without call": (said(USER, RESULT), "must be a response to a preceeding message"),
    "call without result": (said(USER, CALLED, USER), "did not have response messages: call_1"),
    "call at the end": (said(USER, CALLED), "did not have response messages: call_1"),
    "empty tool_calls": (
        said(USER, {"role": "assistant", "content": "x", "tool_calls": []}),
        "Invalid 'messages[1].tool_calls': empty array",
    ),
    "long call id": (
        said(USER, {**CALLED, "tool_calls": [{**CALL, "id": "c" * 41}]}),
        "maximum length 40",
    ),
    "arguments as object": (
        said(
            USER,
            {**CALLED, "tool_calls": [{**CALL, "function": {"name": "a", "arguments": {}}}]},
        ),
        "expected a string, but got an object",
    ),
    "empty tools": (chat(tools=[]), "Invalid 'tools': empty array"),
    "bare tool": (chat(tools=[{"name": "a", "input_schema": {}}]), "parameter: 'tools[0].type'"),
    "hosted tool": (chat(tools=[{"type": "web_search"}]), "Invalid value: 'web_search'"),
    "tool name with a dot": (chat(tools=tool(name="a.b")), "does not match pattern"),
    "tool name too long": (chat(tools=tool(name="a" * 65)), "maximum length 64"),
    "parameters of another type": (
        chat(tools=tool(parameters={"type": "string"})),
        "schema must be a JSON Schema of 'type: \"object\"'",
    ),
    "array without items": (
        chat(tools=tool(parameters={"type": "object", "properties": {"a": {"type": "array"}}})),
        "array schema missing items",
    ),
    "required that is no list of names": (
        chat(tools=tool(parameters={"type": "object", "properties": {}, "required": [[]]})),
        "[[]] is not valid under 'required'",
    ),
    "properties that are no schemas": (
        chat(tools=tool(parameters={"type": "object", "properties": {"a": {"anyOf": [1]}}})),
        "1 is not a schema under 'anyOf'",
    ),
    "strict and open": (
        chat(tools=tool(strict=True, parameters={"type": "object", "properties": {}})),
        "'additionalProperties' is required",
    ),
    "strict and optional": (
        chat(tools=tool(strict=True, parameters={**WEATHER_SCHEMA, "required": ["city"]})),
        "Missing 'days'",
    ),
    "cache mark on a tool": (
        chat(tools=[{**CHAT_TOOL, "cache_control": {}}]),
        "'tools[0].cache_control'",
    ),
    "choice without tools": (chat(tool_choice="auto"), "only allowed when 'tools'"),
    "parallel without tools": (chat(parallel_tool_calls=True), "only allowed when 'tools'"),
    "choice of an unknown tool": (
        chat(tools=[CHAT_TOOL], tool_choice={"type": "function", "function": {"name": "x"}}),
        "not found in 'tools'",
    ),
    "choice in another dialect": (
        chat(tools=[CHAT_TOOL], tool_choice={"type": "any"}),
        "Invalid value: 'any'",
    ),
    "two caps": (chat(max_tokens=5, max_completion_tokens=5), "at the same time"),
    "cap of zero": (chat(max_tokens=0), "integer below minimum value"),
    "cap over the model": (chat(max_tokens=99_999), "supports at most 16384"),
    "temperature too high": (chat(temperature=2.5), "decimal above maximum value"),
    "temperature as text": (chat(temperature="1"), "expected a decimal, but got a string"),
    "five stops": (chat(stop=list("abcde")), "maximum length 4"),
    "options without stream": (
        chat(stream_options={"include_usage": True}),
        "only allowed when 'stream'",
    ),
    "effort for a plain model": (chat(reasoning_effort="low"), "supplied: reasoning_effort"),
    "max_tokens for a reasoning model": (
        reasoning(max_tokens=50),
        "Use 'max_completion_tokens' instead",
    ),
    "temperature for a reasoning model": (
        reasoning(temperature=0.2),
        "'temperature' does not support 0.2",
    ),
    "stop for a reasoning model": (reasoning(stop="x"), "Unsupported parameter: 'stop'"),
    "json without the word": (
        chat(response_format={"type": "json_object"}),
        "must contain the word 'json'",
    ),
    "schema of no known type": (
        chat(response_format=json_schema({"type": "text"})),
        "'text' is not a type",
    ),
    "schema with a length in words": (
        chat(response_format=json_schema({"type": "string", "minLength": "two"})),
        "'two' is not valid under 'minLength'",
    ),
    "schema without a name": (
        chat(response_format={"type": "json_schema", "json_schema": {"schema": {}}}),
        "'response_format.json_schema.name'",
    ),
    "too many tokens": (chat("word " * 130_000), "maximum context length is 128000"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_refused(http: httpx.AsyncClient, case: str):
    body, fragment = REFUSED[case]
    answer = await http.post(PATHS["chat"], json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert fragment in error["message"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"


ACCEPTED: dict[str, dict[str, Any]] = {
    "nulls": chat(temperature=None, stop=None, max_tokens=None, tool_choice=None),
    "result in parts": said(
        USER, CALLED, {**RESULT, "content": [{"type": "text", "text": "18"}]}, tools=[CHAT_TOOL]
    ),
    "two results in any order": said(
        USER,
        {**CALLED, "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
        {**RESULT, "tool_call_id": "call_2"},
        RESULT,
    ),
    "developer": said({"role": "developer", "content": "Be brief."}, USER),
    "every parameter": chat(
        temperature=0.5,
        top_p=0.5,
        seed=1,
        user="u",
        stop=["x"],
        logprobs=True,
        top_logprobs=2,
        presence_penalty=1,
        frequency_penalty=-1,
        logit_bias={"1": 1},
        service_tier="auto",
        n=1,
    ),
    "open server": {
        **said(USER, {"role": "assistant", "content": "x", "reasoning_content": "y"}, USER),
        "model": "open-demo",
        "top_k": 5,
        "reasoning_effort": "low",
    },
    "reasoning": reasoning(max_completion_tokens=500, reasoning_effort="low", temperature=1),
}


@pytest.mark.parametrize("case", ACCEPTED)
async def test_accepted(http: httpx.AsyncClient, case: str):
    answer = await http.post(PATHS["chat"], json=ACCEPTED[case])
    assert answer.status_code == 200, answer.text


async def test_credentials_paths_and_models(http: httpx.AsyncClient):
    bare = await http.post(PATHS["chat"], json=chat(), headers={"authorization": ""})
    assert bare.status_code == 401
    assert "You didn't provide an API key" in bare.json()["error"]["message"]
    for path in ("/v1/chat/completions/", "/chat/completions", "/v1/completions"):
        answer = await http.post(path, json=chat())
        assert answer.status_code == 404, path
    unknown = await http.post(PATHS["chat"], json={**chat(), "model": "gpt-9"})
    assert unknown.status_code == 404
    assert unknown.json()["error"]["code"] == "model_not_found"
    embedding = await http.post(PATHS["chat"], json={**chat(), "model": "embed-demo"})
    assert embedding.status_code == 404
    broken = await http.post(PATHS["chat"], content=b"{", headers={"content-type": "x"})
    assert broken.status_code == 400


EMBEDDINGS_REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "empty text": ({"input": ""}, 400, "'$.input' is invalid"),
    "empty list": ({"input": []}, 400, "'$.input' is invalid"),
    "an empty text among others": ({"input": ["a", ""]}, 400, "'$.input' is invalid"),
    "too many": ({"input": ["a"] * 2049}, 400, "maximum length 2048"),
    "no input": ({}, 400, "'input'"),
    "too long": ({"input": "word " * 9000}, 400, "maximum context length"),
    "unknown field": ({"input": "a", "task": "x"}, 400, "Unknown parameter: 'task'"),
    "encoding": ({"input": "a", "encoding_format": "hex"}, 400, "'float', 'base64'"),
    "dimensions": ({"input": "a", "dimensions": 5000}, 400, "less than or equal to 1536"),
    "chat model": ({"input": "a", "model": "gpt-demo"}, 403, "not allowed"),
}


@pytest.mark.parametrize("case", EMBEDDINGS_REFUSED)
async def test_embeddings_refused(http: httpx.AsyncClient, case: str):
    fields, status, fragment = EMBEDDINGS_REFUSED[case]
    answer = await http.post("/v1/embeddings", json={"model": "embed-demo", **fields})
    assert answer.status_code == status
    assert fragment in answer.json()["error"]["message"]
