"""No list and no admission takes longer for a longer history: the bench of a million requests, in small.

It is judged by SQLite's steps, which are the same on every machine.
`make million` measures the times of all of it, at a million.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gwd.activity import lists
from gwd.ledger import reports
from gwd.store import Connection, Store, walk
from tests.bench import million
from tests.bench.million_node import serve

FEW, MANY = 1_000, 10_000
EVERY = 100
A_PAGE = 15_000
"""Steps that a full page takes: a node with a shorter history may have less to show."""
NAMES = ("generations", "ledger", "releases", "keys", "audit", "credits", "budgets")


class Steps:
    """Counts the steps of what is read and written."""

    def __init__(self) -> None:
        self.count = 0

    def counted(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose steps are counted."""

        def run(connection: Connection, *args: Any, **kwargs: Any) -> Any:
            connection.raw.set_progress_handler(self._more, EVERY)
            try:
                return fn(connection, *args, **kwargs)
            finally:
                connection.raw.set_progress_handler(None)

        run.maintains_cache = getattr(fn, "maintains_cache", False)  # type: ignore[attr-defined]
        return run

    def _more(self) -> bool:
        self.count += EVERY
        return False


async def _taken(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The steps of each list, and of an admission with its settlement."""
    steps = Steps()
    real = Store.read

    async def read(self: Store, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await real(self, steps.counted(fn), *args, **kwargs)

    taken: dict[str, float] = {}
    async with million.opened(folder, count) as node:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "read", read)
            for row in million.rows():
                if row.name.startswith(NAMES) and "offset" not in row.name:
                    steps.count = 0
                    await row.ask(node)
                    taken[row.name] = steps.count / million.TIMES
        steps.count = 0
        requests = node.history.requests(400, 10_000)
        await node.node.store.write(steps.counted(serve), requests)
        taken["admitted and settled"] = steps.count / len(requests)
        await node.node.verify()
    return taken


async def test_a_history_ten_times_as_long_takes_no_more_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room, name, value in (
        *((room, "LOOKED", 300) for room in (lists, reports, walk)),
        *((room, "COUNTED", 200) for room in (lists, reports, walk)),
        (million, "TIMES", 1),
    ):
        monkeypatch.setattr(room, name, value)
    few = await _taken(tmp_path / "few", FEW, monkeypatch)
    many = await _taken(tmp_path / "many", MANY, monkeypatch)
    served = "admitted and settled"
    assert many.pop(served) <= 1.2 * few.pop(served)
    assert len(many) > 60
    assert {
        name: (few[name], taken) for name, taken in many.items() if taken > few[name] + A_PAGE
    } == {}
