"""A real node for tests: server on a loopback port, SQLite file, simulated vendor upstream, a key that pays.

After each test the ledger must add up and no hold may be open: that is part of every test that uses the fixture.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest_asyncio

from gwd import ledger, proof, settings
from gwd.core.clock import US_PER_S, Clock, SystemClock
from gwd.demo import SimulatedVendor
from gwd.ledger.audit import organizations
from gwd.management.setup import NewNode
from gwd.node.init import initialize
from gwd.wiring import RunningNode
from tests.cases.caserunner.moved_vendors import move_vendors
from tests.cases.caserunner.ports import free_port
from tests.support import templates
from tests.support.cached_rows import stale_cached_rows
from tests.support.statements import check_statements
from tests.vendor import StrictVendor

PRICES = {"prompt": "0.000002", "completion": "0.000008", "input_cache_read": "0.0000005"}
CLAUDE_PRICES = {
    "prompt": "0.000003",
    "completion": "0.000015",
    "input_cache_read": "0.0000003",
    "input_cache_write": "0.00000375",
    "input_cache_write_1h": "0.000006",
}
PARAMETERS = [
    *("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "max_tokens"),
    *("max_completion_tokens", "seed", "response_format", "structured_outputs", "stop", "tools"),
    *("tool_choice", "parallel_tool_calls", "reasoning", "reasoning_effort", "include_reasoning"),
    *("verbosity", "logprobs", "top_logprobs", "logit_bias"),
]
MODELS: dict[str, dict[str, Any]] = {
    "demo/chat": {"adapter": "openai_chat", "upstream": "gpt-demo", "pricing": PRICES},
    "demo/chat-b": {"adapter": "openai_chat", "upstream": "gpt-demo-mini", "pricing": PRICES},
    "demo/claude": {
        "adapter": "anthropic_messages",
        "upstream": "claude-demo",
        "pricing": CLAUDE_PRICES,
        "flags": {"thinking_form": "budget", "supports_prefill": True},
    },
    "demo/claude-next": {
        "adapter": "anthropic_messages",
        "upstream": "claude-demo-next",
        "pricing": CLAUDE_PRICES,
        "flags": {
            "thinking_form": "adaptive",
            "supports_prefill": False,
            "rejects_sampling": True,
            "rejects_forced_tools": True,
            "mid_system": True,
        },
    },
    "demo/responses": {
        "adapter": "openai_responses",
        "upstream": "o-demo",
        "pricing": PRICES,
        "flags": {"developer_role": True},
    },
    "demo/embed": {
        "adapter": "openai_embeddings",
        "upstream": "embed-demo",
        "pricing": {"prompt": "0.0000001"},
        "embeddings": True,
    },
}


class Gateway:
    """A running node and what a test wants from it."""

    def __init__(self, running: RunningNode, vendor: SimulatedVendor, management_key: str) -> None:
        self.running = running
        self.vendor = vendor
        self.management_key = management_key
        self.base_url = f"http://127.0.0.1:{running.port}/api/v1"
        self.operator = httpx.AsyncClient(
            base_url=self.base_url,
            headers={"authorization": f"Bearer {management_key}"},
            timeout=20,
            verify=False,  # loopback; the machine's certificates take longer to read than most tests
        )
        self.key = ""
        self.key_id = ""
        self.begun: Any = None
        self.client = httpx.AsyncClient(base_url=self.base_url, timeout=20, verify=False)

    async def close(self) -> None:
        await self.client.aclose()
        await self.operator.aclose()

    @property
    def store(self) -> Any:
        return self.running.store

    async def manage(
        self, method: str, path: str, body: Any = None, *, status: int | None = None
    ) -> Any:
        """A management call as the operator; fails the test on an unexpected status."""
        reply = await self.operator.request(method, path, json=body)
        wanted = {200, 201} if status is None else {status}
        assert reply.status_code in wanted, f"{method} {path}: {reply.status_code} {reply.text}"
        return reply.json()

    async def add_provider(
        self, slug: str, adapter: str, base_url: str, key: str = "sk-demo-0000"
    ) -> None:
        await self.manage(
            "POST",
            "/catalog/providers",
            {"slug": slug, "name": slug, "adapter": adapter, "base_url": base_url},
        )
        await self.manage("POST", "/catalog/credentials", {"provider": slug, "key": key})

    async def add_model(self, slug: str, **changes: Any) -> None:
        spec = {**MODELS.get(slug, {}), **changes}
        is_embedding = spec.get("embeddings", False)
        await self.manage(
            "POST",
            "/catalog/models",
            {
                "id": slug,
                "name": slug,
                "vendor": "Demo",
                "context_length": 200_000,
                "max_completion_tokens": 0 if is_embedding else 32_000,
                "supported_parameters": spec.get("parameters", PARAMETERS),
                "input_modalities": ["text"] if is_embedding else ["text", "image", "file"],
                "output_modalities": ["embeddings"] if is_embedding else ["text"],
                "pricing": spec["pricing"],
            },
        )

    async def add_endpoint(self, slug: str, provider: str, upstream: str, **fields: Any) -> str:
        made = await self.manage(
            "POST",
            "/catalog/endpoints",
            {"model": slug, "provider": provider, "upstream_model": upstream, **fields},
        )
        endpoint_id: str = made["data"]["id"]
        return endpoint_id

    async def new_key(self, **fields: Any) -> tuple[str, str]:
        """(plaintext, id) of a fresh inference key."""
        made = await self.manage("POST", "/keys", {"name": "test", **fields})
        return made["key"], made["data"]["id"]

    async def balance(self) -> Decimal:
        """What the organization owns, exactly."""
        found = await self.store.read(
            ledger.balance, await self.organization_id(), now_us=self.running.node.clock.now_us()
        )
        return Decimal(found.owned_nano) / 1_000_000_000

    async def organization_id(self) -> str:
        data = (await self.manage("GET", "/auth/key"))["data"]
        organization_id: str = data["organization_id"]
        return organization_id

    async def chat(self, content: str = "hello", **fields: Any) -> httpx.Response:
        """One chat request with the test's key; `headers` goes to the request, the rest into the body."""
        headers = fields.pop("headers", {})
        body = {
            "model": "demo/chat",
            "messages": [{"role": "user", "content": content}],
            **fields,
        }
        return await self.client.post("/chat/completions", json=body, headers=headers)

    async def generation(self, reply: httpx.Response) -> Any:
        """The record of a reply's generation, once it is settled."""
        generation_id = reply.headers["x-gw-generation-id"]
        for _ in range(100):
            found = await self.operator.get("/generation", params={"id": generation_id})
            if found.status_code == 200:
                return found.json()["data"]
            await asyncio.sleep(0.02)
        raise AssertionError(f"{generation_id} was never settled")

    async def at_rest(self) -> None:
        """Wait until no generation runs."""
        for _ in range(500):
            if not self.running.node.line.live:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("generations are still running")

    async def verify(self) -> None:
        """The books and statements add up, nothing is held, and the writer remembers nothing that is not so."""
        await self.at_rest()
        assert await self.store.write(stale_cached_rows) == []  # after all that was queued before
        found = await self.store.read(proof.verify)
        assert found.ok, found.differences
        await self.store.read(_check_statements, now_us=self.running.node.clock.now_us())
        assert await self.store.read(_open_holds) == []
        health = self.running.node.state.health
        assert health._trials._held == {}, "a trial was never ended"
        assert not any(each.in_flight for each in health._endpoints.values()), "a visit has no end"


def _open_holds(connection: Any) -> list[str]:
    return [hold.generation_id for hold in ledger.open_reservations(connection)]


def _check_statements(connection: Any, *, now_us: int) -> None:
    for organization_id in organizations(connection):
        check_statements(connection, organization_id, now_us=now_us)


NEVER_LATE = {"GWD_LIMITS_LOOP_LAG_S": "600"}
"""Node, vendor and clients share one loop here: that it is late says nothing."""


class Nodes:
    """Makes nodes in one directory, starts and stops them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment: dict[str, str] = {}
        self._count = 0

    @property
    def folder(self) -> Path:
        """Where the node lies."""
        return self.directory / "node"

    def init(self, credit: str | None = "10", clock: Clock | None = None) -> str:
        """A fresh node; its operator key. With a clock its ledger begins at that clock's time."""
        name = ("init", credit, _moment(clock))
        if not templates.is_kept(name):
            folder = templates.room()
            if folder is None:
                return _initialized(self.folder, credit, clock)
            key = _initialized(folder / "node", credit, _beginning(clock))
            templates.keep(name, folder / "node", key)
        management_key: str = templates.copy(name, self.folder)
        return management_key

    def running(self, clock: Clock | None = None, **environment: str) -> RunningNode:
        """The node as it would be served, on a free port."""
        self._count += 1
        given = {**NEVER_LATE, **self.environment, **environment}
        read = settings.load(self.folder / "gwd.toml", given, "127.0.0.1", free_port())
        return RunningNode(read, given, clock=clock, name=f"gwd-test-{id(self)}-{self._count}")


def _initialized(folder: Path, credit: str | None, clock: Clock | None) -> str:
    new = NewNode(
        organization="Acme",
        owner_email="owner@acme.example",
        credit_usd=None if credit is None else Decimal(credit),
    )
    return initialize(folder, new, clock or SystemClock()).created.management_key


class _Stopped(SystemClock):
    """It stays the moment at which a template begins: whoever copies it comes no earlier."""

    def __init__(self, at_us: int) -> None:
        self._at_us = at_us

    def now_us(self) -> int:
        return self._at_us


def _moment(clock: Clock | None) -> int | None:
    """The second that a clock of the test's shows; None for the machine's time."""
    if clock is None or abs(clock.now_us() - SystemClock().now_us()) < US_PER_S:
        return None
    return clock.now_us() // US_PER_S * US_PER_S


def _beginning(clock: Clock | None) -> Clock:
    moment = _moment(clock)
    return SystemClock() if moment is None else _Stopped(moment)


async def fill_catalog(gateway: Gateway) -> None:
    """One provider per format on the simulated vendor, and every model of MODELS."""
    vendor = gateway.vendor
    for adapter in sorted({spec["adapter"] for spec in MODELS.values()}):
        base_url = vendor.url if adapter == "anthropic_messages" else vendor.openai_url
        await gateway.add_provider(adapter.replace("_", "-"), adapter, base_url)
    for slug, spec in MODELS.items():
        await gateway.add_model(slug)
        fields = {"flags": spec["flags"]} if "flags" in spec else {}
        await gateway.add_endpoint(
            slug, spec["adapter"].replace("_", "-"), spec["upstream"], **fields
        )


Begin = Callable[[Gateway], Awaitable[Any]]


async def with_catalog(gateway: Gateway) -> None:
    """A catalog on the simulated vendor, and one inference key in `client`."""
    await fill_catalog(gateway)
    gateway.key, gateway.key_id = await gateway.new_key()


@asynccontextmanager
async def open_gateway(
    directory: Path,
    clock: Clock | None = None,
    *,
    credit: str | None = "10",
    environment: Mapping[str, str] | None = None,
    begin: Begin = with_catalog,
) -> AsyncIterator[Gateway]:
    """A running node that begins as `begin` leaves it; `begun` is what that gave back.

    It does so once: each node is a copy of the first, with another vendor. The books must add up at the end. The node
    is made by the same clock.
    """
    nodes = Nodes(directory)
    async with StrictVendor() as vendor:
        known = await _begun(nodes, vendor, begin, credit, clock)
        async with nodes.running(clock, **(environment or {})) as running:
            made = Gateway(running, vendor, known.management_key)
            made.key, made.key_id, made.begun = known.key, known.key_id, known.begun
            if made.key:
                made.client.headers["authorization"] = f"Bearer {made.key}"
            try:
                yield made
                await made.verify()
            finally:
                await made.close()


class _Known(msgspec.Struct, frozen=True):
    """What one has to know of a node that has begun."""

    management_key: str
    key: str
    key_id: str
    begun: Any
    vendor_url: str


async def _begun(
    nodes: Nodes, vendor: SimulatedVendor, begin: Begin, credit: str | None, clock: Clock | None
) -> _Known:
    name = (begin, credit, _moment(clock))
    if not templates.is_kept(name):
        folder = templates.room()
        if folder is None:
            return await _begin(nodes, vendor, begin, credit, clock)
        first = await _begin(Nodes(folder), vendor, begin, credit, _beginning(clock))
        templates.keep(name, folder / "node", first)
    known: _Known = templates.copy(name, nodes.folder)
    move_vendors(nodes.folder, lambda _, base_url: base_url.replace(known.vendor_url, vendor.url))
    return known


async def _begin(
    nodes: Nodes, vendor: SimulatedVendor, begin: Begin, credit: str | None, clock: Clock | None
) -> _Known:
    management_key = nodes.init(credit, clock)
    async with nodes.running(clock) as running:
        made = Gateway(running, vendor, management_key)
        try:
            begun = await begin(made)
        finally:
            await made.close()
    return _Known(management_key, made.key, made.key_id, begun, vendor.url)


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    """The gateway that most tests use, with 10 USD."""
    async with open_gateway(tmp_path) as made:
        yield made
