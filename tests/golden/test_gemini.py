"""Golden files of the Gemini format, and of chat and messages clients at models that speak it."""

from pathlib import Path
from typing import Any, Final

import pytest

from gwd.core.errors import InvalidRequest
from gwd.core.events import Failed
from gwd.core.target import Flags
from gwd.dialects import chat_completions, messages
from gwd.dialects.base import Dialect
from gwd.vendors.gemini import ADAPTER
from tests.golden import golden

LEVELS: Final = Flags(thinking_form="adaptive", takes_image_urls=True, takes_file_urls=True)
# What is peculiar about the model that a request goes to.
TARGETS: Final[dict[str, dict[str, Any]]] = {
    "image": {"flags": Flags(takes_image_urls=True)},
    "reasoning": {"flags": LEVELS},
    "reasoning_replay": {"flags": LEVELS},
    "tool_result": {"flags": LEVELS},
    "full": {"flags": Flags(thinking_form="budget", takes_image_urls=True, takes_file_urls=True)},
}
# A file of another vendor's account, and a last message without content: nothing the format could carry.
REFUSED: Final = frozenset(("file.json", "multi_turn.json"))


def _listed(path: Path) -> str:
    return path.relative_to(golden.ROOT).as_posix()


def _is_broken(path: Path) -> bool:
    """Whole answers that fail give the client no body."""
    failed = isinstance(golden.events_of(ADAPTER, path)[-1], Failed)
    return failed and path.suffix == ".json"


CHAT_REQUESTS = golden.inputs("requests/chat_completions", ".json")
REQUESTS = [
    *((chat_completions.DIALECT, path) for path in CHAT_REQUESTS if path.name not in REFUSED),
    *((messages.DIALECT, path) for path in golden.inputs("requests/messages", ".json")),
]
ANSWERS = golden.inputs("answers/gemini", ".json", ".sse")
SERVED = [path for path in ANSWERS if not _is_broken(path)]
FAULTS = golden.inputs("faults/gemini", ".http")
OWN_FIELDS: Final = {"dialect": "messages", "family": "anthropic_messages"}
CROSSED = (
    *(_listed(path.with_suffix(".gemini.json")) for _, path in REQUESTS),
    *(_listed(golden.rendered_path(path, "chat_completions")) for path in SERVED),
    *(_listed(golden.rendered_path(path, "messages")) for path in SERVED),
)


@pytest.mark.parametrize(("dialect", "path"), REQUESTS, ids=[_listed(path) for _, path in REQUESTS])
def test_a_request_goes_upstream_as_written(dialect: Dialect, path: Path, update_golden: bool):
    to = golden.target("gemini", **TARGETS.get(path.stem, {}))
    golden.check_build(dialect, ADAPTER, path, to, update=update_golden)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_request_that_the_format_cannot_carry_is_refused(name: str):
    body = (golden.ROOT / "requests/chat_completions" / name).read_bytes()
    with pytest.raises(InvalidRequest):
        ADAPTER.build(chat_completions.DIALECT.parse(body, {}), golden.target("gemini"))


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_an_answer_decodes_to_its_events(path: Path, update_golden: bool):
    golden.check_answer(ADAPTER, path, update=update_golden)


@pytest.mark.parametrize("path", SERVED, ids=golden.name_of)
def test_a_chat_client_gets_the_answer_as_written(path: Path, update_golden: bool):
    golden.check_rendered(ADAPTER, chat_completions.DIALECT, path, update=update_golden)


@pytest.mark.parametrize("path", SERVED, ids=golden.name_of)
def test_a_messages_client_gets_the_answer_as_written(path: Path, update_golden: bool):
    asked = golden.request(**OWN_FIELDS)
    golden.check_rendered(ADAPTER, messages.DIALECT, path, update=update_golden, asked=asked)


@pytest.mark.parametrize("path", FAULTS, ids=golden.name_of)
def test_a_failed_answer_is_its_fault(path: Path, update_golden: bool):
    golden.check_fault(ADAPTER, path, update=update_golden)
