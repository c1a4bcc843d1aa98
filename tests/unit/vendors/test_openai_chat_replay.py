"""Which turns' reasoning goes back to an OpenAI-format server, and under which name: the endpoint's flags decide."""

from typing import Any

import msgspec

from gwd.core.target import Flags
from gwd.dialects import chat_completions, messages
from gwd.vendors.openai_chat import ADAPTER
from tests.golden.golden import target

USER = {"role": "user", "content": "x"}


def turn(name: str) -> list[dict[str, Any]]:
    """A turn with a call, and the answer that the model gave after it."""
    call = {"id": name, "function": {"name": "f", "arguments": "{}"}}
    return [
        {"role": "assistant", "reasoning_content": f"{name} calls", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": "1"},
        {"role": "assistant", "reasoning_content": f"{name} ends", "content": "done"},
    ]


PLAIN = {"role": "assistant", "reasoning_content": "plain", "content": "hello"}
# A plain turn, a tool turn that is over, and one that is still open.
CONVERSATION = [USER, PLAIN, USER, *turn("one"), USER, *turn("two")[:2]]
TOOL_TURNS = [None, "one calls", "one ends", "two calls"]


def sent(flags: Flags, *, words: tuple[str, ...] = ("tools", "reasoning"), **fields: Any) -> list:
    body = {"model": "test/model", "messages": CONVERSATION, **fields}
    request = chat_completions.DIALECT.parse(msgspec.json.encode(body), {})
    to = target("openai_chat", flags=flags, supported_parameters=frozenset(words))
    built = msgspec.json.decode(ADAPTER.build(request, to).body)["messages"]
    return [message for message in built if message["role"] == "assistant"]


def test_the_flag_decides_which_turns_reasoning_goes_back():
    table = {
        "tool turns": (Flags(reasoning_replay="tool_turns"), TOOL_TURNS),
        "open loop": (Flags(reasoning_replay="open_loop"), [None, None, None, "two calls"]),
        "none": (Flags(reasoning_replay="none"), [None] * 4),
        "unset": (Flags(), TOOL_TURNS),
        "unset at OpenAI's own": (Flags(developer_role=True), [None] * 4),
        "set at OpenAI's own": (
            Flags(developer_role=True, reasoning_replay="tool_turns"),
            TOOL_TURNS,
        ),
    }
    got = {
        name: [message.get("reasoning_content") for message in sent(flags)]
        for name, (flags, _) in table.items()
    }
    assert got == {name: wanted for name, (_, wanted) in table.items()}


def test_a_model_that_does_not_reason_gets_it_only_where_the_flag_says_so():
    words = ("tools",)
    unset = sent(Flags(), words=words)
    reported = sent(Flags(reasoning_replay="tool_turns"), words=words)
    assert [m.get("reasoning_content") for m in unset] == [None] * 4
    assert [m.get("reasoning_content") for m in reported] == TOOL_TURNS


def test_the_other_flag_names_the_field():
    plain = sent(Flags(reasoning_field="reasoning"))
    details = sent(Flags(reasoning_field="reasoning_details"))
    assert [m.get("reasoning") for m in plain] == TOOL_TURNS
    assert [m.get("reasoning_details") for m in details] == [
        None if text is None else [{"type": "reasoning.text", "text": text, "index": 0}]
        for text in TOOL_TURNS
    ]
    assert not any("reasoning_content" in message for message in plain + details)


def test_results_beside_text_of_the_user_open_no_new_turn_and_text_alone_does():
    """A messages client puts results and its own words into one message."""
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    thinking = {"type": "thinking", "thinking": "hm", "signature": ""}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "1"}
    body = {
        "model": "test/model",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": [thinking, call]},
            {"role": "user", "content": [result, {"type": "text", "text": "go on"}]},
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    }
    request = messages.DIALECT.parse(msgspec.json.encode(body), {})
    built = {
        wanted: msgspec.json.decode(
            ADAPTER.build(request, target("openai_chat", flags=Flags(reasoning_replay=wanted))).body
        )["messages"]
        for wanted in ("open_loop", "tool_turns")
    }
    assert built["tool_turns"][1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in built["open_loop"][1]
