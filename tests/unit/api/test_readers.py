"""Which readers are cut: by what they take while they are behind, and by nothing else."""

import asyncio
from collections.abc import Iterable

import pytest

from gwd.api.readers import Readers
from gwd.core.counters import Counters


class Connection:
    """Has so many bytes to take, and is cut or not."""

    def __init__(self) -> None:
        self.waiting = 1_000_000
        self.is_cut = False

    def left(self) -> int:
        return self.waiting

    def cut(self) -> None:
        self.is_cut = True


async def seconds_until_cut(
    monkeypatch: pytest.MonkeyPatch, taken_each_second: Iterable[int]
) -> int | None:
    counters, connection = Counters(), Connection()
    readers = Readers(counters)
    loop, passed_s = asyncio.get_running_loop(), 0
    began_s = loop.time()
    monkeypatch.setattr(loop, "time", lambda: began_s + passed_s)
    readers.fall_behind(connection, connection.left, connection.cut)
    for taken in taken_each_second:
        passed_s += 1
        connection.waiting -= taken
        if taken >= 64 * 1024:  # room for more, which the answer has
            readers.catch_up(connection)
            connection.waiting += taken
            readers.fall_behind(connection, connection.left, connection.cut)
        await readers.sweep()
        if connection.is_cut:
            monkeypatch.undo()
            assert sum(counters.connections_cut.values()) == 1
            return passed_s
    monkeypatch.undo()
    return None


async def test_readers_are_cut_for_what_they_take_while_they_are_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    burst = [64 * 1024, *[0] * 24]
    rows: list[tuple[str, Iterable[int], int | None]] = [
        ("nothing at all", [0] * 100, 30),
        ("nothing any more", [*[5_000] * 20, *[0] * 100], 50),
        ("a byte a second", [1] * 100, 60),
        ("a little under the rate", [1_000] * 100, 60),
        ("the rate", [1_024] * 200, None),
        ("in bursts, above the rate", burst * 8, None),
        ("in one burst, then trickling", [64 * 1024, *[10] * 200], 60 + 60),
        ("fast", [100_000] * 200, None),
    ]
    wrong = [
        (name, found, wanted)
        for name, taken, wanted in rows
        if (found := await seconds_until_cut(monkeypatch, taken)) != wanted
    ]
    assert wrong == []
