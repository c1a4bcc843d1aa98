"""A continuous copy of a node under load, its follower killed and started again, then both killed at one moment.

The copy is a whole node, restores into a plain database, and lacks nothing that was answered ten seconds before.
"""

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import httpx

from gwd.node.follow import LOSS_S, MARK
from tests.cases.caserunner.ports import free_port
from tests.commands.conftest import Gwd, Serve, gwd, made, serve
from tests.support.quick import TRUST
from tests.support.warm import WarmProcess

__all__ = ["gwd", "made", "serve"]

ROUNDS = int(os.environ.get("FOLLOW_ROUNDS", "2"))


class Load:
    """Purchases one after the other, and when each was answered."""

    def __init__(self, port: int, key: str) -> None:
        self.answered: dict[str, float] = {}
        self._url = f"http://127.0.0.1:{port}/api/v1/credits/purchases"
        self._key = key
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._buy, args=(number,)) for number in range(4)]

    def _buy(self, number: int) -> None:
        headers = {"authorization": f"Bearer {self._key}"}
        with httpx.Client(headers=headers, verify=False, timeout=5) as client:
            count = 0
            while not self._ends.is_set():
                reference, count = f"r{number}-{count}", count + 1
                try:
                    reply = client.post(self._url, json={"amount": 1, "reference": reference})
                except httpx.TransportError:
                    return
                if reply.status_code in (200, 201):
                    self.answered[reference] = time.monotonic()

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()


@contextmanager
def following(config: str, copies: Path, log: Path) -> Iterator[WarmProcess]:
    words = ["backup", "--follow", str(copies), "--config", config]
    given = {"PATH": os.environ["PATH"], **TRUST}
    process = WarmProcess("tests.faults.short_log:main", words, given, out=log, err=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until_followed(copies: Path, process: WarmProcess, since_s: float) -> None:
    """Until a look has ended that began after this time."""
    for _ in range(600):
        assert process.poll() is None, "the follower ended"
        mark = copies / MARK
        if mark.exists() and mark.stat().st_mtime > since_s and (copies / "gwd.db").exists():
            return
        time.sleep(0.05)
    raise AssertionError("nothing was followed in 30 seconds")


def bought(database: Path) -> set[str]:
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        sql = "SELECT reference FROM entry WHERE type = 'purchase' AND reference IS NOT NULL"
        return {reference for (reference,) in connection.execute(sql)}
    finally:
        connection.close()


def test_what_was_answered_ten_seconds_ago_is_in_the_copy(
    gwd: Gwd, serve: Serve, made: dict[str, str], tmp_path: Path
) -> None:
    copies, log, port = tmp_path / "copies", tmp_path / "follow.log", free_port()
    copies.mkdir()
    chance = random.Random(7)
    with serve(port) as node, Load(port, made["management_key"]) as load:
        for _ in range(ROUNDS):
            with following(made["config"], copies, log) as follower:
                wait_until_followed(copies, follower, time.time())
                time.sleep(chance.uniform(0.5, 2))
        with following(made["config"], copies, log) as follower:
            wait_until_followed(copies, follower, time.time())
            wait_until_followed(copies, follower, time.time() + 1)
            follower.kill()
            node.kill()
            died_s = time.monotonic()
    lost_s = check(gwd, copies, load, died_s)
    print(f"{len(load.answered)} answered, the last {lost_s:.1f} s were lost")
    restored = gwd("restore", "copies/gwd.db", "--config", "node", "--yes")
    assert (restored.code, restored.err) == (0, "")
    assert gwd("check", "--config", "node").code == 0


def check(gwd: Gwd, copies: Path, load: Load, died_s: float) -> float:
    """How much was lost, in seconds, of a copy that proves to be a whole node."""
    done = gwd("restore", "copies/gwd.db", "--config", "node", "--drill")
    assert (done.code, done.err) == (0, "")
    there = bought(copies / "gwd.db")
    lost = [at_s for reference, at_s in load.answered.items() if reference not in there]
    lost_s = died_s - min(lost, default=died_s)
    assert lost_s <= LOSS_S
    assert len(there) > 10
    return lost_s
