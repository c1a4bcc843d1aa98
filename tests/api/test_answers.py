"""Every route answers what the table says: its status, and a body that is exactly the type it names."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from gwd.api.route import LiveRoute, OpenRoute, Route
from gwd.api.routes import LIVE_ROUTES, OPEN_ROUTES, ROUTES
from gwd.core.receipt import Receipt
from tests.api.cases import CASES
from tests.api.money_scenes import catalog, money, requests
from tests.api.office import Office
from tests.api.test_public_answers import PATHS
from tests.api.test_rights import name_of, path_of
from tests.support.answers import Seen, differences, sometimes, undescribed

AnyRoute = Route | LiveRoute | OpenRoute
_ROUTES: tuple[AnyRoute, ...] = (*ROUTES, *LIVE_ROUTES, *OPEN_ROUTES)
TABLE = {name_of(route): route for route in _ROUTES}

Answered = AsyncIterator[tuple[str, httpx.Response]]
"""(route, its reply)."""


async def every_route(office: Office) -> Answered:
    """Each route once, as its case has it."""
    operator = office["operator"]
    for name, route in TABLE.items():
        sent = await CASES[name].build(office, operator)
        path = path_of(route, sent)
        reply = await office.call(operator, route.method, path, sent.body, params=sent.query)
        assert reply.status_code == route.status, f"{name}: {reply.text}"
        yield name, reply


async def keys(office: Office) -> Answered:
    """What answers about keys say only sometimes."""

    async def new(body: dict[str, Any], person: str = "owner", **options: Any) -> httpx.Response:
        return await office.call(person, "POST", "/keys", body, **options)

    limits = {
        "limit": 0.1,
        "limit_reset": "weekly",
        "in_flight_cap": 3,
        "rate_limit_per_minute": 5,
        "allowed_models": ["demo/*", "nobody/*"],
        "external_user": "tenant 7",
        "expires_at": "2999-01-01T00:00:00+01:00",
    }
    once = {"idempotency-key": office.unique()}
    for _ in range(2):
        yield "POST /keys", await new({"name": "full", **limits}, headers=once)
    yield "POST /keys", await new({"name": "full", "if_absent": True})
    early = {"allowed_models": ["nobody/*"]}
    path = f"/keys/{(await new({'name': 'early'})).json()['data']['id']}"
    yield "PATCH /keys/<key>", await office.call("owner", "PATCH", path, early)
    for organization in ("organization", f"organizations/{office.organization_id}"):
        path = f"/{organization}/settings"
        route = "PATCH " + path.replace(office.organization_id, "<organization>")
        yield route, await office.call("operator", "PATCH", path, early)
        await office.call("operator", "PATCH", path, {"allowed_models": None})
    yield "POST /keys", await new({"name": "console", "type": "management"})
    chain = [(await new({"name": "first"})).json()["data"]["id"]]
    for _ in range(2):
        path, once = f"/keys/{chain[-1]}/rotate", {"idempotency-key": office.unique()}
        reply = await office.call("owner", "POST", path, {}, headers=once)
        yield "POST /keys/<key>/rotate", reply
        repeated = await office.call("owner", "POST", path, {}, headers=once)
        yield "POST /keys/<key>/rotate", repeated
        chain.append(reply.json()["data"]["id"])
    yield "DELETE /keys/<key>", await office.call("owner", "DELETE", f"/keys/{chain[1]}")
    yield "GET /keys", await office.call("owner", "GET", "/keys", params={"limit": 2})
    for scope in ("key", "organization"):
        budget = {"scope": scope, "interval": "lifetime", "limit": 5, "kind": "soft"}
        inference = office["inference"].caller
        assert inference is not None
        if scope == "key":
            budget["scope_id"] = inference.key_id
        yield "POST /budgets", await office.call("owner", "POST", "/budgets", budget)
    yield "GET /budgets", await office.call("owner", "GET", "/budgets")
    yield "GET /auth/key", await office.call("inference", "GET", "/auth/key")


async def people(office: Office) -> Answered:
    """What is said of those who leave, and of keys that come along with people."""
    team = {"name": "Team", "lead_user_id": office["member"].user_id}
    once = {"idempotency-key": office.unique()}
    made = await office.call("owner", "POST", "/workspaces", team, headers=once)
    yield "POST /workspaces", made
    yield (
        "POST /workspaces",
        await office.call("owner", "POST", "/workspaces", team, headers=once),
    )
    workspace = made.json()["data"]["id"]
    ada, bob = [await office.join(name, role="admin") for name in ("ada", "bob")]
    for maker, fields in ((ada, {}), (bob, {}), (ada, {"user_id": bob.user_id})):
        await office.ok(maker, "POST", "/keys", {"name": "app", **fields})
    guest = {"email": "guest@acme.example", "workspace_ids": [workspace]}
    yield (
        "POST /organization/invitations",
        await office.call(ada, "POST", "/organization/invitations", guest),
    )
    ids = {"user_ids": [ada.user_id, bob.user_id]}
    await office.ok("owner", "POST", f"/workspaces/{workspace}/members/add", ids)
    await office.ok("owner", "POST", "/keys", {"name": "in it", "workspace_id": workspace})
    await office.ok(bob, "POST", "/keys", {"name": "bob's", "workspace_id": workspace})
    path = f"/workspaces/{workspace}/members/remove"
    reply = await office.call("owner", "POST", path, {"user_ids": [bob.user_id]})
    yield "POST /workspaces/<workspace>/members/remove", reply
    path = "/organization/members"
    reply = await office.call("owner", "DELETE", f"{path}/{ada.user_id}?keep_keys=true")
    yield "DELETE /organization/members/<user>", reply
    yield (
        "DELETE /organization/members/<user>",
        await office.call("owner", "DELETE", f"{path}/{bob.user_id}"),
    )
    await office.gateway.store.write(
        lambda connection: connection.execute(
            "UPDATE api_key SET expires_at = created_at + 1 WHERE workspace_id = ?", (workspace,)
        )
    )
    await office.gateway.add_provider("lab", "openai_chat", office.gateway.vendor.openai_url)
    own = {"provider": "lab", "key": "sk-own-77aa0011"}
    await office.ok("owner", "POST", "/byok", {**own, "workspace_id": workspace})
    await office.ok("stranger", "POST", "/byok", own)
    reply = await office.call("owner", "DELETE", f"/workspaces/{workspace}")
    yield "DELETE /workspaces/<workspace>", reply
    there = office.stranger_organization_id
    grant = {"kind": "granted", "amount": 3, "organization_id": there}
    await office.ok("operator", "POST", "/credits/grants", grant)
    once = {"idempotency-key": office.unique()}
    for _ in range(2):
        founded = await office.call(
            "operator", "POST", "/organizations", {"name": "Initech"}, headers=once
        )
        yield "POST /organizations", founded
    reply = await office.call("operator", "DELETE", f"/organizations/{there}")
    yield "DELETE /organizations/<organization>", reply


async def alerts(office: Office) -> Answered:
    """A hook with its secret, and an alert on record: the month's cap stops a top-up."""
    hook = {
        "hook_url": "https://pay.example/hook",
        "enabled": True,
        "threshold": 1_000,
        "amount": 20,
        "monthly_cap": 20,
    }
    yield (
        "PATCH /credits/auto-topup",
        await office.call("owner", "PATCH", "/credits/auto-topup", hook),
    )
    yield "GET /credits/auto-topup", await office.call("owner", "GET", "/credits/auto-topup")
    paths = {"GET /notifications/events": "/notifications/events", "GET /audit": "/audit"}
    for name, path in paths.items():
        yield name, await office.call("owner", "GET", path)


SCENES = (every_route, keys, people, alerts, catalog, money, requests)
"""More scenes go here: each yields routes with replies, of which some say what others leave out."""


async def test_every_answer_is_of_the_type_that_its_route_names(office: Office) -> None:
    wrong: list[str] = []
    seen: Seen = set()
    for scene in SCENES:
        async for name, reply in scene(office):
            route = TABLE[name]
            assert reply.is_success, f"{name}: {reply.text}"
            found = differences(reply.content, route.answers, seen)
            wrong += [f"{name}: {what}" for what in found]
    assert wrong == []
    declared: Seen = set()
    for route in TABLE.values():
        declared |= sometimes(route.answers)
    assert sorted(declared - seen) == [], "no answer has these fields, which some should have"


def test_every_field_of_an_answer_is_described() -> None:
    types = [route.answers for route in TABLE.values()]
    assert [
        each for answers in (*types, *PATHS.values(), Receipt) for each in undescribed(answers)
    ] == []


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (b'{"deleted":true,"id":"key_1"}', []),
        (b'{"deleted":true,"id":null}', []),
        (b'{"deleted":true}', ["$.id of Deleted is missing"]),
        (b'{"id":"key_1"}', ["$.deleted of Deleted is missing"]),
        (b'{"deleted":true,"id":"key_1","more":1}', ["$.more is not in Deleted"]),
        (b'{"deleted":true,"id":7}', ["$.id is no NoneType: 7"]),
        (b'{"deleted":false,"id":"key_1"}', ["$.deleted is no LiteralType: False"]),
    ],
)
def test_what_is_not_as_declared_is_found(body: bytes, wrong: list[str]) -> None:
    assert differences(body, TABLE["DELETE /budgets/<budget>"].answers) == wrong
