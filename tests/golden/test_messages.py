"""Golden files of the messages dialect, and of its clients at OpenAI-format models."""

from pathlib import Path
from typing import Any

import pytest

from gwd.core.target import Flags
from gwd.dialects.messages import DIALECT
from gwd.vendors import anthropic_messages, openai_chat
from tests.golden import golden

REQUESTS = golden.inputs("requests/messages", ".json")
FLAGS: dict[str, Flags] = {
    "cache_control__automatic": Flags(auto_cache=True, thinking_form="budget"),
    "full": Flags(thinking_form="adaptive", supported_efforts=("low", "high"), mid_system=True),
}
OTHERS = golden.inputs("answers/openai_chat", ".json", ".sse")
CROSSED_SCENARIOS = frozenset(
    (
        "text",
        "tool_call",
        "parallel_tool_calls",
        "parallel_tool_calls__no_ids",
        "tool_call_no_arguments",
        "reasoning",
        "length",
        "content_filter",
        "cache_read",
        "cut_off__in_a_call",
        "error_mid_stream",
        "empty",
        "full",
    )
)
ANSWERS = [path for path in OTHERS if path.stem in CROSSED_SCENARIOS]


def _listed(path: Path) -> str:
    return path.relative_to(golden.ROOT).as_posix()


CROSSED = (
    *(_listed(path.with_suffix(".anthropic_messages.json")) for path in REQUESTS),
    *(_listed(path.with_suffix(".openai_chat.json")) for path in REQUESTS),
    *(_listed(golden.rendered_path(path, "messages")) for path in ANSWERS),
)


def _target(adapter: str, path: Path) -> Any:
    flags = FLAGS.get(path.stem, Flags()) if adapter == "anthropic_messages" else Flags()
    return golden.target(adapter, flags=flags)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_body_parses_to_its_request(path: Path, update_golden: bool):
    golden.check_request(DIALECT, path, update=update_golden)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_its_own_vendor_gets_the_request_as_written(path: Path, update_golden: bool):
    adapter = anthropic_messages.ADAPTER
    to = _target(adapter.format.name, path)
    golden.check_build(DIALECT, adapter, path, to, update=update_golden)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_chat_vendor_gets_the_request_as_written(path: Path, update_golden: bool):
    adapter = openai_chat.ADAPTER
    golden.check_build(
        DIALECT, adapter, path, _target(adapter.format.name, path), update=update_golden
    )


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_a_client_gets_a_chat_vendors_answer_as_written(path: Path, update_golden: bool):
    asked = golden.request(dialect="messages", family="anthropic_messages")
    golden.check_rendered(openai_chat.ADAPTER, DIALECT, path, update=update_golden, asked=asked)
