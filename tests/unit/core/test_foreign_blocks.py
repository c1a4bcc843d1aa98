"""Blocks that only one format knows: named to any other model, and refused where they are the whole question."""

from typing import Any

import msgspec
import pytest

from gwd.core.errors import UnsupportedContent
from gwd.core.foreign_blocks import refuse_foreign_question
from gwd.core.request import Generate, Message, Request, TextPart, ToolResultPart
from gwd.dialects import chat_completions
from gwd.dialects.base import Dialect
from gwd.dialects.messages import DIALECT
from gwd.dialects.responses import dialect as responses

UPLOAD = {"type": "container_upload", "file_id": "f"}
TEXT = {"type": "text", "text": "read it"}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "x"}


def asked(*content: dict[str, Any], after: list[dict[str, Any]] | None = None) -> Request:
    messages = [{"role": "user", "content": "first"}, {"role": "user", "content": list(content)}]
    body = {"model": "m", "messages": messages + (after or []), "system": "s"}
    return DIALECT.parse(msgspec.json.encode(body), {})


@pytest.mark.parametrize("family", ["openai_chat", "openai_responses", None])
@pytest.mark.parametrize("after", [[], [{"role": "system", "content": "reminder"}]])
def test_it_is_refused_and_the_blocks_are_named(family: Any, after: list[dict[str, Any]]):
    with pytest.raises(UnsupportedContent, match="container_upload, later_kind") as caught:
        refuse_foreign_question(asked(UPLOAD, {"type": "later_kind"}, after=after), family, "m")
    assert caught.value.code == "unsupported_content"
    assert "`m`" in caught.value.message


def test_its_own_family_reads_it():
    refuse_foreign_question(asked(UPLOAD), "anthropic_messages", "m")


@pytest.mark.parametrize("content", [[UPLOAD, TEXT], [UPLOAD, IMAGE], [RESULT, UPLOAD], [TEXT], []])
def test_a_message_that_says_something_is_left_alone(content: list[dict[str, Any]]):
    refuse_foreign_question(asked(*content), None, "m")


def test_an_earlier_message_is_left_alone():
    refuse_foreign_question(asked(UPLOAD, after=[{"role": "user", "content": "more"}]), None, "m")


def messages_of(request: Request) -> tuple[Message, ...]:
    assert isinstance(request.body, Generate)
    return request.body.messages


def test_blocks_inside_results_are_told_in_every_dialect():
    """A result of such blocks alone would be empty, and the model would take it for nothing found."""
    reference = {"type": "tool_reference", "tool_name": "WebFetch"}
    page = {"type": "web_page", "url": "https://x.example", "blob": "A" * 5000, "note": None}
    linked = '[web_page: {"url":"https://x.example","blob":"… (5000 characters)"}]'
    table: list[tuple[dict[str, Any], str]] = [
        (reference, "[tool_reference: WebFetch]"),
        (page, linked),
        ({"type": "web_page", "cache_control": {"type": "ephemeral"}}, "[web_page]"),
        (
            {"type": "resource", "resource": {"text": "a b"}},
            '[resource: {"resource":{"text":"a b"}}]',
        ),
    ]
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    found = {}
    for block, _ in table:
        by_dialect: dict[str, tuple[Dialect, dict[str, Any]]] = {
            "chat": (
                chat_completions.DIALECT,
                {
                    "messages": [
                        {"role": "user", "content": "x"},
                        {"role": "assistant", "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": "c", "content": [block]},
                    ]
                },
            ),
            "messages": (
                DIALECT,
                {
                    "max_tokens": 9,
                    "messages": [
                        {"role": "user", "content": "x"},
                        {
                            "role": "assistant",
                            "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
                        },
                        {"role": "user", "content": [{**RESULT, "content": [block]}]},
                    ],
                },
            ),
            "responses": (
                responses.DIALECT,
                {
                    "input": [
                        {"role": "user", "content": "x"},
                        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                        {"type": "function_call_output", "call_id": "c", "output": [block]},
                    ]
                },
            ),
        }
        for name, (dialect, body) in by_dialect.items():
            request = dialect.parse(msgspec.json.encode({"model": "m", **body}), {})
            [result] = messages_of(request)[-1].parts
            assert isinstance(result, ToolResultPart)
            texts = [part.text for part in result.parts if isinstance(part, TextPart)]
            found[name, block["type"], len(block)] = texts
    assert found == {
        (name, block["type"], len(block)): [text]
        for block, text in table
        for name in ("chat", "messages", "responses")
    }


def test_blocks_of_earlier_turns_are_told_too():
    ran = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "a b"}}
    request = asked(
        TEXT, after=[{"role": "assistant", "content": [ran]}, {"role": "user", "content": "y"}]
    )
    reported = '[server_tool_use: {"id":"s","name":"web_search","input":{"query":"a b"}}]'
    assert messages_of(request)[-2].parts == (TextPart(text=reported, extras=ran),)
    later = {"type": "agent_note", "id": "n", "text": "done so far"}
    body = {
        "model": "m",
        "input": [{"role": "user", "content": "x"}, later, {"role": "user", "content": "y"}],
    }
    parsed = responses.DIALECT.parse(msgspec.json.encode(body), {})
    reported = '[agent_note: {"id":"n","text":"done so far"}]'
    assert messages_of(parsed)[1].parts == (TextPart(text=reported, extras={"item": later}),)
