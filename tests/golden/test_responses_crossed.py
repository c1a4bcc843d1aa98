"""Responses clients at other vendors, and other clients at responses vendors: a few scenarios from end to end."""

from pathlib import Path

import msgspec
import pytest

from gwd.core.request import Request
from gwd.core.target import Flags
from gwd.dialects import chat_completions, messages
from gwd.dialects.base import Dialect
from gwd.vendors import anthropic_messages, openai_chat, openai_responses
from gwd.vendors.base import Adapter
from tests.golden import golden
from tests.golden.test_responses import RENDERING, asked

REQUESTS: tuple[tuple[Dialect, Adapter, tuple[str, ...]], ...] = (
    (
        RENDERING,
        openai_chat.ADAPTER,
        (
            "system",
            "multi_turn",
            "image",
            "tool_call__custom",
            "tool_call__namespace",
            "tool_result",
            "parallel_tool_calls",
            "reasoning_replay",
            "json_schema",
            "full",
        ),
    ),
    (
        RENDERING,
        anthropic_messages.ADAPTER,
        (
            "system",
            "image",
            "file",
            "tool_call__custom",
            "tool_call__namespace",
            "tool_result",
            "parallel_tool_calls",
            "reasoning_replay",
            "json_schema",
            "cache_control",
            "cache_control__automatic",
            "full",
        ),
    ),
    (
        chat_completions.DIALECT,
        openai_responses.ADAPTER,
        ("system", "image", "tool_result", "parallel_tool_calls", "reasoning_replay", "full"),
    ),
    (
        messages.DIALECT,
        openai_responses.ADAPTER,
        ("system", "image", "tool_result", "parallel_tool_calls", "reasoning_replay", "full"),
    ),
)
ANSWERS: tuple[tuple[Adapter, Dialect, tuple[str, ...]], ...] = (
    (
        openai_chat.ADAPTER,
        RENDERING,
        (
            "text.json",
            "text.sse",
            "parallel_tool_calls.sse",
            "reasoning.sse",
            "length.sse",
            "content_filter.sse",
            "error_mid_stream.sse",
            "cut_off.sse",
            "full.sse",
            "full.json",
        ),
    ),
    (
        anthropic_messages.ADAPTER,
        RENDERING,
        (
            "text.sse",
            "tool_call.sse",
            "reasoning.sse",
            "length.sse",
            "content_filter.sse",
            "error_mid_stream.sse",
            "full.sse",
            "text.json",
        ),
    ),
    (
        openai_responses.ADAPTER,
        chat_completions.DIALECT,
        (
            "text.sse",
            "text__annotated.json",
            "parallel_tool_calls.sse",
            "reasoning.sse",
            "length.sse",
            "content_filter__refusal.sse",
            "error_mid_stream.sse",
            "full.sse",
            "full.json",
        ),
    ),
    (
        openai_responses.ADAPTER,
        messages.DIALECT,
        (
            "text.sse",
            "parallel_tool_calls.sse",
            "reasoning.sse",
            "length.sse",
            "content_filter__refusal.sse",
            "error_mid_stream.sse",
            "full.sse",
            "full.json",
        ),
    ),
)
REQUEST_PAIRS = [
    (dialect, adapter, golden.ROOT / "requests" / dialect.name / f"{name}.json")
    for dialect, adapter, names in REQUESTS
    for name in names
]
ANSWER_PAIRS = [
    (adapter, dialect, golden.ROOT / "answers" / adapter.format.name / name)
    for adapter, dialect, names in ANSWERS
    for name in names
]
CROSSED = (
    *(
        path.relative_to(golden.ROOT).with_suffix(f".{adapter.format.name}.json").as_posix()
        for _, adapter, path in REQUEST_PAIRS
    ),
    *(
        golden.rendered_path(path, dialect.name).relative_to(golden.ROOT).as_posix()
        for _, dialect, path in ANSWER_PAIRS
    ),
)


def question(dialect: Dialect, path: Path) -> Request:
    """The usual question, asked in this dialect."""
    usual: Request = asked(path)
    return msgspec.structs.replace(usual, dialect=dialect.name)


@pytest.mark.parametrize(
    ("dialect", "adapter", "path"),
    REQUEST_PAIRS,
    ids=[f"{d.name}-{a.format.name}-{p.stem}" for d, a, p in REQUEST_PAIRS],
)
def test_a_request_reaches_a_vendor_of_another_format(
    dialect: Dialect, adapter: Adapter, path: Path, update_golden: bool
):
    flags = Flags(auto_cache=path.stem == "cache_control__automatic")
    to = golden.target(adapter.format.name, flags=flags)
    golden.check_build(dialect, adapter, path, to, update=update_golden)


@pytest.mark.parametrize(
    ("adapter", "dialect", "path"),
    ANSWER_PAIRS,
    ids=[f"{a.format.name}-{d.name}-{p.name}" for a, d, p in ANSWER_PAIRS],
)
def test_an_answer_reaches_a_client_of_another_dialect(
    adapter: Adapter, dialect: Dialect, path: Path, update_golden: bool
):
    golden.check_rendered(
        adapter, dialect, path, update=update_golden, asked=question(dialect, path)
    )
