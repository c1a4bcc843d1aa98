"""Teeth: a gateway without one of its guards is found by the proof that rests on it. `make teeth` tries them all."""

import os
import random
from pathlib import Path

from tests.faults.broken import BREAKAGES
from tests.support.warm import run

FAILED = 1
COUNT = int(os.environ.get("TEETH", "4"))


def test_a_gateway_without_a_guard_is_found(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTEST_DEBUG_TEMPROOT": str(tmp_path)}
    for name in random.sample(sorted(BREAKAGES), min(COUNT, len(BREAKAGES))):
        ended = run("tests.faults.broken:main", [name], environment)
        assert ended.returncode == FAILED, f"{name}: {ended.stdout}{ended.stderr}"
        assert "1 failed" in ended.stdout
