"""`gwctl prices` against the real daemon: what differs from the shipped book, and taking it over."""

import json
from collections.abc import Iterator

import pytest

from tests.cli.daemon import Daemon, serving

pytestmark = pytest.mark.slow
SOL = "openai/gpt-6-sol"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with serving(tmp_path_factory.mktemp("node")) as served:
        yield served


def test_differences_are_shown_and_taken_over_once_they_are_meant(daemon: Daemon) -> None:
    assert daemon("prices", "diff").strip() == ""
    daemon("model", "add", SOL, "--prompt", "0.000001", "--completion", "5", "--context", "1000")
    shown = daemon("prices", "diff", code=8)
    assert shown.splitlines()[0].startswith(f"{SOL}\t")
    found = json.loads(daemon("prices", "diff", "--json", code=8))["differences"]
    assert [each["model"] for each in found] == [SOL]
    assert found[0]["needs_acceptance"]

    daemon("prices", "apply", "--dry-run", code=8)
    assert daemon("prices", "apply", code=1) == ""
    daemon("prices", "diff", code=8)

    assert SOL in daemon("prices", "apply", "--model", SOL, "--accept", SOL)
    assert daemon("prices", "diff").strip() == ""
    history = daemon.json("prices", "history", SOL)
    assert len(history) == 2
    daemon("prices", "apply", "--model", "x/y", code=1)
