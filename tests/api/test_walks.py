"""Lists that grow at their head: `after` and `before` meet each row once, whatever is added meanwhile."""

from typing import Any

import pytest

from gwd import alerts
from gwd.alerts.service import NewAlert
from gwd.api.query import PLACES
from gwd.api.routes import ROUTES
from tests.api.office import Office

DELIVERIES = "/notifications/destinations/<destination>/deliveries"
HOOK = {"type": "webhook", "name": "ops", "url": "http://127.0.0.1:9/hook"}
WALKS = [route.path for route in ROUTES if set(PLACES) <= set(route.query)]


async def fill(office: Office, path: str) -> None:
    """One more row at the head of the list."""
    match path:
        case "/keys" | "/audit":
            await office.ok("owner", "POST", "/keys", {"name": office.unique()})
        case "/organization/invitations":
            await office.invite(f"{office.unique('guest')}@acme.example")
        case "/credits/ledger":
            await office.ok("owner", "POST", "/credits/purchases", {"amount": 1})
        case "/generations":
            body = {"model": "no/such", "messages": [{"role": "user", "content": "x"}]}
            reply = await office.call("inference", "POST", "/chat/completions", body)
            assert reply.status_code == 404
            await office.gateway.at_rest()
            found = {"id": reply.headers["x-gw-generation-id"]}
            while not (await office.call("owner", "GET", "/generation", params=found)).is_success:
                pass
        case _ if path in ("/notifications/deliveries", DELIVERIES):
            place = "/notifications/destinations"
            rows = (await office.ok("owner", "GET", place))["data"]
            if not rows:
                await office.ok("owner", "POST", place, HOOK)
                rows = (await office.ok("owner", "GET", place))["data"]
            await office.ok("owner", "POST", f"{place}/{rows[0]['id']}/test", {})
        case "/notifications/events":
            await office.gateway.store.write(_raise, office.organization_id, office.unique())
        case _:
            raise AssertionError(f"{path} grows at its head: say how")


def _raise(connection: Any, organization_id: str, name: str) -> None:
    alert = NewAlert(
        category="low_balance",
        type="alert.low_balance",
        severity="warning",
        title=name,
        message=name,
        url="https://app.example",
        data={},
    )
    alerts.raise_(connection, organization_id, alert, now_us=1_790_000_000_000_000)


async def place_of(office: Office, path: str) -> str:
    """The path with the id of the destination, where it has one."""
    if path != DELIVERIES:
        return path
    rows = (await office.ok("operator", "GET", "/notifications/destinations"))["data"]
    return path.replace("<destination>", rows[0]["id"])


async def page(office: Office, path: str, **query: Any) -> Any:
    path = await place_of(office, path)
    return await office.ok("operator", "GET", path, params=query)


@pytest.mark.parametrize("path", WALKS)
async def test_a_walk_meets_each_row_once_and_leads_back_to_what_is_new(
    office: Office, path: str
) -> None:
    for _ in range(5):
        await fill(office, path)
    first = await page(office, path, limit=2)
    before = first["total_count"]
    assert before >= 5
    seen, place = [row["id"] for row in first["data"]], first["next"]
    newest = first["previous"]
    pages = [seen]
    added = 0
    while place is not None:
        if added < 3:
            await fill(office, path)
            added += 1
        found = await page(office, path, limit=2, after=place)
        assert found["total_count"] is None
        pages.append([row["id"] for row in found["data"]])
        # One page back is the page before, whatever was added at the head.
        back = await page(office, path, limit=2, before=found["previous"])
        assert [row["id"] for row in back["data"]] == pages[-2]
        seen += pages[-1]
        place = found["next"]
    assert len(seen) == len(set(seen)) == before
    newer: list[str] = []
    while (found := await page(office, path, limit=2, before=newest))["data"]:
        newer = [row["id"] for row in found["data"]] + newer
        newest = found["previous"]
    assert found["previous"] == newest
    everything = await page(office, path, limit=100)
    assert everything["next"] is None
    assert [row["id"] for row in everything["data"]] == newer + seen
    assert len(newer) >= added


@pytest.mark.parametrize("path", WALKS)
async def test_a_place_that_is_none_of_the_list_is_refused_by_name(
    office: Office, path: str
) -> None:
    """Places of other organizations, of other lists, empty ones, and two at once."""
    await fill(office, path)
    own = (await page(office, path, limit=1))["previous"]
    wrong = []
    for query, param in (
        ({"after": "nowhere"}, "after"),
        ({"before": ""}, "before"),
        ({"after": "entry-0"}, "after"),
        ({"after": "entry-999999999999999999999"}, "after"),
        ({"before": "entry-²"}, "before"),
        ({"after": office["owner"].user_id}, "after"),
        ({"after": own, "before": own}, "after"),
        ({"after": own, "offset": 0}, "after"),
    ):
        reply = await office.call("operator", "GET", await place_of(office, path), params=query)
        if (reply.status_code, reply.json().get("error", {}).get("param")) != (400, param):
            wrong.append((query, reply.status_code, reply.text))
    assert wrong == []
    # Places of the ledger are numbers of each organization's own; a destination is only one's own.
    if path not in ("/credits/ledger", DELIVERIES):
        reply = await office.call("stranger", "GET", path, params={"after": own})
        assert reply.status_code == 400
