"""Where `auto_cache` sets cache marks, for which clients, and that nobody else gets any."""

import itertools
from typing import Any

import msgspec
import pytest

from gwd.core.request import Request
from gwd.core.target import Flags
from gwd.dialects.responses import DIALECT as RESPONSES
from gwd.vendors.anthropic_messages import ADAPTER
from tests.golden import golden
from tests.golden.test_anthropic_rules import PNG, TOOL, assistant, chat, own, result, user

MARK = {"type": "ephemeral"}
SYSTEM = {"role": "system", "content": "Rules."}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
THINKING = {"type": "thinking", "thinking": "t", "signature": "cw=="}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
OWN_TOOL: dict[str, Any] = {"name": "look", "input_schema": {"type": "object"}}
SHAPE = {"type": "object", "properties": {"n": {"type": "integer"}}}
ANSWER = {"type": "json_schema", "json_schema": {"name": "n", "schema": SHAPE}}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def sent(request: Request, **flags: Any) -> dict[str, Any]:
    to = golden.target("anthropic_messages", flags=Flags(**flags))
    body: dict[str, Any] = msgspec.json.decode(ADAPTER.build(request, to).body)
    return body


def places(body: dict[str, Any]) -> list[str]:
    """Where the marks of a body are, in the order of the prompt: `tools.1`, `system.0`, `messages.2.0`."""
    found = [f"tools.{n}" for n, tool in enumerate(body.get("tools", ())) if _is_marked(tool)]
    found += [f"system.{n}" for n, block in enumerate(body.get("system", ())) if _is_marked(block)]
    for turn, message in enumerate(body["messages"]):
        blocks = enumerate(message["content"])
        found += [f"messages.{turn}.{n}" for n, block in blocks if _is_marked(block)]
    return found


def _is_marked(block: dict[str, Any]) -> bool:
    mark = block.get("cache_control")
    assert mark in (None, MARK)
    return mark is not None


def rounds(count: int) -> list[dict[str, Any]]:
    """An agent's rounds: a call and its result each."""
    calls = [(assistant("I look.", f"c{n}"), result(f"c{n}")) for n in range(count)]
    return [user("q"), *itertools.chain.from_iterable(calls)]


LONG = [assistant("Many.", *(f"c{n}" for n in range(30))), *(result(f"c{n}") for n in range(30))]

MARKED: dict[str, tuple[Request, list[str]]] = {
    "a lone question": (chat(), []),
    "a lone question with a system text": (chat(SYSTEM, user("q")), ["system.0"]),
    "the last block of a system text": (
        own(system=[text("a"), text("b")]),
        ["system.1"],
    ),
    "tools only": (chat(user("q"), tools=[TOOL]), ["tools.0", "messages.0.0"]),
    "a tool that must be called is no agent's": (
        chat(user("q"), tools=[TOOL], tool_choice="required"),
        ["tools.0"],
    ),
    "nor is the answer's own tool": (chat(user("q"), response_format=ANSWER), ["tools.0"]),
    "a conversation": (
        chat(user("a"), assistant("b"), user("c")),
        ["messages.0.0", "messages.2.0"],
    ),
    "all four": (
        chat(SYSTEM, user("a"), assistant("b"), user("c"), tools=[TOOL]),
        ["tools.0", "system.0", "messages.0.0", "messages.2.0"],
    ),
    "the last two questions of many": (
        chat(SYSTEM, *rounds(4), tools=[TOOL]),
        ["tools.0", "system.0", "messages.6.0", "messages.8.0"],
    ),
    "more than 20 blocks between them": (
        chat(user("q"), *LONG, tools=[TOOL]),
        ["tools.0", "messages.0.0", "messages.2.29"],
    ),
    "text behind results": (
        chat(user("q"), assistant(None, "c"), result("c"), user("go on"), tools=[TOOL]),
        ["tools.0", "messages.0.0", "messages.2.1"],
    ),
    "tool results, pictures, thinking": (
        own(
            user([IMAGE]),
            {"role": "assistant", "content": [THINKING, CALL]},
            user([RESULT]),
            tools=[OWN_TOOL],
        ),
        ["tools.0", "messages.0.0", "messages.2.0"],
    ),
    "a question whose end takes no mark": (
        own(user([text("a"), {"type": "container_upload", "file_id": "f"}]), tools=[OWN_TOOL]),
        ["tools.0", "messages.0.0"],
    ),
    "an answer that the client has begun": (
        chat(user("a"), assistant("b"), user("c"), assistant("It is")),
        ["messages.0.0", "messages.2.0"],
    ),
    "no tool that is deferred": (
        own(tools=[OWN_TOOL, {**OWN_TOOL, "name": "later", "defer_loading": True}]),
        ["tools.0", "messages.0.0"],
    ),
    "no tool that the vendor runs": (
        own(tools=[OWN_TOOL, {"type": "web_search_20250305", "name": "web_search"}]),
        ["tools.0", "messages.0.0"],
    ),
}
"""What is asked, and where it is marked."""

CLIENTS_OWN: dict[str, Request] = {
    "a tool": own(system="s", tools=[{**OWN_TOOL, "cache_control": MARK}]),
    "the system text": own(system=[text("s", cache_control=MARK)], tools=[OWN_TOOL]),
    "a message": own(user([text("q", cache_control=MARK), text("r")]), tools=[OWN_TOOL]),
    "a result": own(
        user("q"),
        {"role": "assistant", "content": [CALL]},
        user([{**RESULT, "cache_control": MARK}]),
    ),
    "what a result holds": own(
        user("q"),
        {"role": "assistant", "content": [CALL]},
        user([{**RESULT, "content": [text("done", cache_control=MARK)]}]),
    ),
    "the request": own(system="s", tools=[OWN_TOOL], cache_control=MARK),
    "a chat message": chat({**user("q"), "cache_control": MARK}, tools=[TOOL]),
    "a text that is left out": chat(user([text("q"), text(" ", cache_control=MARK)]), tools=[TOOL]),
}
"""Clients that set a mark, by where they set it."""


def test_marks_stand_where_the_next_request_begins_alike():
    found = {
        name: places(
            sent(request, auto_cache=True, thinking_form="budget", native_json_schema=False)
        )
        for name, (request, _) in MARKED.items()
    }
    assert found == {name: wanted for name, (_, wanted) in MARKED.items()}


def test_without_the_flag_nothing_is_marked():
    assert [name for name, (request, _) in MARKED.items() if places(sent(request))] == []


@pytest.mark.parametrize("name", CLIENTS_OWN)
def test_a_client_that_marks_anything_is_left_alone(name: str):
    request = CLIENTS_OWN[name]
    assert sent(request, auto_cache=True) == sent(request)


def test_the_next_request_marks_where_the_last_one_ended():
    """Whatever is added between two requests of an agent, the second finds what the first wrote."""
    for count in range(5):
        before = chat(SYSTEM, *rounds(count), tools=[TOOL])
        after = chat(SYSTEM, *rounds(count + 1), tools=[TOOL])
        end = places(sent(before, auto_cache=True))[-1]
        assert end in places(sent(after, auto_cache=True))


def test_the_request_itself_is_not_changed():
    """It may go on to an endpoint that wants no marks."""
    asked = MARKED["no tool that the vendor runs"][0]
    plain = sent(asked)
    sent(asked, auto_cache=True)
    assert sent(asked) == plain


def test_a_codex_request_is_marked_too():
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "done"},
    ]
    shell = {"type": "function", "name": "shell", "parameters": {"type": "object"}}
    body = {"model": "m/m", "instructions": "Rules.", "input": items, "tools": [shell]}
    asked = RESPONSES.parse(msgspec.json.encode({**body, "store": False}), {})
    assert places(sent(asked, auto_cache=True)) == [
        *("tools.0", "system.0"),
        *("messages.0.0", "messages.2.0"),
    ]
