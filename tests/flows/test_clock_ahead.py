"""A clock that is wrong for a while, on a node that serves: nothing is lost, it is told, and what is due happens."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gwd.core.clock import US_PER_S, iso
from gwd.management.time_repair import repair_time
from gwd.store.connection import open_connection, transaction
from tests.flows.clock import MovableClock
from tests.flows.conftest import Opened
from tests.support.node import Gateway, Nodes, fill_catalog
from tests.vendor import StrictVendor

DAY = 86_400
NOON = datetime(2032, 11, 30, 12, tzinfo=UTC)
"""The last day of a month."""
LONG_BEFORE = datetime(2031, 1, 1, tzinfo=UTC)
"""When the catalog is made: its prices hold also for a clock that is set back."""


async def reported(gateway: Gateway) -> dict[str, Any]:
    found: dict[str, Any] = (await gateway.manage("GET", "/operator/clock"))["data"]
    return found


async def promotional(gateway: Gateway) -> float:
    return float((await gateway.manage("GET", "/credits"))["data"]["promotional"])


async def granted(gateway: Gateway, expires: datetime) -> None:
    grant = {"kind": "promotional", "amount": 5, "expires_at": expires.isoformat()}
    await gateway.manage("POST", "/credits/grants", grant)


# Jumps in seconds, one after the other; the clock is right again at the end.
TABLE: list[tuple[str, list[float]]] = [
    ("a second ahead", [1]),
    ("an hour ahead", [3_600]),
    ("a day ahead, over a month's end", [DAY]),
    ("six days ahead", [6 * DAY]),
    ("a year ahead", [400 * DAY]),
    ("an hour back", [-3_600]),
    ("a day back", [-DAY]),
    ("back over a month's end", [-40 * DAY]),
    ("to the epoch", [-(NOON.timestamp() - 1)]),
    ("back and forth", [DAY, -2 * DAY, 400 * DAY, -800 * DAY, 3_600]),
]


async def test_a_clock_that_was_wrong_for_a_moment_has_cost_nothing(
    opened: Opened, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.wiring.SWEEP_S", 0.02)
    clock.set(LONG_BEFORE)
    async with opened(clock) as gateway:
        clock.wait_until(NOON)
        # The second lot is due in the middle of every jump ahead of more than a few minutes.
        await granted(gateway, NOON + timedelta(days=300))
        await granted(gateway, NOON + timedelta(minutes=20))
        lost: list[tuple[Any, ...]] = []
        for name, jumps in TABLE:
            before = await promotional(gateway)
            spent = (await gateway.manage("GET", "/credits"))["data"]["total_usage"]
            for jump in jumps:
                clock.jump(jump)
                reply = await gateway.chat()
                if reply.status_code != 200:
                    lost.append((name, jump, reply.text))
            clock.jump(-sum(jumps))
            after = (await gateway.manage("GET", "/credits"))["data"]
            if before - after["promotional"] != pytest.approx(after["total_usage"] - spent):
                lost.append((name, before, after))
            if (await reported(gateway))["state"] != "ok":
                lost.append((name, "not believed again"))
        assert lost == []
        entries = (await gateway.manage("GET", "/credits/ledger?limit=100"))["data"]
        times = [entry["created_at"] for entry in entries]
        assert times == sorted(times, reverse=True)
        assert {entry["type"] for entry in entries} <= {
            "purchase", "grant", "reservation", "settlement", "charge", "release",
        }  # fmt: skip
        # What is due in truth does happen.
        clock.pass_by(1_300)
        assert await promotional(gateway) <= 5
        assert (await gateway.chat()).status_code == 200


async def test_a_doubt_is_told_everywhere_and_ends_after_an_hour(
    opened: Opened, clock: MovableClock
) -> None:
    clock.set(NOON)
    async with opened(clock) as gateway:
        await granted(gateway, NOON + timedelta(days=30))
        assert (await reported(gateway))["do"] == ""
        clock.jump(400 * DAY)
        found = await reported(gateway)
        assert (found["state"], found["used"][:10]) == ("held", "2032-11-30")
        assert found["machine"][:10] == "2034-01-04"
        assert 3_500 < found["left_s"] <= 3_600
        status = (await gateway.manage("GET", "/operator/status"))["data"]
        assert status["clock"]["state"] == "held"
        checks = (await gateway.manage("GET", "/operator/doctor"))["data"]["checks"]
        (check,) = [each for each in checks if each["name"] == "clock"]
        assert check["state"] == "failed"
        assert "gwctl server clock --accept" in check["do"]
        root = gateway.base_url.split("/api/")[0]
        ready = await gateway.client.get(f"{root}/readyz")
        assert (ready.status_code, ready.text) == (200, "ready, but the clock is in doubt")
        assert "gwd_clock_doubted 2.0" in (await gateway.client.get(f"{root}/metrics")).text
        assert await promotional(gateway) == 5
        clock.pass_by(3_601)
        assert (await reported(gateway))["state"] == "ok"
        assert await promotional(gateway) == 0
        async with asyncio.timeout(10):  # the writer has to answer once after an hour
            while (await gateway.client.get(f"{root}/readyz")).text != "ready":
                await asyncio.sleep(0.05)


async def test_the_operators_word_ends_a_doubt_at_once_and_is_on_record(
    opened: Opened, clock: MovableClock
) -> None:
    clock.set(NOON)
    async with opened(clock) as gateway:
        clock.jump(40 * DAY)
        assert (await reported(gateway))["state"] == "held"
        refused = await gateway.operator.post("/operator/clock", json={"accept": False})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "accept")
        body = {"accept": True, "reason": "it was off"}
        accepted = (await gateway.manage("POST", "/operator/clock", body))["data"]
        assert (accepted["state"], accepted["used"][:10]) == ("ok", "2033-01-09")
        (line,) = (await gateway.manage("GET", "/audit?action=clock.accept"))["data"]
        assert line["details"]["reason"] == "it was off"
        assert line["details"]["state"] == "held"


class Life:
    """One node on one set of files, started again and again, each time with its clock elsewhere."""

    def __init__(self, directory: Path, vendor: StrictVendor) -> None:
        self.clock = MovableClock(NOON)
        self._nodes = Nodes(directory)
        self._vendor = vendor
        self._management_key = self._nodes.init("10", self.clock)
        self._key = ""

    async def live(self, *, jump: float = 0, do: Any = None) -> Any:
        """Start, do something, stop."""
        self.clock.jump(jump)
        async with self._nodes.running(self.clock) as running:
            gateway = Gateway(running, self._vendor, self._management_key)
            if not self._key:
                await fill_catalog(gateway)
                self._key, _ = await gateway.new_key()
            gateway.client.headers["authorization"] = f"Bearer {self._key}"
            try:
                done = await do(gateway)
                await gateway.verify()
            finally:
                await gateway.client.aclose()
                await gateway.operator.aclose()
            return done

    def repair(self) -> Any:
        connection = open_connection(str(self._nodes.directory / "node" / "gwd.db"), "writer")
        try:
            with transaction(connection, "IMMEDIATE"):
                return repair_time(
                    connection, by="ana", why="a year ahead", now_us=self.clock.now_us()
                )
        finally:
            connection.raw.close()


async def test_a_start_in_another_time_waits_and_a_ledger_that_ran_ahead_is_mended(
    tmp_path: Path,
) -> None:
    async with StrictVendor() as vendor:
        life = Life(tmp_path, vendor)

        async def grant(gateway: Gateway) -> None:
            await granted(gateway, NOON + timedelta(days=30))
            assert (await gateway.chat()).status_code == 200

        async def look(gateway: Gateway) -> tuple[str, bool, int]:
            assert (await gateway.chat()).status_code == 200
            found = await reported(gateway)
            return found["state"], await promotional(gateway) > 4, found["ledger_ahead_s"] // DAY

        async def accept(gateway: Gateway) -> None:
            await gateway.manage("POST", "/operator/clock", {"accept": True})
            assert await promotional(gateway) == 0
            assert (await gateway.chat()).status_code == 200

        await life.live(do=grant)
        assert await life.live(jump=5 * DAY, do=look) == ("ok", True, 0)
        assert await life.live(jump=-3_600, do=look) == ("doubted", True, 0)
        assert await life.live(jump=-3_000 * DAY, do=look) == ("held", True, 3_000)
        assert await life.live(jump=3_400 * DAY, do=look) == ("held", True, 0)
        await life.live(do=accept)
        # The clock is right again; the ledger is ahead, and the doubt comes back until it is mended.
        assert await life.live(jump=-400 * DAY, do=look) == ("held", False, 399)
        (done,) = life.repair()
        assert done.restored_nano > 4 * 10**9
        assert iso(done.to_us) < iso(done.from_us)
        assert await life.live(do=look) == ("ok", True, 0)
        assert life.repair() == ()

        async def listed(gateway: Gateway) -> tuple[int, int]:
            to = iso(life.clock.now_us() + 7_200 * US_PER_S)
            found = await gateway.manage("GET", f"/generations?to={to}")
            return len(found["data"]), found["total_count"]

        # Two of eight are of the future: the one after the operator's word, and the one that followed it.
        assert await life.live(do=listed) == (6, 6)
