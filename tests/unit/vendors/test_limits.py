"""How much one answer may hold, in every format, whole and streamed: what is at the limit is taken, one more is not."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from gwd.core.sse import MAX_EVENT_LINES, SseError, SseSplitter
from gwd.core.structure import MAX_DEPTH, MAX_FIELDS, MAX_STRUCTURAL_BYTES
from gwd.dialects.chat_completions import DIALECT
from gwd.vendors import anthropic_messages, gemini, openai_chat, openai_responses
from gwd.vendors.base import MAX_CALLS, MAX_PARTS, Adapter, UndecodableError
from gwd.vendors.openai_chat.arguments import Arguments
from gwd.vendors.streamed import decode_streamed
from gwd.vendors.structure import check_structure
from tests.golden import golden

REQUEST = DIALECT.parse(b'{"model":"a/b","messages":[{"role":"user","content":"hi"}]}', {})


def _chat(calls: int) -> tuple[Any, Iterable[Any]]:
    made = [
        {"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": "{}"}}
        for n in range(calls)
    ]
    end = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
    whole = {"choices": [{"message": {"tool_calls": made}, "finish_reason": "tool_calls"}]}
    return whole, [*({"choices": [{"delta": {"tool_calls": [call]}}]} for call in made), end]


def _messages(calls: int) -> tuple[Any, Iterable[Any]]:
    blocks = [{"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}} for n in range(calls)]
    events = [
        {"type": "content_block_start", "index": n, "content_block": block}
        for n, block in enumerate(blocks)
    ]
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    whole = {"type": "message", "content": blocks, "stop_reason": "tool_use"}
    return whole, [*events, end, {"type": "message_stop"}]


def _gemini(calls: int) -> tuple[Any, Iterable[Any]]:
    def chunk(count: int, **more: Any) -> Any:
        parts = [{"functionCall": {"name": "f", "args": {}}}] * count
        return {"candidates": [{"content": {"parts": parts}, **more}]}

    return (
        chunk(calls, finishReason="STOP"),
        [*(chunk(1) for _ in range(calls)), chunk(0, finishReason="STOP")],
    )


def _responses(calls: int) -> tuple[Any, Iterable[Any]]:
    items = [
        {"type": "function_call", "id": f"i{n}", "call_id": f"c{n}", "name": "f", "arguments": "{}"}
        for n in range(calls)
    ]
    whole = {"status": "completed", "output": items}
    events = [
        {"type": "response.output_item.done", "output_index": n, "item": item}
        for n, item in enumerate(items)
    ]
    return whole, [*events, {"type": "response.completed", "response": {"status": "completed"}}]


FORMATS: list[tuple[Adapter, Any]] = [
    (openai_chat.ADAPTER, _chat),
    (anthropic_messages.ADAPTER, _messages),
    (gemini.ADAPTER, _gemini),
    (openai_responses.ADAPTER, _responses),
]


def test_calls_of_an_answer_are_counted_in_every_format() -> None:
    wrong = []
    for adapter, made in FORMATS:
        target = golden.target(adapter.format.name)
        for calls, is_taken in ((MAX_CALLS, True), (MAX_CALLS + 1, False)):
            whole, frames = made(calls)
            wire = b"".join(b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames)
            for form, decode in (
                (
                    "whole",
                    lambda w=whole, a=adapter, t=target: a.decode(
                        json.dumps(w).encode(), REQUEST, t
                    ),
                ),
                (
                    "stream",
                    lambda b=wire, a=adapter, t=target: decode_streamed(b, a.decoder(REQUEST, t)),
                ),
            ):
                try:
                    found = sum(getattr(e, "kind", "") == "tool_call" for e in decode())
                except UndecodableError:
                    found = -1
                if found != (calls if is_taken else -1):
                    wrong.append((adapter.format.name, form, calls, found))
    assert wrong == []


def test_parts_of_an_answer_are_counted() -> None:
    parts = [{"type": "text", "text": "a"}] * (MAX_PARTS + 1)
    body = {"type": "message", "content": parts, "stop_reason": "end_turn"}
    target = golden.target("anthropic_messages")
    with pytest.raises(UndecodableError, match=str(MAX_PARTS)):
        anthropic_messages.ADAPTER.decode(json.dumps(body).encode(), REQUEST, target)


def test_lines_of_an_event_are_counted_and_what_came_before_is_given() -> None:
    for lines, is_taken in ((MAX_EVENT_LINES, True), (MAX_EVENT_LINES + 2, False)):
        wire = b"data: x\n\n" + b"data: 1\n" * lines + b"\n"
        for size in (len(wire), 4_096, 7):
            splitter, frames, refused = SseSplitter(), 0, False
            try:
                for start in range(0, len(wire), size):
                    frames += len(splitter.feed(wire[start : start + size]))
                frames += len(splitter.close())
            except SseError:
                refused = True
            assert (frames, refused) == ((2, False) if is_taken else (1, True)), (lines, size)


def test_structure_of_a_vendor_s_text_has_the_limits_of_a_client_s() -> None:
    pad = " " * 70_000
    rows = [
        ("elements", "[" + "1," * (MAX_STRUCTURAL_BYTES - 2) + "1]", True),
        ("too many elements", "[" + "1," * MAX_STRUCTURAL_BYTES + "1]", False),
        ("too many fields", "{" + '"a" :1,' * (MAX_FIELDS + 1) + '"b":1}', False),
        ("colons in a text", json.dumps({"a": '":' * (MAX_FIELDS + 1)}), True),
        ("levels", pad + "[" * MAX_DEPTH + "]" * MAX_DEPTH, True),
        ("too many levels", pad + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), False),
        ("no JSON", "<" * 100_000, True),
    ]
    wrong = []
    for name, text, is_taken in rows:
        try:
            check_structure(text.encode())
            taken = True
        except UndecodableError:
            taken = False
        if taken != is_taken:
            wrong.append(name)
    assert wrong == []
    numbers = b"[" + b"1.5," * 2 * MAX_STRUCTURAL_BYTES + b"1]"
    check_structure(numbers, has_vectors=True)


def test_arguments_are_whole_when_their_last_bracket_is_there_however_they_are_cut() -> None:
    rows = [
        ('{"a":1}', True),
        (' {"a": "}"} \n', True),
        ('{"a":"\\"}"}', True),
        ('{"a":"\\\\"}', True),
        ('{"a":[{"b":[]}]}', True),
        ('{"a":', False),
        ('{"a":"}', False),
        ('{"a":1}x', False),
        ('{"a":1}{}', False),
        ("[1]", False),
        ("x{}", False),
        ('{"a":]}', False),
        ("{x}", False),
        ("", False),
    ]
    wrong = []
    for text, is_whole in rows:
        for size in (1, 2, 3, 100):
            arguments = Arguments()
            for start in range(0, len(text), size):
                arguments._pieces.append(text[start : start + size])
                arguments._unfollowed.append(text[start : start + size])
                arguments.is_complete()
            if arguments.is_complete() != is_whole:
                wrong.append((text, size))
    assert wrong == []
