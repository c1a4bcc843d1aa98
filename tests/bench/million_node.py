"""A node with a long history: requests that went through the gateway's own admission and settlement, over 45 days.

Ledger entries in their chain, spend, records and sums by day are as a node that served would have written them; only
many requests share a transaction. For one count it is always the same, but for random ids.
"""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

import msgspec

from gwd import ledger
from gwd.activity.row import GenerationRow
from gwd.core.clock import US_PER_DAY, US_PER_S
from gwd.core.cost import Cost
from gwd.core.errors import ModelNotFound, UpstreamFailed
from gwd.core.extras import Applied
from gwd.core.ids import mint, mint_in_runs
from gwd.core.request import Generate, Message, Request, Sender, TextPart
from gwd.core.usage import Usage
from gwd.keys import admission as keys
from gwd.pipeline.admit.admission import Admitted, Refused, admit
from gwd.pipeline.admit.identity import GenerationIdentity, error_columns
from gwd.pipeline.plan.plan_input import Asker
from gwd.pipeline.plan.routing import Plan, Refusal, plan
from gwd.pipeline.settle.progress import served_of
from gwd.pipeline.settle.settlement import charged_row, settle
from gwd.pricing.cost import cost
from gwd.pricing.hold import measure
from gwd.store import Connection, maintains_cache
from gwd.store.connection import open_connection
from tests.flows.clock import MovableClock
from tests.support.money import USD
from tests.support.node import MODELS, Gateway, Nodes, fill_catalog
from tests.vendor import StrictVendor

BEGINS: Final = datetime(2026, 9, 1, tzinfo=UTC)
DAYS: Final = 45
WORKSPACES: Final = 5
KEYS: Final = 40
USERS: Final = 500
APPS: Final = ("editor", "support", "search", "reports", "night batch")
CHAT: Final = [name for name, spec in MODELS.items() if not spec.get("embeddings")]
STATUSES: Final = ("succeeded", "failed", "incomplete", "cancelled")
APP_URL: Final = "https://gateway.example"
BATCH: Final = 1_000
AT_ONCE: Final = 8
"""Requests that run at the same time."""
LOW_NANO: Final = 100 * USD
REQUESTS_A_KEY: Final = 10
"""Of most keys hardly one is ever used: there is a key for so many requests."""
_FACTS: Final = "facts.json"


class Asking(msgspec.Struct, frozen=True):
    """A key of the node that asks; the first of them most, the last least."""

    key_id: str
    workspace_id: str


class Facts(msgspec.Struct, frozen=True):
    """What one has to know of a node that was made."""

    count: int
    organization_id: str
    management_key: str
    keys: list[Asking]


class Served(msgspec.Struct, frozen=True):
    """A request as admission meets it, and the record that it ends with, unless it is refused."""

    identity: GenerationIdentity
    planned: Plan | Refusal
    row: GenerationRow | None


async def made(folder: Path, count: int) -> Facts:
    """The node of `count` requests in this folder; made now where it is not there."""
    place = folder / _FACTS
    if place.exists():
        return msgspec.json.decode(place.read_bytes(), type=Facts)
    folder.mkdir(parents=True, exist_ok=True)
    nodes = Nodes(folder)
    clock = MovableClock(BEGINS)
    management_key = nodes.init(str(LOW_NANO // USD), clock)
    async with StrictVendor() as vendor, nodes.running(clock) as running:
        gateway = Gateway(running, vendor, management_key)
        try:
            asking = await begin(gateway)
            facts = Facts(count, await gateway.organization_id(), management_key, asking)
            history = await History.of(gateway, facts)
            for first in range(0, count, BATCH):
                requests = history.requests(min(BATCH, count - first), DAYS * US_PER_DAY // count)
                await gateway.store.write(history.pay)
                await gateway.store.write(serve, requests)
            await gateway.store.write(add_keys, count // REQUESTS_A_KEY)
        finally:
            await gateway.close()
    place.write_bytes(msgspec.json.encode(facts))
    return facts


async def begin(gateway: Gateway) -> list[Asking]:
    """Catalog, workspaces, keys, an own vendor key in one workspace, a budget; the keys that ask."""
    await fill_catalog(gateway)
    for slug in CHAT:
        spec = MODELS[slug]
        provider = spec["adapter"].replace("_", "-")
        fields = {"flags": spec["flags"]} if "flags" in spec else {}
        await gateway.add_endpoint(slug, provider, spec["upstream"], tag=f"{provider}/eu", **fields)
    names = [f"team {number}" for number in range(WORKSPACES)]
    made = [await gateway.manage("POST", "/workspaces", {"name": name}) for name in names]
    spaces = [reply["data"]["id"] for reply in made]
    own = {"provider": "openai-chat", "key": "sk-own-0000", "workspace_id": spaces[0]}
    await gateway.manage("POST", "/byok", own)
    await gateway.manage("PATCH", "/organization/settings", {"retention_days": 2 * DAYS})
    await gateway.manage(
        "POST", "/budgets", {"scope": "organization", "interval": "lifetime", "limit": 1_000_000}
    )
    asking = []
    for number in range(KEYS):
        workspace_id = spaces[number % WORKSPACES]
        _, key_id = await gateway.new_key(name=f"key {number}", workspace_id=workspace_id)
        asking.append(Asking(key_id, workspace_id))
    return asking


def clock_after(folder: Path) -> MovableClock:
    """A clock that begins where the books of a node end."""
    connection = open_connection(str(Nodes(folder).folder / "gwd.db"), "reader")
    try:
        last_us = ledger.last_time_us(connection)
    finally:
        connection.raw.close()
    assert last_us is not None
    return MovableClock(datetime.fromtimestamp(last_us / US_PER_S + 1, UTC))


@maintains_cache
def serve(connection: Connection, requests: Sequence[Served]) -> None:
    """Admit and settle these requests, a few at the same time."""
    for first in range(0, len(requests), AT_ONCE):
        running = requests[first : first + AT_ONCE]
        for each in running:
            verdict = admit(
                connection,
                each.planned,
                each.identity,
                boot_id="boot_bench",
                in_flight_cap=0,
                app_url=APP_URL,
                now_us=each.identity.created_us,
                due_us=each.identity.created_us,
            )
            assert isinstance(verdict, Refused if each.row is None else Admitted), verdict
        for each in running:
            if each.row is not None:
                charged, ended_us = each.row.status != "failed", each.row.settled_at
                settle(connection, each.row, charged=charged, app_url=APP_URL, now_us=ended_us)


def add_keys(connection: Connection, count: int) -> None:
    """Keys that nobody uses, like the first of the node but for what is each one's own."""
    row = connection.row("SELECT * FROM api_key WHERE name = 'key 0'")
    assert row is not None
    names = [name for _, name, *_ in connection.rows("PRAGMA table_info(api_key)")]
    first = dict(zip(names, row, strict=True))
    made = []
    for number in range(count):
        key_id = mint("key_")
        own = {"id": key_id, "family_id": key_id, "name": f"spare {number}"}
        digest = sha256(key_id.encode())
        made.append({**first, **own, "hash": digest.hexdigest(), "digest": digest.digest()})
    connection.execute_many(
        f"INSERT INTO api_key VALUES ({', '.join('?' * len(names))})",
        [tuple(each.values()) for each in made],
    )


class History:
    """Thinks of requests, one after the other from the present of a node's books on."""

    def __init__(self, facts: Facts, plans: dict[tuple[str, str], Plan], at_us: int) -> None:
        self.at_us = at_us
        self._organization_id = facts.organization_id
        self._keys = facts.keys
        self._weights = [1 / number for number in range(1, len(facts.keys) + 1)]
        self._plans = plans
        self._random = random.Random(facts.count)
        self._number = 0

    @classmethod
    async def of(cls, gateway: Gateway, facts: Facts) -> Self:
        """With what the planner says of each key's requests; it says the same until somebody changes the catalog."""
        store, state = gateway.store, gateway.running.node.state
        message = Message(role="user", parts=(TextPart(text="a question of some length " * 40),))
        plans = {}
        for asking in facts.keys:
            policy = await store.read(keys.policy, asking.key_id)
            assert policy is not None
            asker = Asker(family_id=asking.key_id, workspace_id=asking.workspace_id)
            for model in CHAT:
                request = Request(
                    dialect="chat_completions",
                    family="openai_chat",
                    models=(model,),
                    body=Generate(messages=(message,), max_output_tokens=1_000),
                    body_bytes=2_000,
                )
                plan_input = await state.plan_input(facts.organization_id, policy, asker)
                planned = plan(request, plan_input, measure(request))
                assert isinstance(planned, Plan), planned
                plans[asking.key_id, model] = planned
        now_us = gateway.running.node.clock.now_us()
        at_us = await store.read(ledger.ledger_time_us, facts.organization_id, now_us=now_us)
        return cls(facts, plans, at_us)

    def pay(self, connection: Connection) -> None:
        """As somebody would who sees that little is left."""
        found = ledger.balance(connection, self._organization_id, now_us=self.at_us)
        if found.available_nano < LOW_NANO:
            credit = ledger.NewCredit(
                kind="purchased",
                type="purchase",
                amount_nano=LOW_NANO // 2,
                reference=mint("invoice-"),
            )
            ledger.add_credit(connection, self._organization_id, credit, now_us=self.at_us)

    def requests(self, count: int, step_us: int) -> list[Served]:
        """So many, each `step_us` after the one before."""
        return [self._request(step_us) for _ in range(count)]

    def _request(self, step_us: int) -> Served:
        self._number += 1
        self.at_us += step_us
        chance = self._random
        [asking] = chance.choices(self._keys, self._weights)
        model = chance.choice(CHAT)
        plan = self._plans[asking.key_id, model]
        is_known = chance.random() < 0.98
        identity = GenerationIdentity(
            generation_id=mint_in_runs("gen-"),
            organization_id=self._organization_id,
            workspace_id=asking.workspace_id,
            key_id=asking.key_id,
            family_id=asking.key_id,
            dialect="chat_completions",
            requested_model=model if is_known else "demo/gone",
            stream=chance.random() < 0.5,
            sender=self._sender(),
            dropped_tools=(),
            request_id=mint("req_"),
            user_agent="openai-python/1.99.1",
            created_us=self.at_us,
        )
        if is_known:
            return Served(identity, plan, self._record(identity, plan))
        refusal = Refusal(
            error=ModelNotFound("there is no model demo/gone"),
            stage="model",
            catalog_revision=plan.catalog_revision,
            organization_revision=plan.organization_revision,
        )
        return Served(identity, refusal, None)

    def _sender(self) -> Sender:
        chance = self._random
        return Sender(
            user_id=f"user-{chance.randrange(USERS)}" if chance.random() < 0.7 else None,
            session_id=f"session-{self._number // 50}-{chance.randrange(5)}",
            title=chance.choice(APPS) if chance.random() < 0.5 else None,
        )

    def _record(self, identity: GenerationIdentity, plan: Plan) -> GenerationRow:
        chance = self._random
        [status] = chance.choices(STATUSES, (95, 2, 2, 1))
        served = served_of(chance.choice(plan.targets))
        usage, charged, error = Usage(), Cost(), None
        if status != "failed":
            prompt = chance.randrange(100, 1_500)
            cached = prompt // 2 if chance.random() < 0.3 else 0
            output = chance.randrange(20, 900)
            usage = Usage(input=prompt - cached, cache_read=cached, output=output)
            fee_bps = served.fee_bps if served.byok else None
            charged = cost(usage, served.price, byok_fee_bps=fee_bps, insured=False)
        if status in ("failed", "incomplete"):
            error = UpstreamFailed("the vendor answered with 500")
        latency_ms = chance.randrange(300, 5_000)
        return charged_row(
            identity,
            usage,
            charged,
            applied=Applied(),
            served=served,
            fields={
                "status": status,
                "finish_reason": "stop" if status == "succeeded" else None,
                **error_columns(error),
                "attempts": 1,
                "routing_ms": 1,
                "ttft_ms": latency_ms // 3 if usage.output else None,
                "generation_ms": latency_ms // 2 if usage.output else None,
                "latency_ms": latency_ms,
                "upstream_id": f"chatcmpl-{identity.request_id[4:]}",
                "settled_at": identity.created_us + latency_ms * 1_000,
            },
        )
