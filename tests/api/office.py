"""Callers over HTTP: an organization with people of every role, a workspace with its lead, and another organization."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from gwd.core.caller import Caller, KeyKind, Role
from tests.support.node import Gateway, with_catalog


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who calls. `caller` is what the gateway makes of the key; nobody without one."""

    name: str
    key: str | None
    caller: Caller | None
    user_id: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.key is None else {"authorization": f"Bearer {self.key}"}


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Who was there at the beginning, and where."""

    people: dict[str, Person]
    organization_id: str
    stranger_organization_id: str
    workspace_id: str
    counter: int


class Office:
    """A node with people; everything is made through the API."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.client = httpx.AsyncClient(base_url=gateway.base_url, timeout=20, verify=False)
        self.people: dict[str, Person] = {}
        self.organization_id = ""
        self.stranger_organization_id = ""
        self.workspace_id = ""
        self.counter = 0

    def __getitem__(self, name: str) -> Person:
        return self.people[name]

    def unique(self, word: str = "name") -> str:
        """A name that nothing else has."""
        self.counter += 1
        return f"{word}-{self.counter}"

    async def call(
        self, person: Person | str, method: str, path: str, body: Any = None, **options: Any
    ) -> httpx.Response:
        """A request as somebody; `body` goes as JSON."""
        who = self.people[person] if isinstance(person, str) else person
        headers = {**who.headers, **options.pop("headers", {})}
        if body is not None:
            options["json"] = body
        return await self.client.request(method, path, headers=headers, **options)

    async def ok(
        self, person: Person | str, method: str, path: str, body: Any = None, **options: Any
    ) -> Any:
        """The body of a request that must succeed."""
        reply = await self.call(person, method, path, body, **options)
        assert reply.status_code in (200, 201), f"{method} {path}: {reply.status_code} {reply.text}"
        return reply.json()

    async def move_in(self) -> None:
        """Everybody gets a key."""
        self.people["nobody"] = Person(name="nobody", key=None, caller=None)
        self._know("operator", self.gateway.management_key, await self._own("operator"))
        self.organization_id = self.people["operator"].caller.organization_id  # type: ignore[union-attr]
        owner = {"name": "owner", "type": "management", "role": "owner"}
        made = await self.ok("operator", "POST", "/keys", owner)
        self._know("owner", made["key"], made["data"])
        for role in ("admin", "billing", "member"):
            await self.join(role, role=role)
        web = await self.ok("owner", "POST", "/workspaces", {"name": "Web"})
        self.workspace_id = web["data"]["id"]
        await self.join("lead", is_lead=True, workspace_ids=[self.workspace_id])
        made = await self.ok("member", "POST", "/keys", {"name": "inference"})
        self._know("inference", made["key"], made["data"])
        other = {"name": "Globex", "owner_email": "owner@globex.example"}
        made = await self.ok("operator", "POST", "/organizations", other)
        self.stranger_organization_id = made["data"]["id"]
        self.people["stranger"] = Person(name="stranger", key=made["management_key"], caller=None)
        record = (await self.ok("stranger", "GET", "/auth/key"))["data"]
        self._know("stranger", made["management_key"], record)

    async def join(self, name: str, **invitation: Any) -> Person:
        """A new member of the organization, by invitation."""
        token = await self.invite(f"{name}@acme.example", **invitation)
        reply = await self.ok("nobody", "POST", "/invitations/accept", {"token": token})
        key = reply["management_key"]
        self.people[name] = Person(name=name, key=key, caller=None)
        record = (await self.ok(name, "GET", "/auth/key"))["data"]
        return self._know(name, key, record)

    async def invite(self, email: str, **invitation: Any) -> str:
        """The token of a fresh invitation."""
        sent = await self.ok(
            "owner", "POST", "/organization/invitations", {"email": email, **invitation}
        )
        url: str = sent["accept_url"]
        return url.rpartition("token=")[2]

    async def close(self) -> None:
        await self.client.aclose()

    async def _own(self, name: str) -> Any:
        self.people[name] = Person(name=name, key=self.gateway.management_key, caller=None)
        return (await self.ok(name, "GET", "/auth/key"))["data"]

    def _know(self, name: str, key: str, record: dict[str, Any]) -> Person:
        kind: KeyKind = record["type"]
        role: Role | None = record["role"]
        person = Person(
            name=name,
            key=key,
            user_id=record["user_id"],
            caller=Caller(
                kind=kind,
                key_id=record["id"],
                key_name=record["name"],
                family_id=record["id"],
                organization_id=record["organization_id"],
                workspace_id=record["workspace_id"],
                user_id=record["user_id"],
                role=role,
            ),
        )
        self.people[name] = person
        return person


async def people(gateway: Gateway) -> Places:
    """A beginning of `open_gateway`: everybody has moved in."""
    office = Office(gateway)
    try:
        await office.move_in()
    finally:
        await office.close()
    return Places(
        people=office.people,
        organization_id=office.organization_id,
        stranger_organization_id=office.stranger_organization_id,
        workspace_id=office.workspace_id,
        counter=office.counter,
    )


async def furnished_for_people(gateway: Gateway) -> Places:
    """The same with a catalog and an inference key."""
    await with_catalog(gateway)
    return await people(gateway)


@asynccontextmanager
async def working(gateway: Gateway) -> AsyncIterator[Office]:
    """The office of a gateway that began with people."""
    office, places = Office(gateway), gateway.begun
    office.people = dict(places.people)
    office.organization_id = places.organization_id
    office.stranger_organization_id = places.stranger_organization_id
    office.workspace_id = places.workspace_id
    office.counter = places.counter
    try:
        yield office
    finally:
        await office.close()
