"""Golden files of the Anthropic format, and of chat clients at models that speak it."""

from pathlib import Path

import pytest

from gwd.core.errors import InvalidRequest
from gwd.core.target import Flags
from gwd.dialects import chat_completions, messages
from gwd.vendors.anthropic_messages import ADAPTER
from tests.golden import golden

ALL = golden.inputs("requests/chat_completions", ".json")
# A file of another vendor's account, and a last message without content: nothing the format could carry.
REFUSED = frozenset(("file", "multi_turn"))
REQUESTS = [path for path in ALL if path.stem not in REFUSED]
ANSWERS = golden.inputs("answers/anthropic_messages", ".json", ".sse")
FAULTS = golden.inputs("faults/anthropic_messages", ".http")
FLAGS: dict[str, Flags] = {
    "cache_control__automatic": Flags(auto_cache=True),
    "json_schema": Flags(native_json_schema=False),
    "reasoning": Flags(thinking_form="adaptive"),
    "system": Flags(mid_system=True),
}
OWN = golden.request(dialect="messages", family="anthropic_messages")


def _listed(path: Path) -> str:
    return path.relative_to(golden.ROOT).as_posix()


CROSSED = (
    *(_listed(path.with_suffix(".anthropic_messages.json")) for path in REQUESTS),
    *(_listed(golden.rendered_path(path, "messages")) for path in ANSWERS),
    *(_listed(golden.rendered_path(path, "chat_completions")) for path in ANSWERS),
)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_chat_request_goes_upstream_as_written(path: Path, update_golden: bool):
    to = golden.target("anthropic_messages", flags=FLAGS.get(path.stem, Flags()))
    golden.check_build(chat_completions.DIALECT, ADAPTER, path, to, update=update_golden)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_request_that_the_format_cannot_carry_is_refused(name: str):
    path = golden.ROOT / "requests/chat_completions" / f"{name}.json"
    asked = chat_completions.DIALECT.parse(path.read_bytes(), {})
    with pytest.raises(InvalidRequest):
        ADAPTER.build(asked, golden.target("anthropic_messages"))


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_an_answer_decodes_to_its_events(path: Path, update_golden: bool):
    golden.check_answer(ADAPTER, path, update=update_golden, asked=OWN)


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_its_own_client_gets_the_answer_as_written(path: Path, update_golden: bool):
    golden.check_rendered(ADAPTER, messages.DIALECT, path, update=update_golden, asked=OWN)


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_a_chat_client_gets_the_answer_as_written(path: Path, update_golden: bool):
    golden.check_rendered(ADAPTER, chat_completions.DIALECT, path, update=update_golden)


@pytest.mark.parametrize("path", FAULTS, ids=golden.name_of)
def test_a_failed_answer_is_its_fault(path: Path, update_golden: bool):
    golden.check_fault(ADAPTER, path, update=update_golden)
