"""Responses refuses what OpenAI refuses there."""

from typing import Any

import httpx
import pytest

from gwd.demo.signatures import encrypt
from tests.demo.requests import CHAT_TOOL, PATHS, RESPONSES_TOOL, responses

CALL = {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "18"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypt("x")}
USER = {"role": "user", "content": "hello"}


def given(*items: dict[str, Any]) -> dict[str, Any]:
    return {"model": "gpt-demo", "input": list(items)}


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(parts)}


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "no input": ({"model": "gpt-demo"}, 400, "Missing required parameter: 'input'"),
    "empty input": (given(), 400, "Invalid 'input': empty array"),
    "unknown field": (responses(stop=["x"]), 400, "Unknown parameter: 'stop'"),
    "messages": (responses(messages=[]), 400, "has moved to 'input'"),
    "max_tokens": (responses(max_tokens=50), 400, "has moved to 'max_output_tokens'"),
    "response_format": (responses(response_format={}), 400, "has moved to 'text.format'"),
    "small cap": (responses(max_output_tokens=15), 400, "Expected a value >= 16"),
    "tool without strict": (
        responses(tools=[{k: v for k, v in RESPONSES_TOOL.items() if k != "strict"}]),
        400,
        "Missing required parameter: 'tools[0].strict'",
    ),
    "tool of chat": (responses(tools=[CHAT_TOOL]), 400, "'tools[0].name'"),
    "tool of an unknown type": (responses(tools=[{"type": "namespace"}]), 400, "'namespace'"),
    "choice of chat": (
        responses(
            tools=[RESPONSES_TOOL],
            tool_choice={"type": "function", "function": {"name": "get_weather"}},
        ),
        400,
        "'tool_choice.name'",
    ),
    "required without tools": (responses(tool_choice="required"), 400, "specified with 'tools'"),
    "effort for a plain model": (
        responses(reasoning={"effort": "low"}),
        400,
        "'reasoning.effort' is not supported",
    ),
    "temperature for a reasoning model": (
        {**responses(temperature=0.1), "model": "o-demo"},
        400,
        "'temperature' is not supported",
    ),
    "unknown include": (responses(include=["everything"]), 400, "Invalid value: 'everything'"),
    "part of the other side": (
        given(message("assistant", {"type": "input_text", "text": "x"})),
        400,
        "Supported values are: 'output_text', 'refusal'",
    ),
    "part of chat": (
        given(message("user", {"type": "text", "text": "x"})),
        400,
        "Supported values are: 'input_text'",
    ),
    "image as an object": (
        given(message("user", {"type": "input_image", "image_url": {"url": "https://a/b"}})),
        400,
        "expected a string, but got an object",
    ),
    "tool role": (given({"role": "tool", "content": "x"}), 400, "Invalid value: 'tool'"),
    "output without call": (
        given(USER, OUTPUT),
        400,
        "No tool call found for function call output",
    ),
    "call without output": (
        given(USER, CALL),
        400,
        "No tool output found for function call call_1",
    ),
    "call id as item id": (
        given(USER, {**CALL, "id": "call_1"}, OUTPUT),
        400,
        "Expected an ID that begins with 'fc'",
    ),
    "arguments as object": (
        given(USER, {**CALL, "arguments": {}}, OUTPUT),
        400,
        "expected a string, but got an object",
    ),
    "foreign reasoning": (
        given(USER, {**THOUGHT, "encrypted_content": "abcdef"}),
        400,
        "could not be verified",
    ),
    "reasoning without content": (
        given(USER, {"type": "reasoning", "id": "rs_1", "summary": []}),
        404,
        "Item with id 'rs_1' not found",
    ),
    "reasoning without summary": (
        given(USER, {k: v for k, v in THOUGHT.items() if k != "summary"}),
        400,
        "'input[1].summary'",
    ),
    "reference": (given(USER, {"type": "item_reference", "id": "msg_1"}), 404, "'msg_1' not found"),
    "earlier response": (responses(previous_response_id="resp_1"), 400, "'resp_1' not found"),
    "format without a name": (
        responses(text={"format": {"type": "json_schema", "schema": {}}}),
        400,
        "'text.format.name'",
    ),
    "format of chat": (
        responses(text={"format": {"type": "json_schema", "json_schema": {}}}),
        400,
        "Unknown parameter: 'text.format.json_schema'",
    ),
    "usage in the stream": (
        responses(stream=True, stream_options={"include_usage": True}),
        400,
        "Unknown parameter: 'stream_options.include_usage'",
    ),
    "input too long": (responses("word " * 130_000), 400, "exceeds the context window"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_refused(http: httpx.AsyncClient, case: str):
    body, status, fragment = REFUSED[case]
    answer = await http.post(PATHS["responses"], json=body)
    assert answer.status_code == status, answer.text
    assert fragment in answer.json()["error"]["message"]


ACCEPTED: dict[str, dict[str, Any]] = {
    "call and output": {**given(USER, CALL, OUTPUT), "tools": [RESPONSES_TOOL]},
    "reasoning replayed": {**given(USER, THOUGHT, CALL, OUTPUT), "tools": [RESPONSES_TOOL]},
    "output in parts": given(
        USER, CALL, {**OUTPUT, "output": [{"type": "input_text", "text": "18"}]}
    ),
    "hosted tool": responses(tools=[{"type": "web_search"}]),
    "no tools": responses(tools=[]),
    "all roles": given(
        message("developer", {"type": "input_text", "text": "x"}),
        message("user", {"type": "input_text", "text": "x"}),
        message("assistant", {"type": "output_text", "text": "x", "annotations": []}),
        USER,
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
async def test_accepted(http: httpx.AsyncClient, case: str):
    answer = await http.post(PATHS["responses"], json=ACCEPTED[case])
    assert answer.status_code == 200, answer.text
