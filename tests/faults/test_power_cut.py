"""The power goes at any moment: the database opens, its books add up, and whatever was acknowledged is in them.

`make power-cuts` tries more moments.
"""

import asyncio
import os
import random
from pathlib import Path

import apsw
import pytest

from gwd import ledger
from gwd.store import Connection, Store, connection, writer
from gwd.store.connection import open_connection
from tests.faults.power_cut import Acknowledged, Event, RememberingDisk, images
from tests.support.money import BOOT, USD, add, charge, give_back, hold, open_organization
from tests.support.store import NOW_US, migrated

IMAGES = int(os.environ.get("POWER_CUTS", "150"))
CLIENTS = 8
REQUESTS = 40


async def test_a_power_cut_loses_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(1_000_000)
    begun, events = await _life(tmp_path, seed, monkeypatch)
    wrong = _look_at(tmp_path, begun, events, IMAGES, seed)
    assert wrong == [], f"seed {seed}"
    told = sum(isinstance(event, Acknowledged) for event in events)
    with capsys.disabled():
        print(
            f"\n  {IMAGES} power cuts within {len(events)} writes and syncs, {told} acknowledged settlements: none lost"
        )


async def test_a_log_that_is_not_synced_would_be_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Teeth: with commits that SQLite does not sync, the same look misses what was acknowledged."""
    careless = [
        text.replace("synchronous=FULL", "synchronous=NORMAL")
        for text in connection._WRITER_PRAGMAS
    ]
    monkeypatch.setattr(connection, "_WRITER_PRAGMAS", careless)
    begun, events = await _life(tmp_path, 1, monkeypatch)
    wrong = _look_at(tmp_path, begun, events, 20, 1)
    assert any("was acknowledged" in line for line in wrong)


async def _life(
    directory: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[bytes, list[Event]]:
    """Clients hold and settle at once while the log is moved into the file again and again."""
    monkeypatch.setattr(writer, "LONG_LOG_PAGES", 60)
    path = migrated(directory)
    with open_connection(path, "writer").raw as raw:
        raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    raw.close()
    begun = Path(path).read_bytes()
    disk = RememberingDisk()
    try:
        store = Store(path)
        await store.write(_fund)
        await asyncio.gather(*(_client(store, disk, f"{n}", seed) for n in range(CLIENTS)))
        events = disk.events.copy()
        await store.close()
    finally:
        disk.unregister()
    return begun, events


def _fund(open_: Connection) -> None:
    open_organization(open_, now_us=NOW_US)
    add(open_, 1_000 * USD, now_us=NOW_US)


async def _client(store: Store, disk: RememberingDisk, name: str, seed: int) -> None:
    chance = random.Random(f"{seed} {name}")
    for number in range(REQUESTS):
        generation_id = f"gen-{name}-{number}"
        await store.write(hold, generation_id, 1 * USD, now_us=NOW_US)
        if chance.random() < 0.1:
            await store.write(give_back, generation_id, now_us=NOW_US)
            continue
        cost_nano = chance.randrange(1, USD)
        await store.write(charge, generation_id, cost_nano, now_us=NOW_US)
        disk.events.append(Acknowledged(generation_id, cost_nano))


def _look_at(
    directory: Path, begun: bytes, events: list[Event], count: int, seed: int
) -> list[str]:
    """What is wrong with the databases that so many cuts leave."""
    wrong = []
    path = directory / "image.db"
    for image in images(begun, events, count, random.Random(seed)):
        image.put(path)
        try:
            found = _faults(path, image.acknowledged)
        except apsw.Error as error:
            found = [str(error)]
        wrong += [f"cut before event {image.event}: {text}" for text in found]
    return wrong


def _faults(path: Path, acknowledged: list[Acknowledged]) -> list[str]:
    opened = open_connection(str(path), "writer")
    try:
        damage = [row[0] for row in opened.rows("PRAGMA integrity_check") if row != ("ok",)]
        books = [str(difference) for difference in ledger.verify(opened, boot_id=BOOT).differences]
        charged: dict[str, int] = dict(
            opened.rows(
                "SELECT generation_id, SUM(amount_nano) FROM entry WHERE type = 'charge' GROUP BY 1"
            )
        )
        lost = [
            f"{told.generation_id} was acknowledged at {told.cost_nano}, charged is {charged.get(told.generation_id)}"
            for told in acknowledged
            if charged.get(told.generation_id) != told.cost_nano
        ]
        return damage + books + lost
    finally:
        opened.raw.close()
