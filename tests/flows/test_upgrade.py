"""Nodes of every earlier schema come up to date with all they hold, also when the upgrade is killed on the way, and the
copy that is made first is what was there."""

import os
import shutil
import signal
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from gwd import proof, settings
from gwd.core.clock import SystemClock
from gwd.node import check as looking
from gwd.store import migrations
from gwd.store.connection import open_connection
from gwd.store.migrations import DamagedFileError, NewerSchemaError, migrate
from tests.flows.disk import Disk
from tests.support.frozen import NAMES, Frozen
from tests.support.node import Nodes

KILLS = int(os.environ.get("UPGRADE_KILLS", "4"))
"""At how many points between the first write and the last each upgrade is killed."""


@pytest.fixture(params=NAMES)
def frozen(request: pytest.FixtureRequest, tmp_path: Path) -> Frozen:
    return Frozen.unpack(request.param, tmp_path / "node")


def test_every_frozen_schema_is_a_beginning_of_todays_history(frozen: Frozen) -> None:
    assert frozen.facts["schema"] == migrations.names()[: len(frozen.facts["schema"])]


def test_the_copy_made_first_is_the_file_as_it_was(frozen: Frozen) -> None:
    before = _content(frozen.database)
    todo = migrations.pending(frozen.database)
    migrate(frozen.database, SystemClock())
    copy = f"{frozen.database}.before-{todo[0]}"
    assert _content(copy) == before
    shutil.copy(copy, frozen.database)
    assert migrate(frozen.database, SystemClock()) == todo


def test_an_upgraded_node_passes_every_check(frozen: Frozen) -> None:
    migrate(frozen.database, SystemClock())
    read = settings.load(frozen.folder, {})
    assert [found for found in looking.check(read, SystemClock()) if found.wrong] == []


async def test_an_upgraded_node_serves_what_the_earlier_one_held(frozen: Frozen) -> None:
    facts = frozen.facts
    async with Nodes(frozen.folder.parent).running() as running, _operator(running, facts) as api:
        credit = (await api.get("/credits")).json(parse_float=Decimal)["data"]
        listed = (await api.get("/keys", params={"limit": 100})).json(parse_float=Decimal)["data"]
        used = {key["name"]: Decimal(key["usage"]) for key in listed}
        before = {name: Decimal(amount) for name, amount in facts["usage"].items()}
        # What the cut stream said is charged to its key when the node starts.
        cut = used.pop("plain") - before.pop("plain")
        assert used == before
        assert Decimal(0) < cut < Decimal("0.0001")
        assert Decimal(credit["total_credits"]) == Decimal(facts["credits"]["total_credits"])
        assert Decimal(credit["total_usage"]) == Decimal(facts["credits"]["total_usage"]) + cut
        for name, key in facts["keys"].items():
            reply = await api.get("/key", headers={"authorization": f"Bearer {key}"})
            known = name not in ("disabled", "deleted")
            assert reply.status_code == (200 if known else 401), (name, reply.text)
        found = await running.store.read(proof.verify)
        assert found.ok, found.differences


@pytest.mark.parametrize("name", NAMES)
def test_killed_anywhere_an_upgrade_is_finished_by_the_next(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = _writes_of_an_upgrade(Frozen.unpack(name, tmp_path / "counted"))
    for number in range(KILLS):
        frozen = Frozen.unpack(name, tmp_path / f"killed-{number}")
        before = _content(frozen.database)
        todo = migrations.pending(frozen.database)
        assert _killed_at(frozen, 1 + number * (writes - 1) // max(KILLS - 1, 1))
        applied = _history(frozen)
        assert _schema(frozen) == _schema_of(applied, tmp_path, monkeypatch), "between two schemas"
        migrate(frozen.database, SystemClock())
        read = settings.load(frozen.folder, {})
        assert [found for found in looking.check(read, SystemClock()) if found.wrong] == []
        assert _content(f"{frozen.database}.before-{todo[0]}") == before
        shutil.rmtree(frozen.folder)


def test_a_damaged_file_is_not_migrated(tmp_path: Path) -> None:
    frozen = Frozen.unpack(NAMES[0], tmp_path / "node")
    with closing(apsw.Connection(frozen.database)) as raw:
        [(root,)] = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entry'")
        [(size,)] = raw.execute("PRAGMA page_size")
    with Path(frozen.database).open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\x0d" + bytes(64))
    with pytest.raises(DamagedFileError, match="restore a backup"):
        migrate(frozen.database, SystemClock())
    assert _history(frozen) == frozen.facts["schema"]
    assert not list(frozen.folder.glob("*.before-*"))


def test_a_file_of_a_later_version_is_refused_untouched(tmp_path: Path) -> None:
    frozen = Frozen.unpack(NAMES[-1], tmp_path / "node")
    with closing(apsw.Connection(frozen.database)) as raw:
        raw.execute("INSERT INTO schema_history VALUES ('9999_what_comes', 0)")
    before = Path(frozen.database).read_bytes()
    with pytest.raises(NewerSchemaError, match="9999_what_comes"):
        migrate(frozen.database, SystemClock())
    assert Path(frozen.database).read_bytes() == before


def _operator(running: Any, facts: dict[str, Any]) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{running.port}/api/v1",
        headers={"authorization": f"Bearer {facts['management_key']}"},
        timeout=20,
        verify=False,  # loopback
    )


class _Fuse(Disk):
    """Ends the process, as a kill would, at the `left`-th write."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self._left = left

    def take(self, growth: int) -> None:
        super().take(growth)
        if self.writes == self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def _writes_of_an_upgrade(frozen: Frozen) -> int:
    disk = Disk()
    try:
        migrate(frozen.database, SystemClock())
        return disk.writes
    finally:
        disk.remove()


def _killed_at(frozen: Frozen, write: int) -> bool:
    """Upgrade in a process of its own that dies at a write; whether it did."""
    child = os.fork()
    if child == 0:
        try:
            fuse = _Fuse(write)
            migrate(frozen.database, SystemClock())
            fuse.remove()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _content(path: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)) as raw:
        names = [
            row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return {name: sorted(raw.execute(f'SELECT * FROM "{name}"'), key=repr) for name in names}


def _history(frozen: Frozen) -> list[str]:
    with closing(apsw.Connection(frozen.database)) as raw:
        return [row[0] for row in raw.execute("SELECT name FROM schema_history ORDER BY name")]


def _schema(frozen: Frozen) -> migrations.Schema:
    connection = open_connection(frozen.database, "writer")
    try:
        return migrations.schema_of(connection)
    finally:
        connection.raw.close()


def _schema_of(
    applied: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> migrations.Schema:
    """What these steps make of an empty database."""
    made = Frozen(place / f"made-{len(applied)}", {})
    if not made.folder.exists():
        made.folder.mkdir()
        with monkeypatch.context() as earlier:
            earlier.setattr(migrations, "names", lambda: applied)
            migrate(made.database, SystemClock())
    return _schema(made)
