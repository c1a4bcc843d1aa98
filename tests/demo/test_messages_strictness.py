"""Messages refuses what Anthropic refuses, with Anthropic's error body."""

from typing import Any

import httpx
import pytest

from gwd.demo.signatures import redact, sign
from tests.demo.requests import MESSAGES_TOOL, PATHS, messages

USER = {"role": "user", "content": "hello"}
THINKING = {"type": "enabled", "budget_tokens": 1024}
USE = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18"}
THOUGHT = {"type": "thinking", "thinking": "I see.", "signature": sign("I see.")}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
PIXEL = "iVBORw0KGgo="


def said(*turns: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "claude-demo", "max_tokens": 2000, "messages": list(turns), **fields}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def image(**source: Any) -> dict[str, Any]:
    return {"type": "image", "source": source}


def thinking(**fields: Any) -> dict[str, Any]:
    return messages(max_tokens=2000, thinking=THINKING, **fields)


def following(**fields: Any) -> dict[str, Any]:
    return {**messages(), "model": "claude-demo-next", **fields}


TOOLS = [MESSAGES_TOOL]
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no max_tokens": ({"model": "claude-demo", "messages": [USER]}, "max_tokens: Field required"),
    "max_tokens of zero": (messages(max_tokens=0), "greater than or equal to 1"),
    "max_tokens over the model": (messages(max_tokens=64_001), "64001 > 64000"),
    "no messages": ({"model": "claude-demo", "max_tokens": 5}, "messages: Field required"),
    "empty messages": (said(), "at least one message is required"),
    "unknown field": (messages(user="x"), "user: Extra inputs are not permitted"),
    "unknown field of a beta": (
        messages(context_management={}),
        "context_management: Extra inputs are not permitted",
    ),
    "unknown field of metadata": (messages(metadata={"a": "b"}), "metadata.a: Extra inputs"),
    "unknown field of a message": (said({**USER, "name": "x"}), "messages.0.name: Extra inputs"),
    "unknown field of a block": (said(user(text("x", index=0))), "content.0.text.index: Extra"),
    "assistant first": (said({"role": "assistant", "content": "x"}, USER), "first message"),
    "system role": (said({"role": "system", "content": "x"}, USER), 'Unexpected role "system"'),
    "tool role": (said(USER, {"role": "tool", "content": "x"}), "should be 'user' or 'assistant'"),
    "empty text block": (said(user(text(""))), "text content blocks must be non-empty"),
    "blank text block": (said(user(text("  \n"))), "must contain non-whitespace"),
    "empty content": (said({"role": "user", "content": ""}), "must have non-empty content"),
    "empty system block": (messages(system=[text("")]), "system: text content blocks"),
    "block of another dialect": (
        said(user({"type": "image_url", "image_url": {}})),
        "Input tag 'image_url' found",
    ),
    "prefill with a blank": (
        said(USER, {"role": "assistant", "content": "So "}),
        "cannot end with trailing whitespace",
    ),
    "prefill for a newer model": (
        following(messages=[USER, {"role": "assistant", "content": "So"}]),
        "does not support assistant message prefill",
    ),
    "result without call": (said(user(RESULT), tools=TOOLS), "unexpected `tool_use_id` found"),
    "call without result": (
        said(USER, assistant(USE), USER, tools=TOOLS),
        "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    ),
    "call at the end": (said(USER, assistant(USE), tools=TOOLS), "`tool_use` ids were found"),
    "text before the result": (
        said(USER, assistant(USE), user(text("x"), RESULT), tools=TOOLS),
        "`tool_use` ids were found",
    ),
    "two results for one call": (
        said(USER, assistant(USE), user(RESULT, RESULT), tools=TOOLS),
        "must have a single result",
    ),
    "one of two results": (
        said(USER, assistant(USE, {**USE, "id": "toolu_2"}), user(RESULT), tools=TOOLS),
        "immediately after: toolu_2",
    ),
    "call id with a dot": (
        said(USER, assistant({**USE, "id": "call.1"}), tools=TOOLS),
        "String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "input as text": (
        said(USER, assistant({**USE, "input": "{}"}), tools=TOOLS),
        "tool_use.input: Input should be an object",
    ),
    "history of calls without tools": (
        said(USER, assistant(USE), user(RESULT)),
        "must define tools",
    ),
    "foreign signature": (
        said(USER, assistant({**THOUGHT, "signature": "abc"}, text("x")), USER),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    "changed thinking": (
        said(USER, assistant({**THOUGHT, "thinking": "I saw."}, text("x")), USER),
        "Invalid `signature`",
    ),
    "foreign redacted thinking": (
        said(USER, assistant({"type": "redacted_thinking", "data": "eA=="}, text("x")), USER),
        "Invalid `data`",
    ),
    "thinking lost in a tool loop": (
        said(USER, assistant(USE), user(RESULT), tools=TOOLS, thinking=THINKING),
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ),
    "cache mark on thinking": (
        said(USER, assistant({**THOUGHT, "cache_control": MARK}, text("x")), USER),
        "thinking.cache_control: Extra inputs",
    ),
    "temperature with thinking": (thinking(temperature=0.5), "may only be set to 1"),
    "top_k with thinking": (thinking(top_k=5), "`top_k` must be unset"),
    "top_p with thinking": (thinking(top_p=0.5), "greater than or equal to 0.95"),
    "forced tool with thinking": (
        thinking(tools=TOOLS, tool_choice={"type": "any"}),
        "Thinking may not be enabled when tool_choice forces tool use",
    ),
    "budget not below max_tokens": (
        messages(max_tokens=1024, thinking=THINKING),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    "small budget": (
        messages(thinking={**THINKING, "budget_tokens": 1000}),
        "greater than or equal to 1024",
    ),
    "adaptive for an older model": (
        messages(thinking={"type": "adaptive"}),
        "adaptive thinking is not supported",
    ),
    "budget for a newer model": (
        following(max_tokens=2000, thinking=THINKING),
        '"thinking.type.enabled" is not supported',
    ),
    "sampling for a newer model": (following(temperature=1), "not supported for this model"),
    "forced tool for a newer model": (
        following(tools=TOOLS, tool_choice={"type": "any"}),
        "is not supported for this model",
    ),
    "temperature over one": (messages(temperature=1.5), "temperature: range: 0..1"),
    "blank stop": (messages(stop_sequences=["x", "\n\n"]), "must contain non-whitespace"),
    "empty stop": (messages(stop_sequences=[""]), "must contain non-whitespace"),
    "tool of another dialect": (
        messages(tools=[{"type": "function", "function": {}}]),
        "tools.0.custom.function: Extra inputs",
    ),
    "tool without schema": (messages(tools=[{"name": "a"}]), "input_schema: Field required"),
    "schema without type": (
        messages(tools=[{"name": "a", "input_schema": {}}]),
        "input_schema.type: Field required",
    ),
    "schema that is none": (
        messages(tools=[{"name": "a", "input_schema": {"type": "object", "required": [1]}}]),
        "tools.0.custom.input_schema: JSON schema is invalid",
    ),
    "schema of alternatives": (
        messages(tools=[{"name": "a", "input_schema": {"type": "object", "anyOf": []}}]),
        "does not support oneOf, allOf, or anyOf",
    ),
    "tool name with a dot": (
        messages(tools=[{**MESSAGES_TOOL, "name": "a.b"}]),
        "String should match pattern",
    ),
    "two tools of one name": (messages(tools=TOOLS * 2), "Tool names must be unique"),
    "choice without tools": (
        messages(tool_choice={"type": "auto"}),
        "tool_choice may only be specified while providing tools",
    ),
    "choice as text": (messages(tools=TOOLS, tool_choice="auto"), "Input should be an object"),
    "choice of an unknown tool": (
        messages(tools=TOOLS, tool_choice={"type": "tool", "name": "x"}),
        "not found in provided tools",
    ),
    "parallel off in none": (
        messages(tools=TOOLS, tool_choice={"type": "none", "disable_parallel_tool_use": True}),
        "tool_choice.none.disable_parallel_tool_use: Extra inputs",
    ),
    "five cache marks": (
        messages(system=[text("x", cache_control=MARK)] * 5),
        "A maximum of 4 blocks with cache_control may be provided. Found 5",
    ),
    "hour after five minutes": (
        messages(system=[text("x", cache_control=MARK), text("y", cache_control=HOUR)]),
        "must not come after a ttl='5m'",
    ),
    "cache mark on empty text": (
        said(user(text("", cache_control=MARK))),
        "cache_control cannot be set for empty text blocks",
    ),
    "image over http": (said(user(image(type="url", url="http://a/b"))), "Only HTTPS URLs"),
    "image of another type": (
        said(user(image(type="base64", media_type="image/jpeg", data=PIXEL))),
        "does not have the media type image/jpeg",
    ),
    "image of an unknown type": (
        said(user(image(type="base64", media_type="image/tiff", data=PIXEL))),
        "Input should be 'image/jpeg'",
    ),
    "schema with bounds": (
        messages(
            output_config={
                "format": {"type": "json_schema", "schema": {"type": "integer", "minimum": 1}}
            }
        ),
        "property 'minimum' is not supported",
    ),
    "schema with a list for properties": (
        messages(
            output_config={
                "format": {
                    "type": "json_schema",
                    "schema": {"type": "object", "additionalProperties": False, "properties": []},
                }
            }
        ),
        "[] is not an object under 'properties'",
    ),
    "open schema": (
        messages(output_config={"format": {"type": "json_schema", "schema": {"type": "object"}}}),
        "must be explicitly set to false",
    ),
    "prompt too long": (messages("word " * 201_000), "prompt is too long"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_refused(http: httpx.AsyncClient, case: str):
    body, fragment = REFUSED[case]
    answer = await http.post(PATHS["messages"], json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()
    assert fragment in error["error"]["message"]
    assert error["error"]["type"] == "invalid_request_error"
    assert error["type"] == "error"
    assert error["request_id"] == answer.headers["request-id"]


ACCEPTED: dict[str, dict[str, Any]] = {
    "empty tools": messages(tools=[]),
    "turns of one role": said(USER, USER),
    "result then text": said(USER, assistant(USE), user(RESULT, text("and?")), tools=TOOLS),
    "result without content": said(
        USER,
        assistant(USE),
        user({"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True}),
        tools=TOOLS,
    ),
    "thinking replayed": said(
        USER, assistant(THOUGHT, USE), user(RESULT), tools=TOOLS, thinking=THINKING
    ),
    "redacted thinking replayed": said(
        USER,
        assistant({"type": "redacted_thinking", "data": redact("x")}, USE),
        user(RESULT),
        tools=TOOLS,
        thinking=THINKING,
    ),
    "thinking withheld": said(USER, assistant({**THOUGHT, "thinking": ""}, text("x")), USER),
    "image": said(user(image(type="base64", media_type="image/png", data=PIXEL), text("?"))),
    "prefill": said(USER, {"role": "assistant", "content": "So"}),
    "system in the middle": following(messages=[USER, {"role": "system", "content": "x"}]),
    "temperature of one with thinking": thinking(temperature=1),
    "mark on the request": messages(cache_control=MARK),
    "hour before five minutes": messages(
        system=[text("x", cache_control=HOUR), text("y", cache_control=MARK)]
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
async def test_accepted(http: httpx.AsyncClient, case: str):
    answer = await http.post(PATHS["messages"], json=ACCEPTED[case])
    assert answer.status_code == 200, answer.text


async def test_credentials_versions_and_paths(http: httpx.AsyncClient):
    async def status(headers: dict[str, str], **fields: Any) -> tuple[int, str]:
        answer = await http.post(PATHS["messages"], json=messages(**fields), headers=headers)
        body = answer.json()
        return answer.status_code, body.get("error", body).get("message", "")

    nobody = {"authorization": ""}
    assert await status(nobody) == (401, "x-api-key header is required")
    assert (await status({**nobody, "x-api-key": "k"}))[0] == 200
    assert "not a valid version" in (await status({"anthropic-version": "2020-01-01"}))[1]
    newest = {"anthropic-version": "2026-10-21"}
    assert (await status(newest))[0] == 200
    assert "not supported in API version" in (await status(newest, top_p=1))[1]
    cited = [user(text("x", citations=[{"type": "char_location"}]))]
    assert "citations" in (await status(newest, messages=cited))[1]
    beta = {"anthropic-beta": "context-management-2025-06-27"}
    assert (await status(beta, context_management={}))[0] == 200
    del http.headers["anthropic-version"]
    assert "header is required" in (await status({}))[1]
    missing = await http.post("/v1/messages/batches", json={})
    assert missing.status_code == 404
    assert missing.json()["error"]["type"] == "not_found_error"


async def test_counting_takes_no_max_tokens(http: httpx.AsyncClient):
    body = messages()
    refused = await http.post("/v1/messages/count_tokens", json=body)
    assert "max_tokens: Extra inputs" in refused.json()["error"]["message"]
    del body["max_tokens"]
    assert (await http.post("/v1/messages/count_tokens", json=body)).json()["input_tokens"] == 10
