"""What the responses dialect refuses, drops and resolves; wrong input always names the field."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from gwd.core import errors
from gwd.core.request import Generate, ReasoningPart, TextPart, ToolCallPart
from gwd.dialects.responses import DIALECT, ResponsesRequest

FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}
SEARCH = {"type": "web_search", "external_web_access": False}


def parse(headers: dict[str, str] | None = None, **fields: Any) -> ResponsesRequest:
    body = {"model": "test/model", "input": "Hi", **fields}
    return DIALECT.parse(msgspec.json.encode(body), headers or {})


def generate(request: ResponsesRequest) -> Generate:
    assert isinstance(request.body, Generate)
    return request.body


def user(*content: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(content)}]


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"model": 7}, "invalid_value", "model"),
        ({"input": None}, "missing_parameter", "input"),
        ({"input": ""}, "invalid_value", "input"),
        ({"input": []}, "invalid_value", "input"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "invalid_value", "input"),
        ({"input": 7}, "invalid_value", "input"),
        ({"input": ["Hi"]}, "invalid_value", "input[0]"),
        ({"input": [{"content": "x"}]}, "missing_parameter", "input[0].type"),
        ({"input": [{"type": 7}]}, "invalid_value", "input[0].type"),
        ({"input": [{"role": "tool", "content": "x"}]}, "invalid_value", "input[0].role"),
        ({"input": [{"role": "user"}]}, "missing_parameter", "input[0].content"),
        ({"input": user({"text": "x"})}, "missing_parameter", "input[0].content[0].type"),
        ({"input": user({"type": "input_text"})}, "missing_parameter", "input[0].content[0].text"),
        (
            {"input": user({"type": "input_text", "text": 7})},
            "invalid_value",
            "input[0].content[0].text",
        ),
        (
            {"input": user({"type": "input_audio", "input_audio": {}})},
            "unsupported_content",
            "input[0].content[0].type",
        ),
        ({"input": user({"type": "input_image"})}, "invalid_image", "input[0].content[0]"),
        (
            {"input": user({"type": "input_image", "image_url": "file:///etc/passwd"})},
            "invalid_image",
            "input[0].content[0].image_url",
        ),
        (
            {"input": user({"type": "input_image", "image_url": "data:image/png;base64,***"})},
            "invalid_image",
            "input[0].content[0].image_url",
        ),
        (
            {"input": user({"type": "input_image", "image_url": "data:text/plain;base64,aGk="})},
            "invalid_image",
            "input[0].content[0].image_url",
        ),
        ({"input": user({"type": "input_file"})}, "invalid_value", "input[0].content[0]"),
        (
            {"input": user({"type": "input_file", "file_url": "ftp://x/y"})},
            "invalid_value",
            "input[0].content[0].file_url",
        ),
        (
            {"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]},
            "missing_parameter",
            "input[0].call_id",
        ),
        ({"previous_response_id": "resp_1"}, "unsupported_parameter", "previous_response_id"),
        ({"conversation": {"id": "conv_1"}}, "unsupported_parameter", "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "unsupported_parameter", "prompt"),
        ({"background": True}, "unsupported_parameter", "background"),
        ({"max_output_tokens": 0}, "invalid_value", "max_output_tokens"),
        ({"max_output_tokens": "many"}, "invalid_value", "max_output_tokens"),
        ({"temperature": "hot"}, "invalid_value", "temperature"),
        ({"reasoning": {"effort": "huge"}}, "invalid_value", "reasoning.effort"),
        ({"reasoning": {"max_tokens": 0}}, "invalid_value", "reasoning.max_tokens"),
        ({"text": {"format": {"type": "xml"}}}, "invalid_value", "text.format.type"),
        (
            {"text": {"format": {"type": "json_schema"}}},
            "missing_parameter",
            "text.format.schema",
        ),
        ({"tools": [{"name": "f"}]}, "missing_parameter", "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "missing_parameter", "tools[0].name"),
        ({"tools": [{"type": "function", "name": ""}]}, "invalid_value", "tools[0].name"),
        (
            {"tools": [{**FUNCTION, "parameters": ["x"]}]},
            "invalid_value",
            "tools[0].parameters",
        ),
        (
            {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]},
            "missing_parameter",
            "tools[0].tools[0].name",
        ),
        ({"tools": [FUNCTION], "tool_choice": "sometimes"}, "invalid_value", "tool_choice"),
        (
            {"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "g"}},
            "invalid_value",
            "tool_choice.name",
        ),
        ({"metadata": {str(i): "x" for i in range(17)}}, "invalid_value", "metadata"),
        ({"metadata": {"k": "x" * 513}}, "invalid_value", "metadata"),
        ({"session_id": "x" * 257}, "invalid_value", "session_id"),
        ({"tools": [FUNCTION] * 513}, "invalid_value", "tools"),
    ],
)
def test_wrong_input_is_refused_by_name(fields: dict[str, Any], code: str, param: str):
    with pytest.raises(errors.InvalidRequest) as caught:
        parse(**fields)
    assert (caught.value.code, caught.value.param) == (code, param)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"nonsense",
        b"\xff\xfe",
        b'{"model":"m","input":NaN}',
        b'{"model":"m","input":"\\ud800"}',
        b'{"model":"m","input":' + b"[" * 3_000 + b"]" * 3_000 + b"}",
        b'{"model":"m","input":[' + b"{}," * 400_000 + b"{}]}",
        b'{"model":"m","input":"x","temperature":1e999}',
    ],
    ids=["nothing", "list", "text", "bytes", "nan", "surrogate", "deep", "huge", "infinite"],
)
def test_a_malformed_body_is_the_clients_fault(body: bytes):
    with pytest.raises(errors.InvalidRequest):
        DIALECT.parse(body, {})


def test_hosted_tools_are_dropped_and_counted():
    """A default client always sends one, so it is no reason to refuse."""
    request = parse(tools=[SEARCH, FUNCTION, {"type": "image_generation"}], tool_choice="auto")
    assert request.dropped_tools == ("web_search", "image_generation")
    assert [tool.name for tool in generate(request).tools] == ["f"]


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [SEARCH, FUNCTION], "tool_choice": {"type": "web_search"}},
        {"tools": [SEARCH], "tool_choice": "required"},
        {
            "tools": [SEARCH, FUNCTION],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "web_search"}],
            },
        },
    ],
    ids=["named", "required", "allowed"],
)
def test_a_hosted_tool_that_must_run_is_refused(fields: dict[str, Any]):
    with pytest.raises(errors.UnsupportedTool):
        parse(**fields)


def test_a_choice_among_hosted_tools_only_means_no_tool():
    tools = [{"type": "web_search"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": tools}
    parsed = generate(parse(tools=[SEARCH, FUNCTION], tool_choice=choice)).tool_choice
    assert parsed is not None
    assert parsed.mode == "none"


def test_stored_answers_are_asked_for_in_vain_but_not_refused():
    request = parse(store=True, background=False, previous_response_id=None)
    assert request.extras is None


def test_the_codex_session_header_is_the_session_where_no_other_is_given():
    assert parse({"session-id": "codex"}).sender.session_id == "codex"
    assert parse({"session-id": "codex", "x-gw-session-id": "ours"}).sender.session_id == "ours"
    assert parse({"session-id": "codex"}, session_id="body").sender.session_id == "body"


class Held:
    """Items that a caller was sent earlier."""

    def __init__(self, items: dict[str, dict[str, Any]]) -> None:
        self.items = items

    def remember(self, items: Mapping[str, bytes]) -> None:
        self.items.update({key: msgspec.json.decode(item) for key, item in items.items()})

    def recall(self, item_id: str) -> dict[str, Any] | None:
        return self.items.get(item_id)


def test_a_reference_is_resolved_from_memory_or_skipped():
    """Skipping keeps calls and results paired, refusing would break the client."""
    held: dict[str, dict[str, Any]] = {
        "rs_1": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        "fc_1": {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    }
    items = [
        {"role": "user", "content": "Hi"},
        {"type": "item_reference", "id": "rs_1"},
        {"id": "fc_1"},
        {"type": "item_reference", "id": "msg_forgotten"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
    ]
    body = msgspec.json.encode({"model": "m", "input": items})
    found = generate(DIALECT.remembering(Held(held)).parse(body, {}))
    assert [type(part) for part in found.messages[1].parts] == [ReasoningPart, ToolCallPart]
    skipped = generate(DIALECT.parse(body, {}))
    assert [message.role for message in skipped.messages] == ["user", "tool"]


def test_foreign_history_is_skipped_unless_it_belongs_to_something_kept():
    foreign = {"type": "local_shell_call", "id": "ls_1", "call_id": "c1", "action": {}}
    alone = [{"role": "user", "content": "Hi"}, foreign]
    assert len(generate(parse(input=alone)).messages) == 1
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    with pytest.raises(errors.UnsupportedContent) as caught:
        parse(input=[*alone, output])
    assert caught.value.param == "input[1].type"


def test_text_holds_whatever_a_string_can_hold():
    text = "a\u0000b\u2028c \U0001f30d"
    assert generate(parse(input=text)).messages[0].parts == (TextPart(text=text),)


def test_a_summary_wish_alone_asks_no_parameter_of_a_model():
    """Codex always sends one; it must not narrow the choice of endpoints."""
    assert "reasoning" not in parse(reasoning={"summary": "auto"}).sent_parameters
    assert "reasoning" in parse(reasoning={"effort": "low"}).sent_parameters


def test_an_error_is_told_in_the_chat_envelope():
    body = DIALECT.error(errors.InvalidValue("bad", param="input"), "req_1")
    error = msgspec.json.decode(body)["error"]
    assert (error["code"], error["param"], error["status"]) == ("invalid_value", "input", 400)
