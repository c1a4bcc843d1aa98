"""The catalog's alerts, day by day: who is told what, once, with a clock that the test moves."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gwd.jobs.catalog_watch import CatalogWatch
from tests.flows.clock import MovableClock
from tests.flows.conftest import Opened
from tests.support.node import PRICES, Gateway

START = datetime(2032, 3, 1, 12, tzinfo=UTC)


class Watched:
    """A node, its watch, and what was told."""

    def __init__(self, gateway: Gateway, clock: MovableClock) -> None:
        self.gateway, self.clock = gateway, clock
        self.watch: CatalogWatch = gateway.running._catalog_watch()

    async def look(self) -> list[Any]:
        """What a look at the catalog tells that was not told before, oldest first."""
        known = {event["id"] for event in await self.told()}
        await self.watch.run()
        return [event for event in await self.told() if event["id"] not in known]

    async def told(self) -> list[Any]:
        data = (await self.gateway.manage("GET", "/notifications/events?limit=100"))["data"]
        return [event for event in data if event["type"].startswith("model.")][::-1]

    async def later(self, **span: float) -> list[Any]:
        self.clock.wait_until(
            datetime.fromtimestamp(self.clock.now_us() / 1e6, UTC) + timedelta(**span)
        )
        return await self.look()


@pytest.fixture
async def watched(opened: Opened, clock: MovableClock) -> AsyncIterator[Watched]:
    clock.set(START)
    async with opened(clock) as gateway:
        await gateway.add_model("demo/next", pricing=PRICES)
        made = Watched(gateway, clock)
        assert (await gateway.chat()).status_code == 200
        await gateway.at_rest()
        assert await made.look() == []
        yield made


def iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


async def test_a_retirement_is_told_in_its_stages_once_each(watched: Watched) -> None:
    ends = START + timedelta(days=45)
    await watched.gateway.manage(
        "PATCH",
        "/catalog/models/demo/chat",
        {
            "deprecated_at": iso(START + timedelta(days=1)),
            "retired_at": iso(ends),
            "successor": "demo/next",
        },
    )
    assert await watched.look() == []
    [deprecated] = await watched.later(days=1, minutes=1)
    assert (deprecated["type"], deprecated["severity"]) == ("model.deprecated", "warning")
    data = deprecated["data"]
    assert (data["model"], data["successor"], data["requests_last_30d"]) == (
        "demo/chat",
        "demo/next",
        1,
    )
    assert data["keys"][0] | {"id": ""} == {"id": "", "name": "test", "requests": 1}
    assert await watched.look() == []
    seen = []
    for _ in range(46):
        seen += [(e["type"], e["severity"]) for e in await watched.later(days=1)]
    assert seen == [
        ("model.retiring", "warning"),
        ("model.retiring", "warning"),
        ("model.retiring", "warning"),
        ("model.retired", "critical"),
    ]
    titles = [e["title"] for e in await watched.told()]
    assert titles == [
        "demo/chat is deprecated",
        "demo/chat is retired in 30 days",
        "demo/chat is retired in 7 days",
        "demo/chat is retired in 1 day",
        "demo/chat is retired",
    ]


async def test_a_retirement_that_is_near_when_it_is_set_is_told_at_its_nearest_stage_alone(
    watched: Watched,
) -> None:
    await watched.gateway.manage(
        "PATCH",
        "/catalog/models/demo/chat",
        {
            "deprecated_at": iso(START + timedelta(days=1)),
            "retired_at": iso(START + timedelta(days=3)),
            "successor": "demo/next",
        },
    )
    [told] = await watched.look()
    assert (told["type"], told["title"]) == ("model.retiring", "demo/chat is retired in 3 days")


async def test_a_price_is_told_when_it_is_announced_and_when_it_is_in_force(
    watched: Watched,
) -> None:
    await watched.gateway.manage(
        "PATCH",
        "/catalog/models/demo/chat",
        {
            "pricing": {**PRICES, "prompt": "0.000003"},
            "effective_at": iso(START + timedelta(days=2)),
        },
    )
    [announced] = await watched.look()
    assert (announced["type"], announced["severity"]) == ("model.price_changed", "warning")
    data = announced["data"]
    assert (data["old"]["prompt"], data["new"]["prompt"], data["in_force"]) == (2, 3, False)
    assert data["change_percent"]["prompt"] == 50
    assert await watched.later(days=1) == []
    [in_force] = await watched.later(days=1, minutes=1)
    assert (in_force["data"]["in_force"], in_force["data"]["effective_at"]) == (
        True,
        data["effective_at"],
    )
    assert await watched.later(days=1) == []


async def test_whoever_did_not_use_a_model_hears_nothing_of_its_price(watched: Watched) -> None:
    await watched.gateway.manage(
        "PATCH", "/catalog/models/demo/next", {"pricing": {**PRICES, "prompt": "0.000003"}}
    )
    assert await watched.look() == []


async def test_an_alias_that_moves_is_told_to_those_who_used_the_model_before(
    watched: Watched,
) -> None:
    manage = watched.gateway.manage
    await manage("PATCH", "/catalog/models/demo/chat", {"aliases": ["default"]})
    assert await watched.look() == []
    await manage("PATCH", "/catalog/models/demo/chat", {"aliases": []})
    await manage("PATCH", "/catalog/models/demo/next", {"aliases": ["default"]})
    [told] = await watched.look()
    assert told["type"] == "model.alias_moved"
    assert (told["data"]["alias"], told["data"]["previous_model"], told["data"]["model"]) == (
        "default",
        "demo/chat",
        "demo/next",
    )
    assert await watched.look() == []


async def test_a_model_that_nobody_serves_is_told_after_two_minutes_and_its_return_after_two(
    watched: Watched,
) -> None:
    rows = (await watched.gateway.manage("GET", "/catalog/endpoints?model=demo/chat"))["data"]
    [endpoint] = rows
    place = f"/catalog/endpoints/{endpoint['id']}"
    await watched.gateway.manage("PATCH", place, {"disabled": True})
    assert await watched.look() == []
    assert await watched.later(seconds=60) == []
    [gone] = await watched.later(seconds=61)
    assert (gone["type"], gone["severity"]) == ("model.unavailable", "warning")
    assert "disabled" in gone["data"]["reason"]
    assert await watched.later(minutes=10) == []
    await watched.gateway.manage("PATCH", place, {"disabled": False})
    assert await watched.look() == []
    [back] = await watched.later(seconds=121)
    assert (back["type"], back["data"]["eligible_endpoints"]) == ("model.available", 1)
    assert await watched.later(minutes=10) == []


async def test_a_short_outage_is_not_told(watched: Watched) -> None:
    [endpoint] = (await watched.gateway.manage("GET", "/catalog/endpoints?model=demo/chat"))["data"]
    place = f"/catalog/endpoints/{endpoint['id']}"
    await watched.gateway.manage("PATCH", place, {"disabled": True})
    await watched.look()
    await watched.gateway.manage("PATCH", place, {"disabled": False})
    assert await watched.later(seconds=90) == []
    assert await watched.later(minutes=5) == []


async def test_the_timeline_shows_what_is_coming_and_whom_it_meets(watched: Watched) -> None:
    manage = watched.gateway.manage
    narrow, narrow_id = await watched.gateway.new_key(name="narrow", allowed_models=["demo/chat"])
    headers = {"authorization": f"Bearer {narrow}"}
    assert (await watched.gateway.chat(headers=headers)).status_code == 200
    await watched.gateway.at_rest()
    ends = START + timedelta(days=45)
    await manage(
        "PATCH",
        "/catalog/models/demo/chat",
        {
            "deprecated_at": iso(START + timedelta(days=1)),
            "retired_at": iso(ends),
            "successor": "demo/next",
            "pricing": {**PRICES, "completion": "0.000004"},
            "effective_at": iso(START + timedelta(days=2)),
        },
    )
    rows = (await manage("GET", "/catalog/lifecycle"))["data"]
    assert [(row["kind"], row["model"]) for row in rows] == [
        ("deprecation", "demo/chat"),
        ("price_change", "demo/chat"),
        ("retirement", "demo/chat"),
    ]
    retirement = rows[-1]
    assert (retirement["at"], retirement["forwards_to"]) == (iso(ends), "demo/next")
    assert retirement["requests_last_30d"] == 2
    allowed = {key["id"]: key["may_use_successor"] for key in retirement["keys"]}
    assert allowed == {narrow_id: False, watched.gateway.key_id: True}
    [workspace] = retirement["workspaces"]
    assert workspace["requests"] == 2
    total = sum(key["spend"] for key in retirement["keys"])
    assert workspace["spend"] == retirement["spend_last_30d"] == pytest.approx(total)
    assert (rows[1]["old"]["completion"], rows[1]["new"]["completion"]) == (8, 4)
    await manage("PATCH", "/organization/settings", {"forward_retired_models": False})
    rows = (await manage("GET", "/catalog/lifecycle"))["data"]
    assert rows[-1]["forwards_to"] is None
