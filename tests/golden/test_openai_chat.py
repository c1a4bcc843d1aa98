"""Golden files of the chat completions dialect and of the OpenAI chat format."""

from pathlib import Path
from typing import Any

import pytest

from gwd.core.target import Flags
from gwd.dialects.chat_completions import DIALECT
from gwd.vendors.openai_chat import ADAPTER
from tests.golden import golden

REQUESTS = golden.inputs("requests/chat_completions", ".json")
ANSWERS = golden.inputs("answers/openai_chat", ".json", ".sse")
FAULTS = golden.inputs("faults/openai_chat", ".http")
TARGETS: dict[str, dict[str, Any]] = {
    "cache_control": {"flags": Flags(cache_breakpoints=True)},
    "system": {"flags": Flags(developer_role=True)},
}
CROSSED = (
    *(
        path.relative_to(golden.ROOT).with_suffix(".openai_chat.json").as_posix()
        for path in REQUESTS
    ),
    *(
        golden.rendered_path(path, "chat_completions").relative_to(golden.ROOT).as_posix()
        for path in ANSWERS
    ),
)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_body_parses_to_its_request(path: Path, update_golden: bool):
    golden.check_request(DIALECT, path, update=update_golden)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_request_goes_upstream_as_written(path: Path, update_golden: bool):
    to = golden.target("openai_chat", **TARGETS.get(path.stem, {}))
    golden.check_build(DIALECT, ADAPTER, path, to, update=update_golden)


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_an_answer_decodes_to_its_events(path: Path, update_golden: bool):
    golden.check_answer(ADAPTER, path, update=update_golden)


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_a_client_gets_the_answer_as_written(path: Path, update_golden: bool):
    golden.check_rendered(ADAPTER, DIALECT, path, update=update_golden)


@pytest.mark.parametrize("path", FAULTS, ids=golden.name_of)
def test_a_failed_answer_is_its_fault(path: Path, update_golden: bool):
    golden.check_fault(ADAPTER, path, update=update_golden)
