"""A copy by the clock that is killed at any line of its code, thinning included: what counts is whole, the next one is
made, and nothing of the killed one is left."""

import os
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from gwd.backups import copying, directory, making
from gwd.backups.making import Order, make
from gwd.backups.rhythm import HOUR_US, Keep
from gwd.core.clock import SystemClock
from gwd.management.setup import NewNode
from gwd.node.init import initialize
from tests.support.store import NOW_US

EVERY = int(os.environ.get("BACKUP_EVERY", "29"))
"""Of so many lines one is tried; 1 tries each."""
ROOM = str(Path(directory.__file__).parent)
START_US = NOW_US // HOUR_US * HOUR_US


def later(order: Order, hours: int) -> Order:
    return msgspec.structs.replace(order, made_us=START_US + hours * HOUR_US)


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> Order:
    folder = tmp_path_factory.mktemp("killed")
    initialize(folder / "node", NewNode(organization="Acme"), SystemClock())
    (folder / "copies").mkdir()
    made = Order(
        database=folder / "node" / "gwd.db",
        ring=folder / "node" / "keyring.json",
        directory=folder / "copies",
        made_us=START_US,
        keep=Keep(hourly=3, daily=0, weekly=0),
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(making, "LITTLE_BYTES", 0)
        for hours in range(3):
            assert make(later(made, hours)).wrong == ""
    return made


def killed_at(order: Order, number: int) -> bool:
    """Make a copy in a process that kills itself at its so many-th line; False if it came to its end before."""
    child = os.fork()
    if child == 0:
        left = number

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal left
            if not frame.f_code.co_filename.startswith(ROOM):
                return None
            left -= event == "line"
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return line

        sys.settrace(line)
        make(order)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def whole(order: Order) -> list[int]:
    """The hours of the copies that count, each of which is what its note says and proves."""
    found = directory.copies(order.directory, making.node_of(order.database))
    for copy in found:
        assert copying.digest(copy.path) == copy.sha256
    return [(copy.made_us - START_US) // HOUR_US for copy in found]


def test_a_copy_that_is_killed_anywhere_costs_nothing(
    order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "LITTLE_BYTES", 0)
    number, killed, seen = EVERY // 2, True, set()
    while killed:
        copies = tmp_path / str(number)
        shutil.copytree(order.directory, copies)
        here = msgspec.structs.replace(order, directory=copies)
        killed = killed_at(later(here, 3), number)
        after = whole(here)
        seen.add(tuple(after))
        assert after in ([0, 1, 2], [0, 1, 2, 3], [1, 2, 3]), number
        assert make(later(here, 4)).wrong == ""
        left = [*after[-2:], 4]
        assert whole(here) == left
        names = {directory.name_of(later(here, hours).made_us) for hours in left}
        assert {file.name for file in copies.iterdir()} == names | {
            f"{each}.json" for each in names
        }
        shutil.rmtree(copies)
        number += EVERY
    assert {(0, 1, 2), (1, 2, 3)} <= seen
