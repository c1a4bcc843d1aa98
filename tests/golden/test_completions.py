"""Golden files of the legacy completions dialect; its upstream is a chat format."""

from pathlib import Path

import pytest

from gwd.dialects.completions import DIALECT
from gwd.vendors.openai_chat import ADAPTER
from tests.golden import golden

REQUESTS = golden.inputs("requests/completions", ".json")
SCENARIOS = ("text.json", "text.sse", "reasoning.sse", "content_filter.json", "cut_off.sse")
ANSWERS = [golden.ROOT / "answers/openai_chat" / name for name in SCENARIOS]
CROSSED = (
    *(
        path.relative_to(golden.ROOT).with_suffix(".openai_chat.json").as_posix()
        for path in REQUESTS
    ),
    *(
        golden.rendered_path(path, "completions").relative_to(golden.ROOT).as_posix()
        for path in ANSWERS
    ),
)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_body_parses_to_its_request(path: Path, update_golden: bool):
    golden.check_request(DIALECT, path, update=update_golden)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_prompt_goes_upstream_as_one_user_message(path: Path, update_golden: bool):
    golden.check_build(DIALECT, ADAPTER, path, golden.target("openai_chat"), update=update_golden)


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_a_client_gets_the_answer_as_text(path: Path, update_golden: bool):
    golden.check_rendered(ADAPTER, DIALECT, path, update=update_golden)
