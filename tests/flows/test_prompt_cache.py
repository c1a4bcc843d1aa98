"""Clients that cannot mark a prompt cache, at a vendor that caches only what is marked: what a conversation costs."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from tests.support.node import CLAUDE_PRICES, Gateway

MODEL = "demo/claude-next"
RULES = "You are a coding agent. Read before you write, and run the tests. " * 250
OUTPUT = "line of a file that the agent has read\n" * 60
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
SHELL = {"type": "function", "name": "shell", "parameters": SCHEMA, "strict": False}
CODEX = {"session-id": "thread-1", "user-agent": "codex_exec/0.171.0", "originator": "codex_exec"}
TURNS = 5


@pytest.fixture
async def marking(gateway: Gateway) -> Gateway:
    """The gateway with `auto_cache` at its Anthropic-format provider."""
    body = {"flags": {"auto_cache": True}}
    await gateway.manage("PATCH", "/catalog/providers/anthropic-messages", body)
    return gateway


async def codex(gateway: Gateway, turns: int = TURNS) -> list[Any]:
    """A conversation as Codex has it: each turn sends all that was before and what its calls gave. Its records."""
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "developer", "content": [_input("Sandbox: read only.")]},
        {"type": "message", "role": "user", "content": [_input("Fix the failing test.")]},
    ]
    records = []
    for turn in range(turns):
        body = {
            "model": MODEL,
            "instructions": RULES,
            "input": items,
            "tools": [SHELL],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "reasoning": {"summary": "auto"},
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "thread-1",
        }
        reply = await gateway.client.post("/responses", json=body, headers=CODEX)
        assert reply.status_code == 200, reply.text
        records.append(await gateway.generation(reply))
        call = {"type": "function_call", "call_id": f"c{turn}", "name": "shell", "arguments": "{}"}
        items += [
            call,
            {"type": "function_call_output", "call_id": f"c{turn}", "output": f"{turn} {OUTPUT}"},
        ]
    return records


def _input(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def prompt_cost(record: Any) -> Decimal:
    """What the prompt of a record cost, by its tokens and the list price."""
    read, written = record["native_tokens_cached"], record["native_tokens_cache_write"]
    classes = {
        "prompt": record["tokens_prompt"] - read - written,
        "input_cache_read": read,
        "input_cache_write": written,
    }
    return sum(
        (Decimal(CLAUDE_PRICES[name]) * count for name, count in classes.items()), Decimal(0)
    )


async def test_every_turn_of_codex_reads_the_last_one(marking: Gateway) -> None:
    before = await marking.balance()
    records = await codex(marking)
    first, *later = records
    assert (first["native_tokens_cached"], first["native_tokens_cache_write"] > 2_000) == (0, True)
    for earlier, record in zip(records, later, strict=False):
        known = earlier["native_tokens_cached"] + earlier["native_tokens_cache_write"]
        assert record["native_tokens_cached"] == known
        assert record["native_tokens_cached"] > record["tokens_prompt"] * 0.7
        assert prompt_cost(record) < prompt_cost(first) / 2
    spent = sum((Decimal(str(record["total_cost"])) for record in records), Decimal(0))
    assert before - await marking.balance() == spent


async def test_the_record_says_to_the_nano_what_it_saved(marking: Gateway) -> None:
    price = Decimal(CLAUDE_PRICES["prompt"])
    records = await codex(marking, 3)
    for record in records:
        saved = record["tokens_prompt"] * price - prompt_cost(record)
        assert Decimal(str(record["cache_discount"])) == saved
    assert records[0]["cache_discount"] < 0 < records[1]["cache_discount"]
    plain = await marking.generation(await marking.chat())
    assert plain["cache_discount"] is None


async def test_without_marks_every_turn_is_paid_in_full(gateway: Gateway) -> None:
    records = await codex(gateway, 3)
    costs = [prompt_cost(record) for record in records]
    assert costs == sorted(costs)
    assert {record["native_tokens_cached"] for record in records} == {0}
    assert {record["cache_discount"] for record in records} == {None}


async def test_the_conversation_costs_less_than_half(gateway: Gateway) -> None:
    plain = sum(map(prompt_cost, await codex(gateway)), Decimal(0))
    body = {"flags": {"auto_cache": True}}
    await gateway.manage("PATCH", "/catalog/providers/anthropic-messages", body)
    marked = sum(map(prompt_cost, await codex(gateway)), Decimal(0))
    assert marked < plain / 2


def _chat(question: str, history: list[Any]) -> tuple[str, dict[str, Any]]:
    system = {"role": "system", "content": RULES}
    return "/chat/completions", {
        "messages": [system, *history, {"role": "user", "content": question}]
    }


def _messages(question: str, history: list[Any]) -> tuple[str, dict[str, Any]]:
    turns = [*history, {"role": "user", "content": question}]
    return "/messages", {"system": RULES, "messages": turns, "max_tokens": 500}


def _responses(question: str, history: list[Any]) -> tuple[str, dict[str, Any]]:
    asked = {"role": "user", "content": question}
    return "/responses", {"instructions": RULES, "input": [*history, asked], "store": False}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "ask", [_chat, _messages, _responses], ids=["chat", "messages", "responses"]
)
async def test_every_dialect_is_marked(marking: Gateway, ask: Any, *, stream: bool) -> None:
    history: list[Any] = []
    cached = []
    for question in ("one", "two", "three"):
        path, body = ask(question, history)
        reply = await marking.client.post(path, json={"model": MODEL, "stream": stream, **body})
        assert reply.status_code == 200, reply.text
        record = await marking.generation(reply)
        cached.append(record["native_tokens_cached"] / record["tokens_prompt"])
        history += [
            {"role": "user", "content": question},
            {"role": "assistant", "content": f"It is {question}."},
        ]
    assert cached[0] == 0
    assert min(cached[1:]) > 0.9


async def test_a_deferred_tool_is_passed_over(marking: Gateway) -> None:
    later = {"name": "later", "input_schema": SCHEMA, "defer_loading": True}
    body = {
        "model": MODEL,
        "max_tokens": 500,
        "messages": [{"role": "user", "content": RULES}],
        "tools": [{"name": "shell", "input_schema": SCHEMA}, later],
    }
    for cached in (False, True):
        reply = await marking.client.post("/messages", json=body)
        assert reply.status_code == 200, reply.text
        record = await marking.generation(reply)
        assert (record["native_tokens_cached"] > 2_000) is cached


async def test_a_client_that_marks_is_sent_on_as_it_is(marking: Gateway) -> None:
    mark = {"type": "ephemeral", "ttl": "1h"}
    body = {
        "model": MODEL,
        "max_tokens": 500,
        "system": [{"type": "text", "text": RULES, "cache_control": mark}],
        "messages": [{"role": "user", "content": "one"}],
        "tools": [{"name": "shell", "input_schema": SCHEMA}],
    }
    reply = await marking.client.post("/messages", json=body)
    assert reply.status_code == 200, reply.text
    sent = marking.vendor.calls.last.body
    assert msgspec.json.encode(sent).count(b"cache_control") == 1
    assert sent is not None
    assert sent["system"][0]["cache_control"] == mark


async def test_the_hold_covers_what_is_written(marking: Gateway) -> None:
    path, body = _chat("one", [])
    reply = await marking.client.post(path, json={"model": MODEL, "max_tokens": 1, **body})
    assert reply.status_code == 200
    record = await marking.generation(reply)
    assert record["native_tokens_cache_write"] > record["tokens_prompt"] * 0.9
    held_nano = await marking.store.read(_held, record["id"])
    assert (
        held_nano >= record["tokens_prompt"] * Decimal(CLAUDE_PRICES["input_cache_write"]) * 10**9
    )


def _held(connection: Any, generation_id: str) -> int:
    row = connection.row(
        "SELECT amount_nano FROM reservation WHERE generation_id = ?", (generation_id,)
    )
    return int(row[0])
