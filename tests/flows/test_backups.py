"""Copies by the clock on a node that serves: made, counted, shown, and told of when they are overdue."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from gwd import settings
from gwd.backups import directory
from gwd.backups.making import Made, Order, make
from gwd.backups.rhythm import HOUR_US
from gwd.core.clock import US_PER_S
from gwd.jobs.backups import BackupJob
from gwd.node import backup
from tests.flows.clock import MovableClock
from tests.support.node import Gateway, open_gateway

HOUR_S = HOUR_US / US_PER_S


class Copied:
    """A node with a directory for copies, and its job."""

    def __init__(self, gateway: Gateway, clock: MovableClock, copies: Path) -> None:
        self.gateway, self.clock, self.directory = gateway, clock, copies
        assert gateway.running.node.backups is not None
        self.standing = gateway.running.node.backups
        self.job = self.begun()

    def begun(self) -> BackupJob:
        """The job as a restart makes it."""
        return self.gateway.running._backups(self.standing)

    def names(self) -> list[str]:
        return sorted(file.name for file in self.directory.glob("*.db"))

    async def told(self) -> list[tuple[str, str]]:
        data = (await self.gateway.manage("GET", "/notifications/events?limit=100"))["data"]
        found = [each for each in data[::-1] if each["type"] == "alert.backup_overdue"]
        return [(each["severity"], each["data"]["reason"]) for each in found]

    async def status(self) -> Any:
        return (await self.gateway.manage("GET", "/operator/status"))["data"]["backups"]

    async def check(self) -> Any:
        found = (await self.gateway.manage("GET", "/operator/doctor"))["data"]["checks"]
        [check] = [each for each in found if each["name"] == "backups"]
        return check

    async def metric(self, name: str) -> float:
        page = (await self.gateway.client.get(f"{self.root}/metrics")).text
        [line] = [line for line in page.splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[1])

    @property
    def root(self) -> str:
        return self.gateway.base_url.removesuffix("/api/v1")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process of its own does, in a thread."""

    def make_here(order: Order) -> Awaitable[Made]:
        return asyncio.to_thread(make, order)

    monkeypatch.setattr("gwd.jobs.backups.made_in_a_process", make_here)


@pytest.fixture
async def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Copied]:
    monkeypatch.setattr("gwd.wiring.BACKUPS_S", 3_600.0)  # the tests call the job themselves
    copies = tmp_path / "copies"
    copies.mkdir()
    clock = MovableClock(datetime(2032, 3, 1, 12, tzinfo=UTC))
    environment = {"GWD_BACKUP_DIRECTORY": str(copies), "GWD_BACKUP_KEEP": "2h 0d 0w"}
    async with open_gateway(tmp_path, clock, environment=environment) as gateway:
        yield Copied(gateway, clock, copies)


async def test_a_copy_is_made_when_one_is_due_and_everything_shows_it(copied: Copied) -> None:
    assert await copied.metric("gwd_backup_age_seconds") == float("inf")
    await copied.job.make()
    assert len(copied.names()) == 1
    await copied.job.make()
    await copied.begun().make()
    assert len(copied.names()) == 1, "a restart makes none before its time"
    size = (copied.directory / copied.names()[0]).stat().st_size
    shown = await copied.status()
    assert (shown["count"], shown["newest_bytes"], shown["overdue"]) == (1, size, False)
    assert (shown["directory"], shown["failure"]) == (str(copied.directory), None)
    assert (await copied.check())["state"] == "ok"
    assert await copied.metric("gwd_backup_bytes") == size
    copied.clock.pass_by(HOUR_S / 2)
    assert HOUR_S / 2 <= await copied.metric("gwd_backup_age_seconds") < HOUR_S
    for _ in range(3):
        copied.clock.pass_by(HOUR_S)
        await copied.job.make()
    assert len(copied.names()) == 2
    assert await copied.metric("gwd_backups") == 2
    assert await copied.told() == []


@pytest.mark.usefixtures("quick")
async def test_a_node_that_was_off_makes_one_copy_and_not_many(copied: Copied) -> None:
    await copied.job.make()
    copied.clock.pass_by(20 * HOUR_S)
    job = copied.begun()
    for _ in range(3):
        await job.make()
    assert len(copied.names()) == 2


@pytest.mark.usefixtures("quick")
async def test_an_overdue_copy_is_told_once_until_there_is_one_again(copied: Copied) -> None:
    await copied.job.make()
    for count in (1, 2):
        with directory.alone(copied.directory):
            copied.clock.pass_by(HOUR_S)
            await copied.job.make()
            assert len(await copied.told()) == count - 1
            check = await copied.check()
            assert (check["state"], "another copy is being" in check["message"]) == (
                "warning",
                True,
            )
            copied.clock.pass_by(1.5 * HOUR_S)
            for _ in range(2):
                await copied.job.make()
                await copied.job.watch()
            assert (await copied.status())["overdue"]
            assert (await copied.check())["state"] == "failed"
        severity, reason = (await copied.told())[-1]
        assert (severity, "another copy is being made" in reason) == ("warning", True)
        assert len(await copied.told()) == count
        copied.clock.pass_by(HOUR_S)
        await copied.job.make()
        assert not (await copied.status())["overdue"]
        assert (await copied.check())["state"] == "ok"


@pytest.mark.usefixtures("quick")
async def test_a_disk_that_is_gone_is_told_of_at_once(copied: Copied) -> None:
    await copied.job.make()
    away = copied.directory.rename(copied.directory.with_name("unmounted"))
    copied.clock.pass_by(HOUR_S)
    await copied.job.make()
    [(severity, reason)] = await copied.told()
    assert (severity, "is no directory" in reason) == ("warning", True)
    away.rename(copied.directory)


@pytest.mark.usefixtures("quick")
async def test_a_copy_that_is_damaged_is_told_of_and_the_next_one_is_made(copied: Copied) -> None:
    await copied.job.make()
    [name] = copied.names()
    content = bytearray((copied.directory / name).read_bytes())
    content[-1] ^= 1
    (copied.directory / name).write_bytes(content)
    copied.clock.pass_by(HOUR_S)
    await copied.job.make()
    [(severity, reason)] = await copied.told()
    assert (severity, name in reason) == ("critical", True)
    assert len(copied.names()) == 1
    await copied.job.watch()
    assert len(await copied.told()) == 1


@pytest.mark.usefixtures("quick")
async def test_books_that_do_not_add_up_make_no_copy(copied: Copied) -> None:
    def spoil(change: str) -> None:
        with apsw.Connection(str(copied.gateway.running.settings.database)) as connection:
            connection.set_busy_timeout(5_000)
            connection.execute(f"UPDATE account SET pool_nano = pool_nano {change}")

    spoil("+ 1")
    await copied.job.make()
    spoil("- 1")
    assert copied.names() == []
    assert [severity for severity, _ in await copied.told()] == ["critical"]
    copied.clock.pass_by(HOUR_S)
    await copied.job.make()
    assert len(copied.names()) == 1


@pytest.mark.usefixtures("quick")
async def test_a_copy_by_hand_in_the_directory_counts(
    copied: Copied, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "SystemClock", lambda: copied.clock)
    path = copied.gateway.running.settings.config
    environment = {"GWD_BACKUP_DIRECTORY": str(copied.directory)}
    made = backup.backup(settings.load(path, environment), copied.directory / "by-hand.db")
    assert made.wrong == ""
    await copied.job.watch()
    assert (await copied.status())["count"] == 1
    await copied.job.make()
    assert copied.names() == ["by-hand.db"], "none is due"


async def test_a_copy_while_the_node_serves_holds_what_was_served_before(copied: Copied) -> None:
    assert (await copied.gateway.chat()).status_code == 200
    await copied.gateway.at_rest()
    await copied.job.make()
    [name] = copied.names()
    copy = apsw.Connection(str(copied.directory / name), flags=apsw.SQLITE_OPEN_READONLY)
    assert copy.execute("SELECT count(*) FROM generation").fetchall() == [(1,)]
    copy.close()
