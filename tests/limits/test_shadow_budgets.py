"""Shadow budgets and raises over HTTP: what is counted, under load too, and what the records say of the same limit."""

import sys
from collections import Counter
from decimal import Decimal
from types import FrameType
from typing import Any

import pytest

from gwd.demo import Behaviour
from gwd.management.budgets import end_lapsed_raises
from gwd.store import Connection
from tests.limits.conftest import Opened
from tests.limits.price import spend
from tests.limits.raised_alerts import raised_alerts
from tests.limits.storm import storm
from tests.limits.watch import Watch
from tests.support.node import Gateway

FAST = {"GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "1000000"}
ANSWER = Behaviour(text="word " * 50, prompt_tokens=5, completion_tokens=50)
COST = Decimal("0.00041")  # 5 × 2 and 50 × 8 micro-dollars


async def make(gateway: Gateway, interval: str, limit: float, **fields: Any) -> dict[str, Any]:
    body = {"scope": "organization", "interval": interval, "limit": limit, **fields}
    made: dict[str, Any] = (await gateway.manage("POST", "/budgets", body))["data"]
    return made


async def shown(gateway: Gateway, budget: dict[str, Any]) -> Any:
    return (await gateway.manage("GET", f"/budgets/{budget['id']}"))["data"]


async def simulated(gateway: Gateway, interval: str, limit: float, **fields: Any) -> Any:
    body = {"scope": "organization", "interval": interval, "limit": limit, **fields}
    return (await gateway.manage("POST", "/budgets/simulate", body))["data"]


async def test_a_shadow_counts_what_the_same_budget_refuses_once_it_is_switched_on(
    gateway: Gateway,
) -> None:
    budget = await make(gateway, "daily", 0.02, shadow=True)
    assert budget["would_refuse"]["requests"] == 0
    for number in (1, 1, 2, 3):
        assert (await spend(gateway, number)).status_code == 200
    counted = (await shown(gateway, budget))["would_refuse"]
    assert (counted["requests"], counted["cost"]) == (2, 0.05)
    assert counted["last_period"]["requests"] == 0
    [alert] = [
        one
        for one in await raised_alerts(gateway, "budget_threshold")
        if one.data["threshold_percent"] == 100
    ]
    assert "would be refused" in alert.message
    assert (alert.severity, alert.data["shadow"]) == ("warning", True)
    [own] = (await gateway.client.get("/auth/key")).json()["data"]["budgets"]
    assert (own["kind"], own["shadow"]) == ("hard", True)
    path = f"/budgets/{budget['id']}"
    on = (await gateway.manage("PATCH", path, {"shadow": False}))["data"]
    assert (on["shadow"], on["would_refuse"]) == (False, None)
    assert (await spend(gateway, 1)).status_code == 402
    [line] = (await gateway.manage("GET", "/audit?action=budget.patch"))["data"]
    assert (line["details"]["would_refuse"], line["details"]["shadow"]) == (2, False)
    assert line["details"]["would_refuse_nano"] == 50_000_000
    told = (await raised_alerts(gateway, "budget_threshold"))[-1]
    assert (told.severity, told.data["shadow"]) == ("critical", False)


async def test_a_period_is_counted_beside_the_one_before_and_the_records_say_the_same(
    opened: Opened, watch: Watch
) -> None:
    async with opened() as gateway:
        budget = await make(gateway, "daily", 0.02, shadow=True)
        for number in (1, 2, 3, 1):  # three cents reach it: two requests of four cents follow
            assert (await spend(gateway, number)).status_code == 200
        watch.set("2026-11-26T10:00:00Z")
        for number in (2, 5):
            assert (await spend(gateway, number)).status_code == 200
        counted = (await shown(gateway, budget))["would_refuse"]
        assert (counted["requests"], counted["cost"]) == (1, 0.05)
        before = counted.pop("last_period")
        assert (before["requests"], before["cost"]) == (2, 0.04)
        found = await simulated(gateway, "daily", 0.02, periods=3)
        assert (found["requests"], found["cost"]) == (3, 0.09)
        assert [one["would_refuse"]["requests"] for one in found["periods"]] == [1, 2, 0]
        assert [one["would_refuse"]["cost"] for one in found["periods"]] == [0.05, 0.04, 0]
        assert [one["spend"] for one in found["periods"]] == [0.07, 0.07, 0]
        assert found["periods"][0]["period_start"] == "2026-11-26T00:00:00Z"
        assert found["periods"][2]["reached_at"] is None
        whole = await simulated(gateway, "lifetime", 0.1)
        assert [one["requests"] for one in whole["periods"]] == [6]
        assert whole["requests"] == 0, "the request that reached it was the last"
        assert (await gateway.manage("GET", "/budgets"))["total_count"] == 1
        for scope, scope_id in (("key", gateway.key_id), ("workspace", "default")):
            same = await simulated(
                gateway, "daily", 0.02, periods=3, scope=scope, scope_id=scope_id
            )
            assert same["requests"] == 3, scope


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"periods": 0}, "periods"),
        ({"periods": 101}, "periods"),
        ({"limit": 0}, "limit"),
        ({"scope": "key"}, "scope_id"),
        ({"interval": "yearly"}, "interval"),
    ],
)
async def test_a_simulation_that_cannot_be_names_its_field(
    gateway: Gateway, fields: dict[str, Any], param: str
) -> None:
    body = {"scope": "organization", "interval": "daily", "limit": 1, **fields}
    reply = await gateway.manage("POST", "/budgets/simulate", body, status=400)
    assert reply["error"]["param"] == param


async def test_under_load_the_count_is_that_of_the_holds_made_after_the_limit(
    opened: Opened,
) -> None:
    """A thousand requests at once, against a plain restatement from the ledger's entries in their order."""
    async with opened(**FAST) as gateway:
        gateway.vendor.script.always(ANSWER)
        limit = COST * 100
        made = [
            await make(gateway, interval, float(limit * number), shadow=True)
            for number, interval in ((3, "lifetime"), (2, "monthly"), (1, "daily"))
        ]
        found = await storm(gateway, workers=100, requests=1_000, key=gateway.key)
        assert found.outcomes == Counter({"200": 1_000})
        await gateway.at_rest()
        rows = await gateway.store.read(_entries)
        for budget in made:
            limit_nano = int(Decimal(str(budget["limit"])) * 10**9)
            spent_nano, late = 0, set()
            for kind, generation_id, amount_nano in rows:
                if kind == "charge":
                    spent_nano += amount_nano
                elif kind == "reservation" and spent_nano >= limit_nano:
                    late.add(generation_id)
            counted = (await shown(gateway, budget))["would_refuse"]
            assert 0 < counted["requests"] == len(late) < 1_000
            assert Decimal(str(counted["cost"])) == COST * len(late)
        assert await gateway.store.read(_still_open) == []


async def test_a_raise_lets_through_until_its_end_and_both_are_written_down(
    opened: Opened, watch: Watch
) -> None:
    async with opened() as gateway:
        budget = await make(gateway, "monthly", 0.02)
        assert (await spend(gateway, 2)).status_code == 200
        assert (await spend(gateway, 1)).status_code == 402
        path = f"/budgets/{budget['id']}"
        until = "2026-11-25T18:00:00Z"
        raised = await gateway.manage("POST", f"{path}/raise", {"limit": 0.05, "until": until})
        record = raised["data"]
        assert (record["limit"], record["limit_in_force"]) == (0.02, 0.05)
        assert (record["raised"]["limit"], record["raised"]["until"]) == (0.05, until)
        assert record["remaining"] == 0.03
        assert (await spend(gateway, 2)).status_code == 200
        [own] = (await gateway.client.get("/auth/key")).json()["data"]["budgets"]
        assert (own["limit"], own["spend"], own["remaining"]) == (0.05, 0.04, 0.01)
        watch.set(until)
        assert (await spend(gateway, 1)).status_code == 402
        assert (await shown(gateway, budget))["raised"] is None
        now_us = gateway.running.node.clock.now_us()
        await gateway.store.write(end_lapsed_raises, app_url="http://app.example", now_us=now_us)
        lines = (await gateway.manage("GET", "/audit?subject_type=budget"))["data"]
        assert [(one["action"], one["actor_key_id"] is None) for one in lines] == [
            ("budget.end_raise", True),
            ("budget.raise", False),
            ("budget.create", False),
        ]
        assert lines[0]["details"]["raised_by"] == lines[1]["actor_key_id"]
        # Ended before its time, by somebody.
        later = {"limit": 0.06, "until": "2026-11-26T00:00:00Z"}
        await gateway.manage("POST", f"{path}/raise", later)
        assert (await spend(gateway, 1)).status_code == 200
        assert (await gateway.manage("DELETE", f"{path}/raise"))["data"]["limit_in_force"] == 0.02
        assert (await spend(gateway, 1)).status_code == 402
        await gateway.manage("DELETE", f"{path}/raise", status=404)


async def test_where_no_budget_is_a_shadow_or_raised_requests_do_nothing_for_it(
    gateway: Gateway,
) -> None:
    """Of what is new admission calls no function, and settlement one that finds nothing."""
    await make(gateway, "daily", 5)
    await make(gateway, "monthly", 50, kind="soft")
    called: Counter[str] = Counter()

    def noted(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code
            called[f"{code.co_filename.rpartition('/')[2]}:{code.co_name}"] += 1

    def on_writer(connection: Connection, profile: Any) -> None:
        sys.setprofile(profile)  # of the writer's own thread

    await gateway.store.write(on_writer, noted)
    try:
        assert (await spend(gateway, 1)).status_code == 200
    finally:
        await gateway.store.write(on_writer, None)
    assert called["admission.py:check_hard"] == 1
    assert called["admission.py:end_would_refuse"] == 1
    new = ("limit_at", "refuses", "count_would_refuse", "_exceeded")
    assert [name for name in called if name.rpartition(":")[2] in new] == []
    assert [name for name in called if name.startswith("shadow.py")] == []


def _entries(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.rows("SELECT type, generation_id, amount_nano FROM entry ORDER BY seq")


def _still_open(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.rows("SELECT * FROM budget_would_refuse_open")
