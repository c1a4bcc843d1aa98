"""Golden files of Google's dialect: its requests at every vendor format, and every format's answers to its clients."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gwd.core.request import Generate, Reasoning, Request
from gwd.core.target import Flags
from gwd.dialects import gemini
from gwd.vendors import anthropic_messages, openai_chat, openai_responses
from gwd.vendors import gemini as gemini_vendor
from gwd.vendors.base import Adapter
from tests.golden import golden

DIALECT = gemini.DIALECT.at("test/model", "generateContent")
ADAPTERS = (
    openai_chat.ADAPTER,
    anthropic_messages.ADAPTER,
    openai_responses.ADAPTER,
    gemini_vendor.ADAPTER,
)
URLS: dict[str, Any] = {"takes_image_urls": True, "takes_file_urls": True}
FLAGS = {
    "openai_chat": Flags(),
    "anthropic_messages": Flags(thinking_form="budget", **URLS),
    "openai_responses": Flags(),
    "gemini": Flags(thinking_form="adaptive", **URLS),
}
REQUESTS = golden.inputs("requests/gemini", ".json")
# Chat vendors take no file by its address.
REFUSED = ("openai_chat", "file__by_address")
PAIRS = [
    (adapter, path)
    for adapter in ADAPTERS
    for path in REQUESTS
    if (adapter.format.name, path.stem) != REFUSED
]
SCENARIOS = {
    "openai_chat": ("text", "parallel_tool_calls", "reasoning", "length", "content_filter", "full"),
    "anthropic_messages": (
        "text",
        "tool_call",
        "reasoning",
        "content_filter",
        "cache_read",
        "full",
    ),
    "openai_responses": ("text", "parallel_tool_calls", "reasoning", "length", "full"),
    "gemini": (
        *("text", "text__signed", "text__signed_at_the_end", "tool_call", "parallel_tool_calls"),
        *("reasoning", "reasoning__hidden", "reasoning__then_a_call", "length", "content_filter"),
        *("content_filter__prompt", "cache_read", "cut_off", "error_mid_stream", "empty", "full"),
    ),
}
ANSWERS = [
    (adapter, path)
    for adapter in ADAPTERS
    for path in golden.inputs(f"answers/{adapter.format.name}", ".json", ".sse")
    if path.stem in SCENARIOS[adapter.format.name]
    # A whole answer that fails gives its client no body.
    and not (path.stem == "error_mid_stream" and path.suffix == ".json")
]


def _listed(path: Path) -> str:
    return path.relative_to(golden.ROOT).as_posix()


CROSSED = (
    *(_listed(path.with_suffix(f".{adapter.format.name}.json")) for adapter, path in PAIRS),
    *(_listed(golden.rendered_path(path, "gemini")) for _, path in ANSWERS),
)


def asked() -> Request:
    """The usual question of a client that wants to see thoughts."""
    usual = golden.request(dialect="gemini", family="gemini")
    assert isinstance(usual.body, Generate)
    body = msgspec.structs.replace(usual.body, reasoning=Reasoning(enabled=True, adaptive=True))
    return msgspec.structs.replace(usual, body=body)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_body_parses_to_its_request(path: Path, update_golden: bool):
    golden.check_request(DIALECT, path, update=update_golden)


@pytest.mark.parametrize(
    ("adapter", "path"), PAIRS, ids=[f"{a.format.name}-{p.stem}" for a, p in PAIRS]
)
def test_a_vendor_gets_the_request_as_written(adapter: Adapter, path: Path, update_golden: bool):
    to = golden.target(adapter.format.name, flags=FLAGS[adapter.format.name])
    golden.check_build(DIALECT, adapter, path, to, update=update_golden)


@pytest.mark.parametrize(
    ("adapter", "path"), ANSWERS, ids=[f"{a.format.name}-{p.name}" for a, p in ANSWERS]
)
def test_a_client_gets_the_answer_as_written(adapter: Adapter, path: Path, update_golden: bool):
    golden.check_rendered(adapter, DIALECT, path, update=update_golden, asked=asked())
