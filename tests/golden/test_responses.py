"""Golden files of the responses dialect and of the responses format."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gwd.core.request import Generate, Tool
from gwd.core.target import Flags
from gwd.dialects.responses import DIALECT
from gwd.dialects.responses.dialect import Responses
from gwd.vendors.openai_responses import ADAPTER
from tests.golden import golden


class FixedClock:
    """The moment the answer was complete."""

    def now_us(self) -> int:
        return 1_767_225_607_000_000

    def monotonic_s(self) -> float:
        return 0.0


RENDERING = Responses(FixedClock())
REQUESTS = golden.inputs("requests/responses", ".json")
ANSWERS = golden.inputs("answers/openai_responses", ".json", ".sse")
# A response that failed as a whole is an HTTP error for the client, not a body.
RENDERED = [path for path in ANSWERS if path.name != "error_mid_stream.json"]
FAULTS = golden.inputs("faults/openai_responses", ".http")
TARGETS: dict[str, dict[str, Any]] = {
    "cache_control": {"flags": Flags(cache_breakpoints=True)},
}
CROSSED = (
    *(
        path.relative_to(golden.ROOT).with_suffix(".openai_responses.json").as_posix()
        for path in REQUESTS
    ),
    *(
        golden.rendered_path(path, "responses").relative_to(golden.ROOT).as_posix()
        for path in RENDERED
    ),
)


def asked(path: Path) -> Any:
    """The question behind an answer: the usual one, with a custom tool where the answer calls one."""
    usual = golden.request(dialect="responses", family="openai_responses")
    if not path.stem.endswith("__custom"):
        return usual
    assert isinstance(usual.body, Generate)
    body = msgspec.structs.replace(usual.body, tools=(Tool(name="apply_patch", custom=True),))
    return msgspec.structs.replace(usual, body=body)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_body_parses_to_its_request(path: Path, update_golden: bool):
    golden.check_request(DIALECT, path, update=update_golden)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_request_goes_upstream_as_written(path: Path, update_golden: bool):
    to = golden.target("openai_responses", **TARGETS.get(path.stem, {}))
    golden.check_build(DIALECT, ADAPTER, path, to, update=update_golden)


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_an_answer_decodes_to_its_events(path: Path, update_golden: bool):
    golden.check_answer(ADAPTER, path, update=update_golden, asked=asked(path))


@pytest.mark.parametrize("path", RENDERED, ids=golden.name_of)
def test_a_client_gets_the_answer_as_written(path: Path, update_golden: bool):
    golden.check_rendered(ADAPTER, RENDERING, path, update=update_golden, asked=asked(path))


@pytest.mark.parametrize("path", FAULTS, ids=golden.name_of)
def test_a_failed_answer_is_its_fault(path: Path, update_golden: bool):
    golden.check_fault(ADAPTER, path, update=update_golden)
