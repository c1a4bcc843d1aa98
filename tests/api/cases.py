"""One good request for every management route, made fresh each time, and what is special about it.

`CASES` has an entry for each route of the tables; a route without one fails the tests that are generated from it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import msgspec

from gwd.management import sessions
from gwd.management.sessions import NewSession
from tests.api.office import Office, Person
from tests.support.node import PRICES

PRICING = {"prompt": "0.000001", "completion": "0.000002"}


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A request. `ids` are the values of the path's parameters, by their names."""

    ids: dict[str, str] = {}
    body: Any = None
    query: dict[str, str] = {}


Build = Callable[[Office, Person], Awaitable[Sent]]


OF_THE_BOOK = "openai/gpt-6-sol"
"""A model that the shipped price book knows."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`build` makes a request that succeeds for whoever has the right for all of the organization.

    `within` makes one that lies in the reach of the person given, where that reach is narrower.
    `outside` is the status when `build`'s object lies outside the reach (None: reach does not matter).
    `whole`: it is about the whole organization, so whoever's reach is narrower gets a 403.
    `scoped`: an id in it belongs to the organization, so a stranger gets the 404 of an absent one.
    """

    build: Build
    within: Build | None = None
    outside: int | None = None
    whole: bool = False
    scoped: bool = False


async def nothing(office: Office, person: Person) -> Sent:
    return Sent()


def body(**fields: Any) -> Build:
    """A request with a fixed body."""

    async def build(office: Office, person: Person) -> Sent:
        return Sent(body=fields)

    return build


async def november(office: Office, person: Person) -> Sent:
    """Two days of a month."""
    return Sent(query={"from": "2026-11-01T00:00:00Z", "to": "2026-11-03T00:00:00Z"})


# keys


async def key(office: Office, person: Person) -> str:
    """A key of the owner in the default workspace."""
    made = await office.ok("owner", "POST", "/keys", {"name": office.unique()})
    return str(made["data"]["id"])


async def key_within(office: Office, person: Person) -> str:
    """A key of the person's own, where their key lives."""
    made = await office.ok(person, "POST", "/keys", {"name": office.unique()})
    return str(made["data"]["id"])


def keyed(
    of: Callable[[Office, Person], Awaitable[str]], parameter: str = "key", /, **fields: Any
) -> Build:
    """A request about one object that `of` makes."""

    async def build(office: Office, person: Person) -> Sent:
        return Sent(ids={parameter: await of(office, person)}, body=fields or None)

    return build


def of_key(**fields: Any) -> Case:
    return Case(
        build=keyed(key, **fields),
        within=keyed(key_within, **fields),
        outside=404,
        scoped=True,
    )


async def new_key(office: Office, person: Person) -> Sent:
    return Sent(body={"name": office.unique(), "limit": 1.5})


# people


async def member(office: Office, person: Person) -> str:
    joined = await office.join(office.unique("person"))
    assert joined.user_id is not None
    return joined.user_id


async def new_invitation(office: Office, person: Person) -> Sent:
    return Sent(body={"email": f"{office.unique('guest')}@acme.example"})


async def invitation(office: Office, person: Person) -> str:
    """An invitation into no workspace."""
    sent = await office.ok(
        "owner",
        "POST",
        "/organization/invitations",
        {"email": f"{office.unique('guest')}@acme.example"},
    )
    return str(sent["data"]["id"])


async def invitation_within(office: Office, person: Person) -> str:
    sent = await office.ok(
        "owner",
        "POST",
        "/organization/invitations",
        {
            "email": f"{office.unique('guest')}@acme.example",
            "workspace_ids": [office.workspace_id],
        },
    )
    return str(sent["data"]["id"])


async def token(office: Office, person: Person) -> Sent:
    return Sent(body={"token": await office.invite(f"{office.unique('guest')}@acme.example")})


async def session(office: Office, person: Person) -> str:
    """A browser in which the person is signed in; of somebody else for who is not of the organization."""
    is_foreign = person.name == "stranger" or person.caller is None
    caller = office["owner"].caller if is_foreign else person.caller
    assert caller is not None
    new = NewSession(caller=caller, own_device=False, address="127.0.0.1", user_agent="a browser")
    node = office.gateway.running.node
    pepper, now_us = node.issuing.pepper, node.clock.now_us()
    await node.store.write(sessions.begin, new, pepper=pepper, now_us=now_us)
    rows = await node.store.read(
        lambda connection: connection.rows(
            "SELECT id FROM browser_session WHERE key_id = ? ORDER BY created_at DESC",
            (caller.key_id,),
        )
    )
    return str(rows[0][0])


# workspaces and organizations


async def workspace(office: Office, person: Person) -> str:
    made = await office.ok("owner", "POST", "/workspaces", {"name": office.unique("Space")})
    return str(made["data"]["id"])


async def workspace_within(office: Office, person: Person) -> str:
    return office.workspace_id


async def new_workspace(office: Office, person: Person) -> Sent:
    return Sent(body={"name": office.unique("Space")})


def of_workspace(**fields: Any) -> Case:
    """A write in a workspace: a lead has it in its own."""
    return Case(
        build=keyed(workspace, "workspace", **fields),
        within=keyed(workspace_within, "workspace", **fields),
        outside=403,
        scoped=True,
    )


def joining(of: Callable[[Office, Person], Awaitable[str]]) -> Build:
    async def build(office: Office, person: Person) -> Sent:
        ids = {"workspace": await of(office, person)}
        return Sent(ids=ids, body={"user_ids": [await member(office, person)]})

    return build


async def new_organization(office: Office, person: Person) -> Sent:
    return Sent(body={"name": office.unique("Org")})


async def organization(office: Office, person: Person) -> str:
    made = await office.ok("operator", "POST", "/organizations", {"name": office.unique("Org")})
    return str(made["data"]["id"])


async def rename(office: Office, person: Person) -> Sent:
    return Sent(body={"name": office.unique("Acme")})


# budgets


async def new_budget(office: Office, person: Person) -> Sent:
    """A daily budget of a fresh workspace; strangers and leads name their organization."""
    return Sent(
        body={
            "scope": "workspace",
            "scope_id": await workspace(office, person),
            "interval": "daily",
            "limit": 5,
        }
    )


async def new_budget_within(office: Office, person: Person) -> Sent:
    of_key = await office.ok(person, "POST", "/keys", {"name": office.unique()})
    return Sent(
        body={"scope": "key", "scope_id": of_key["data"]["id"], "interval": "daily", "limit": 5}
    )


async def budget(office: Office, person: Person) -> str:
    made = await office.ok("owner", "POST", "/budgets", (await new_budget(office, person)).body)
    return str(made["data"]["id"])


async def budget_within(office: Office, person: Person) -> str:
    sent = await new_budget_within(office, person)
    made = await office.ok("owner", "POST", "/budgets", sent.body)
    return str(made["data"]["id"])


def of_budget(**fields: Any) -> Case:
    return Case(
        build=keyed(budget, "budget", **fields),
        within=keyed(budget_within, "budget", **fields),
        outside=403,
        scoped=True,
    )


def in_a_day() -> str:
    return (datetime.now(UTC) + timedelta(days=1)).isoformat()


def raised(
    of: Callable[[Office, Person], Awaitable[str]],
) -> Callable[[Office, Person], Awaitable[str]]:
    async def make(office: Office, person: Person) -> str:
        found = await of(office, person)
        body = {"limit": 6, "until": in_a_day()}
        await office.ok("owner", "POST", f"/budgets/{found}/raise", body)
        return found

    return make


def of_interval(
    of: Callable[[Office, Person], Awaitable[str]], exists: bool = True, **fields: Any
) -> Build:
    async def build(office: Office, person: Person) -> Sent:
        ids = {"workspace": await of(office, person), "interval": "weekly"}
        if exists:
            path = f"/workspaces/{ids['workspace']}/budgets/weekly"
            await office.ok("owner", "PUT", path, {"limit_usd": 7})
        return Sent(ids=ids, body=fields or None)

    return build


# money and activity


async def own_record(office: Office, person: Person) -> Sent:
    """The generation of the owner's key in the default workspace."""
    return Sent(query={"id": await generation(office, "owner")})


async def record_within(office: Office, person: Person) -> Sent:
    return Sent(query={"id": await generation(office, person)})


async def generation(office: Office, person: Person | str) -> str:
    """A request that was refused for its model: recorded, and nothing is charged."""
    made = await office.ok(person, "POST", "/keys", {"name": office.unique()})
    reply = await office.client.post(
        "/chat/completions",
        json={"model": "no/such", "messages": [{"role": "user", "content": "hello"}]},
        headers={"authorization": f"Bearer {made['key']}"},
    )
    assert reply.status_code == 404
    await office.gateway.at_rest()
    return reply.headers["x-gw-generation-id"]


async def everything(office: Office, person: Person) -> Sent:
    return Sent(query={"all": "true"})


async def stored_record(office: Office, person: Person) -> Sent:
    """A request of the owner's key of which something is stored."""
    return Sent(query={"id": await stored(office, "owner")})


async def stored_within(office: Office, person: Person) -> Sent:
    return Sent(query={"id": await stored(office, person)})


async def stored(office: Office, person: Person | str) -> str:
    wanted = {"content_log": {"days": 1}}
    await office.ok("owner", "PATCH", "/organization/settings", wanted)
    gateway = office.gateway
    there = await office.call("operator", "GET", "/catalog/models/demo/stored")
    if there.status_code == HTTPStatus.NOT_FOUND:
        await gateway.add_provider("stored", "openai_chat", gateway.vendor.openai_url)
        await gateway.add_model("demo/stored", pricing=PRICES)
        await gateway.add_endpoint("demo/stored", "stored", "gpt-demo")
    made = await office.ok(person, "POST", "/keys", {"name": office.unique()})
    reply = await office.client.post(
        "/chat/completions",
        json={"model": "demo/stored", "messages": [{"role": "user", "content": "hello"}]},
        headers={"authorization": f"Bearer {made['key']}"},
    )
    assert reply.status_code == 200, reply.text
    await office.gateway.at_rest()
    return reply.headers["x-gw-generation-id"]


async def this_month(office: Office, person: Person) -> Sent:
    return Sent(ids={"month": datetime.now(UTC).strftime("%Y-%m")})


async def refund(office: Office, person: Person) -> Sent:
    """Something to give back is there for everybody who may."""
    purchase = {"amount": 1, "reference": office.unique("paid")}
    if person.name in ("owner", "billing", "operator", "stranger"):
        await office.ok(person, "POST", "/credits/purchases", purchase)
    return Sent(body={"amount": 0.5, "note": "changed our mind"})


# catalog


async def new_provider(office: Office, person: Person) -> Sent:
    return Sent(
        body={
            "slug": office.unique("provider"),
            "name": "Provider",
            "adapter": "openai_chat",
            "base_url": office.gateway.vendor.openai_url,
        }
    )


async def provider(office: Office, person: Person) -> str:
    sent = await new_provider(office, person)
    await office.ok("operator", "POST", "/catalog/providers", sent.body)
    return str(sent.body["slug"])


async def new_model(office: Office, person: Person) -> Sent:
    return Sent(
        body={
            "id": f"demo/{office.unique('model')}",
            "name": "Model",
            "vendor": "Demo",
            "context_length": 100_000,
            "max_completion_tokens": 1_000,
            "supported_parameters": ["max_tokens"],
            "input_modalities": ["text"],
            "output_modalities": ["text"],
            "pricing": PRICING,
        }
    )


async def model(office: Office, person: Person) -> str:
    sent = await new_model(office, person)
    await office.ok("operator", "POST", "/catalog/models", sent.body)
    return str(sent.body["id"])


async def another_price(office: Office, person: Person) -> Sent:
    """To take over what the price book says of a model that costs something else."""
    sent = await new_model(office, person)
    pricing = {"prompt": "0.000001", "completion": "0.000001"}
    made = {**sent.body, "id": OF_THE_BOOK, "pricing": pricing}
    reply = await office.call("operator", "POST", "/catalog/models", made)
    if reply.status_code == HTTPStatus.CONFLICT:
        change = {"pricing": pricing, "accept": True}
        await office.ok("operator", "PATCH", f"/catalog/models/{OF_THE_BOOK}", change)
    return Sent(body={"models": [OF_THE_BOOK], "accept": [OF_THE_BOOK]})


async def thought_price(office: Office, person: Person) -> Sent:
    pricing = {"prompt": "0.000003", "completion": "0.000009"}
    return Sent(body={"model": await model(office, person), "pricing": pricing})


async def with_new_models(office: Office, person: Person) -> Sent:
    return Sent(query={"new": "true"})


async def new_endpoint(office: Office, person: Person) -> Sent:
    return Sent(
        body={
            "model": await model(office, person),
            "provider": await provider(office, person),
            "upstream_model": "gpt-demo",
        }
    )


async def endpoint(office: Office, person: Person) -> str:
    sent = await new_endpoint(office, person)
    made = await office.ok("operator", "POST", "/catalog/endpoints", sent.body)
    return str(made["data"]["id"])


async def new_credential(office: Office, person: Person) -> Sent:
    return Sent(body={"provider": await provider(office, person), "key": "sk-demo-0000-0000"})


async def credential(office: Office, person: Person) -> str:
    sent = await new_credential(office, person)
    made = await office.ok("operator", "POST", "/catalog/credentials", sent.body)
    return str(made["data"]["id"])


async def ready_provider(office: Office, person: Person) -> str:
    """A provider with an endpoint and a key."""
    sent = await new_endpoint(office, person)
    await office.ok("operator", "POST", "/catalog/endpoints", sent.body)
    slug = str(sent.body["provider"])
    secret = {"provider": slug, "key": "sk-demo-0000-0000"}
    await office.ok("operator", "POST", "/catalog/credentials", secret)
    return slug


# own vendor keys


async def new_own_key(office: Office, person: Person) -> Sent:
    return Sent(body={"provider": await provider(office, person), "key": "sk-demo-0000-0000"})


async def _own_key(office: Office, slug: str, **fields: Any) -> str:
    wanted = {"provider": slug, "key": "sk-demo-0000-0000", **fields}
    made = await office.ok("owner", "POST", "/byok", wanted)
    return str(made["data"]["id"])


async def own_key(office: Office, person: Person) -> str:
    """A vendor key of the whole organization's."""
    return await _own_key(office, await provider(office, person))


async def own_key_within(office: Office, person: Person) -> str:
    """One of the lead's workspace."""
    slug = await provider(office, person)
    return await _own_key(office, slug, workspace_id=office.workspace_id)


async def ready_own_key(office: Office, person: Person) -> str:
    """One whose provider has an endpoint."""
    return await _own_key(office, await ready_provider(office, person))


async def ready_own_key_within(office: Office, person: Person) -> str:
    slug = await ready_provider(office, person)
    return await _own_key(office, slug, workspace_id=office.workspace_id)


def of_own_key(**fields: Any) -> Case:
    return Case(
        build=keyed(own_key, "byok", **fields),
        within=keyed(own_key_within, "byok", **fields),
        outside=403,
        scoped=True,
    )


async def question(office: Office, person: Person) -> Sent:
    return Sent(body={"model": await model(office, person)})


# the key ring


async def ring_at_rest(office: Office, person: Person) -> Sent:
    """Nothing is being sealed anew, so that a rotation begins."""
    for _ in range(500):
        found = await office.ok("operator", "GET", "/operator/secrets")
        if len(found["data"]["keys"]) == 1 or found["data"]["current_since"] is not None:
            return Sent(body={})
        await asyncio.sleep(0.02)
    raise AssertionError("a rotation does not end")


async def old_ring_key(office: Office, person: Person) -> Sent:
    await ring_at_rest(office, person)
    await office.ok("operator", "POST", "/operator/secrets/rotate", {})
    await ring_at_rest(office, person)
    return Sent(body={"force": True})


# alerts


NOBODY_LISTENS = "http://127.0.0.1:9/hook"


async def new_destination(office: Office, person: Person) -> Sent:
    return Sent(body={"type": "webhook", "name": office.unique(), "url": NOBODY_LISTENS})


async def destination(office: Office, person: Person) -> str:
    wanted = {"type": "webhook", "name": office.unique(), "url": NOBODY_LISTENS}
    made = await office.ok("owner", "POST", "/notifications/destinations", wanted)
    return str(made["data"]["id"])


async def _tried(office: Office, person: Person, name: str) -> str:
    """Of a test delivery that nobody took."""
    place = f"/notifications/destinations/{await destination(office, person)}/test"
    return str((await office.ok("owner", "POST", place, {}))["data"][name])


async def delivery(office: Office, person: Person) -> str:
    return await _tried(office, person, "id")


async def event(office: Office, person: Person) -> str:
    return await _tried(office, person, "event_id")


def of_destination(**fields: Any) -> Case:
    return Case(build=keyed(destination, "destination", **fields), scoped=True)


ANY = Case(build=nothing)

CASES: dict[str, Case] = {
    "GET /auth/key": ANY,
    "GET /key": ANY,
    "GET /keys": ANY,
    "POST /keys": Case(build=new_key),
    "GET /keys/<key>": of_key(),
    "PATCH /keys/<key>": of_key(disabled=True),
    "DELETE /keys/<key>": of_key(),
    "POST /keys/<key>/rotate": of_key(overlap="1h"),
    "GET /organization": ANY,
    "PATCH /organization": Case(build=rename),
    "GET /organization/settings": ANY,
    "PATCH /organization/settings": Case(build=body(retention_days=30)),
    "GET /organization/members": ANY,
    "GET /organization/members/<user>": Case(build=keyed(member, "user"), scoped=True),
    "PATCH /organization/members/<user>": Case(
        build=keyed(member, "user", role="billing"), scoped=True
    ),
    "DELETE /organization/members/<user>": Case(build=keyed(member, "user"), scoped=True),
    "GET /organization/invitations": ANY,
    "POST /organization/invitations": Case(build=new_invitation),
    "GET /organization/invitations/<invitation>": Case(
        build=keyed(invitation, "invitation"), scoped=True
    ),
    "DELETE /organization/invitations/<invitation>": Case(
        build=keyed(invitation, "invitation"),
        within=keyed(invitation_within, "invitation"),
        outside=403,
        scoped=True,
    ),
    "POST /invitations/accept": Case(build=token),
    "POST /invitations/look-up": Case(build=token),
    "POST /sign-in-links": Case(build=body(path="/keys")),
    "GET /sessions": ANY,
    "DELETE /sessions/<session>": Case(build=keyed(session, "session"), scoped=True),
    "GET /workspaces": ANY,
    "POST /workspaces": Case(build=new_workspace),
    "GET /workspaces/<workspace>": Case(build=keyed(workspace, "workspace"), scoped=True),
    "PATCH /workspaces/<workspace>": of_workspace(description="for the shop"),
    "DELETE /workspaces/<workspace>": Case(build=keyed(workspace, "workspace"), scoped=True),
    "GET /workspaces/<workspace>/members": Case(build=keyed(workspace, "workspace"), scoped=True),
    "POST /workspaces/<workspace>/members/add": Case(
        build=joining(workspace), within=joining(workspace_within), outside=403, scoped=True
    ),
    "POST /workspaces/<workspace>/members/remove": Case(
        build=joining(workspace), within=joining(workspace_within), outside=403, scoped=True
    ),
    "GET /organizations": ANY,
    "POST /organizations": Case(build=new_organization),
    "GET /organizations/<organization>": Case(build=keyed(organization, "organization")),
    "PATCH /organizations/<organization>": Case(
        build=keyed(organization, "organization", suspended=True)
    ),
    "GET /organizations/<organization>/settings": Case(build=keyed(organization, "organization")),
    "PATCH /organizations/<organization>/settings": Case(
        build=keyed(organization, "organization", byok_fee_percent=2)
    ),
    "DELETE /organizations/<organization>": Case(build=keyed(organization, "organization")),
    "GET /audit": ANY,
    "GET /budgets": ANY,
    "POST /budgets": Case(build=new_budget, within=new_budget_within, outside=403, scoped=True),
    "GET /budgets/<budget>": Case(build=keyed(budget, "budget"), scoped=True),
    "PATCH /budgets/<budget>": of_budget(limit=6),
    "DELETE /budgets/<budget>": of_budget(),
    "POST /budgets/<budget>/raise": of_budget(limit=6, until=in_a_day()),
    "DELETE /budgets/<budget>/raise": Case(
        build=keyed(raised(budget), "budget"),
        within=keyed(raised(budget_within), "budget"),
        outside=403,
        scoped=True,
    ),
    "POST /budgets/simulate": Case(build=new_budget, scoped=True),
    "GET /workspaces/<workspace>/budgets": Case(build=keyed(workspace, "workspace"), scoped=True),
    "GET /workspaces/<workspace>/budgets/<interval>": Case(
        build=of_interval(workspace), scoped=True
    ),
    "PUT /workspaces/<workspace>/budgets/<interval>": Case(
        build=of_interval(workspace, exists=False, limit_usd=9),
        within=of_interval(workspace_within, limit_usd=9),
        outside=403,
        scoped=True,
    ),
    "DELETE /workspaces/<workspace>/budgets/<interval>": Case(
        build=of_interval(workspace),
        within=of_interval(workspace_within),
        outside=403,
        scoped=True,
    ),
    "GET /credits": ANY,
    "GET /credits/ledger": ANY,
    "GET /statements/<month>": Case(build=this_month, whole=True),
    "POST /credits/grants": Case(build=body(kind="promotional", amount=1)),
    "POST /credits/purchases": Case(build=body(amount=1)),
    "POST /credits/refunds": Case(build=refund),
    "POST /credits/adjustments": Case(build=body(amount=1, reason="a test")),
    "GET /notifications/events": ANY,
    "GET /notifications/events/<event>": Case(build=keyed(event, "event"), scoped=True),
    "GET /notifications/alerts": ANY,
    "PATCH /notifications/alerts": Case(build=body(category="key_limit", thresholds=[80])),
    "GET /notifications/destinations": ANY,
    "POST /notifications/destinations": Case(build=new_destination),
    "GET /notifications/destinations/<destination>": of_destination(),
    "PATCH /notifications/destinations/<destination>": of_destination(name="night"),
    "DELETE /notifications/destinations/<destination>": of_destination(),
    "POST /notifications/destinations/<destination>/enable": of_destination(),
    "POST /notifications/destinations/<destination>/disable": of_destination(),
    "POST /notifications/destinations/<destination>/test": of_destination(),
    "POST /notifications/destinations/<destination>/rotate-secret": of_destination(),
    "GET /notifications/destinations/<destination>/deliveries": of_destination(),
    "POST /notifications/destinations/<destination>/redeliver": Case(
        build=keyed(destination, "destination", **{"from": "2026-01-01T00:00:00Z"}), scoped=True
    ),
    "GET /notifications/deliveries": ANY,
    "GET /notifications/deliveries/<delivery>": Case(
        build=keyed(delivery, "delivery"), scoped=True
    ),
    "POST /notifications/deliveries/<delivery>/redeliver": Case(
        build=keyed(delivery, "delivery"), scoped=True
    ),
    "GET /catalog/lifecycle": ANY,
    "POST /route/explain": Case(build=question),
    "POST /estimate": Case(build=question),
    "POST /ledger/verify": ANY,
    "GET /ledger/head": ANY,
    "GET /credits/auto-topup": ANY,
    "PATCH /credits/auto-topup": Case(build=body(threshold=20, amount=100)),
    "GET /generation": Case(build=own_record, within=record_within, outside=404, scoped=True),
    "GET /generation/content": Case(
        build=stored_record, within=stored_within, outside=404, scoped=True
    ),
    "DELETE /generation/content": Case(build=stored_record),
    "GET /content-log": ANY,
    "DELETE /content-log": Case(build=everything),
    "GET /generations": ANY,
    "POST /analytics/query": Case(build=body(metrics=["requests", "cost"], dimensions=["model"])),
    "GET /analytics/meta": ANY,
    "GET /activity": ANY,
    "GET /key/usage": ANY,
    "GET /vendor-usage": Case(build=november),
    "GET /catalog/prices/diff": Case(build=with_new_models),
    "POST /catalog/prices/apply": Case(build=another_price),
    "POST /catalog/prices/effect": Case(build=thought_price),
    "GET /catalog/providers": ANY,
    "POST /catalog/providers": Case(build=new_provider),
    "GET /catalog/providers/<slug>": Case(build=keyed(provider, "slug")),
    "PATCH /catalog/providers/<slug>": Case(build=keyed(provider, "slug", name="Other")),
    "DELETE /catalog/providers/<slug>": Case(build=keyed(provider, "slug")),
    "POST /catalog/providers/<slug>/test": Case(build=keyed(ready_provider, "slug")),
    "GET /catalog/providers/<slug>/models": Case(build=keyed(ready_provider, "slug")),
    "GET /catalog/models": ANY,
    "POST /catalog/models": Case(build=new_model),
    "GET /catalog/models/<model:path>": Case(build=keyed(model, "model")),
    "PATCH /catalog/models/<model:path>": Case(build=keyed(model, "model", name="Other")),
    "DELETE /catalog/models/<model:path>": Case(build=keyed(model, "model")),
    "GET /catalog/endpoints": ANY,
    "POST /catalog/endpoints": Case(build=new_endpoint),
    "GET /catalog/endpoints/<endpoint>": Case(build=keyed(endpoint, "endpoint")),
    "PATCH /catalog/endpoints/<endpoint>": Case(build=keyed(endpoint, "endpoint", weight=2)),
    "DELETE /catalog/endpoints/<endpoint>": Case(build=keyed(endpoint, "endpoint")),
    "GET /catalog/endpoints/<endpoint>/health": Case(build=keyed(endpoint, "endpoint")),
    "POST /catalog/endpoints/<endpoint>/drain": Case(build=keyed(endpoint, "endpoint")),
    "GET /catalog/credentials": ANY,
    "POST /catalog/credentials": Case(build=new_credential),
    "GET /catalog/credentials/<credential>": Case(build=keyed(credential, "credential")),
    "PATCH /catalog/credentials/<credential>": Case(
        build=keyed(credential, "credential", disabled=True)
    ),
    "DELETE /catalog/credentials/<credential>": Case(build=keyed(credential, "credential")),
    "GET /byok": ANY,
    "POST /byok": Case(build=new_own_key),
    "GET /byok/<byok>": of_own_key(),
    "PATCH /byok/<byok>": of_own_key(disabled=True),
    "DELETE /byok/<byok>": of_own_key(),
    "POST /byok/<byok>/test": Case(
        build=keyed(ready_own_key, "byok"),
        within=keyed(ready_own_key_within, "byok"),
        outside=403,
        scoped=True,
    ),
    "GET /operator/status": ANY,
    "GET /operator/doctor": ANY,
    "GET /operator/clock": ANY,
    "POST /operator/clock": Case(build=body(accept=True)),
    "GET /operator/secrets": ANY,
    "GET /operator/secrets/verify": ANY,
    "POST /operator/secrets/rotate": Case(build=ring_at_rest),
    "POST /operator/secrets/prune": Case(build=old_ring_key),
    "POST /operator/reload": ANY,
}
