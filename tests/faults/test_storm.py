"""Everything goes wrong at once while the node restarts: each client gets a whole answer or an error."""

import os
import random
from pathlib import Path

import pytest

from tests.faults.restart_storm import Storm

STREAMS = int(os.environ.get("STORM_STREAMS", "240"))
CLIENTS = 24
SEED = int(os.environ.get("STORM_SEED", "0")) or random.randrange(1, 1_000_000)


@pytest.mark.slow
async def test_a_storm_of_faults_over_two_restarts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storm = Storm(tmp_path, streams=STREAMS, clients=CLIENTS, seed=SEED)
    figures = await storm.play()
    with capsys.disabled():
        print(f"\n{figures} (seed {SEED})")
    assert figures.wrong == [], f"seed {SEED}"
    assert figures.streams == STREAMS
    assert figures.whole > STREAMS // 2
    assert len(figures.trials) == 2
    assert figures.most_at_once <= 1
