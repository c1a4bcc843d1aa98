"""Killed at any instant, nothing acknowledged is lost or doubled. `make kill` runs more rounds."""

import os
import random
from pathlib import Path

import pytest

from tests.faults.kill_harness import Harness, plan
from tests.faults.killed_node import UNSETTLED
from tests.vendor import StrictVendor

ROUNDS = int(os.environ.get("KILL_ROUNDS", "30"))
READY_S = float(os.environ.get("KILL_READY_S", "2"))


@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_or_doubled_however_often_it_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(1_000_000)
    async with StrictVendor() as vendor:
        harness = Harness(tmp_path, vendor, seed)
        await harness.prepare()
        for point in plan(ROUNDS):
            await harness.round(point)
            assert harness.figures.wrong == [], f"seed {seed}, died {point or 'at random'}"
        await harness.last_look()
    figures = harness.figures
    with capsys.disabled():
        print(f"\n{figures} (seed {seed})")
    assert figures.wrong == []
    assert figures.acknowledged > ROUNDS
    assert figures.recovered > ROUNDS
    assert figures.slowest_start_s < READY_S


async def test_the_harness_sees_a_node_that_acknowledges_what_it_has_not_settled(
    tmp_path: Path,
) -> None:
    """Teeth: against a broken build the same look finds what was lost."""
    async with StrictVendor() as vendor:
        harness = Harness(tmp_path, vendor, seed=1)
        await harness.prepare()
        await harness.round(UNSETTLED)
        await harness.last_look()
    lost = [text for text in harness.figures.wrong if "was acknowledged" in text]
    assert len(lost) >= harness.figures.acknowledged > 0
