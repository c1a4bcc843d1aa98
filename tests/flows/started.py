"""A node that a test stops, kills and starts again, always on the same files."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from gwd.core.clock import Clock
from gwd.wiring import RunningNode
from tests.support.node import Gateway, Nodes, fill_catalog
from tests.vendor import StrictVendor


class Started:
    """A node that a test stops and starts again, with its vendor."""

    def __init__(self, nodes: Nodes, vendor: StrictVendor, management_key: str) -> None:
        self.nodes = nodes
        self.vendor = vendor
        self.management_key = management_key
        self.key = ""
        self.clock: Clock | None = None

    async def start(self, **settings: str) -> tuple[RunningNode, Gateway]:
        running = self.nodes.running(self.clock, **settings)
        await running.__aenter__()
        gateway = Gateway(running, self.vendor, self.management_key)
        if not self.key:
            await fill_catalog(gateway)
            self.key, _ = await gateway.new_key()
        gateway.client.headers["authorization"] = f"Bearer {self.key}"
        return running, gateway


@pytest.fixture
async def vendor() -> AsyncIterator[StrictVendor]:
    async with StrictVendor() as made:
        yield made


@pytest.fixture
def started(tmp_path: Path, vendor: StrictVendor) -> Started:
    nodes = Nodes(tmp_path)
    return Started(nodes, vendor, nodes.init())


async def stop(running: RunningNode, gateway: Gateway) -> None:
    await running.__aexit__(None, None, None)
    await gateway.client.aclose()
    await gateway.operator.aclose()


async def reading(gateway: Gateway, **fields: Any) -> "asyncio.Task[httpx.Response]":
    """A request whose call has reached the vendor."""
    calls = len(gateway.vendor.calls)
    task = asyncio.ensure_future(gateway.chat(**fields))
    await gateway.vendor.calls.wait_for(calls + 1)
    await asyncio.sleep(0.1)
    return task


async def crash(running: RunningNode, gateway: Gateway) -> None:
    """Stop without a word, as a killed process does: nothing is settled, nothing is written any more."""
    running.store._closed = True
    running._keep_health = lambda: None  # type: ignore[method-assign]
    for generation in list(running.node.line.live.values()):
        generation._on_record = True
    await running._close()
    await gateway.client.aclose()
    await gateway.operator.aclose()


async def second_organization(gateway: Gateway) -> tuple[str, str]:
    """(id, inference key) of one with 5 USD, which is low: a charge has something to tell."""
    made = await gateway.manage("POST", "/organizations", {"name": "B", "owner_email": "b@b.test"})
    organization_id = made["data"]["id"]
    grant = {"kind": "granted", "amount": 5, "organization_id": organization_id}
    await gateway.manage("POST", "/credits/grants", grant)
    owner = {"authorization": f"Bearer {made['management_key']}"}
    async with httpx.AsyncClient(base_url=gateway.base_url, headers=owner) as client:
        key = (await client.post("/keys", json={"name": "b"})).json()["key"]
    return organization_id, key


def change(started: Started, sql: str) -> None:
    """What no code of the gateway does: the file changed from outside."""
    path: Path = started.nodes.directory / "node" / "gwd.db"
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5_000)
    connection.execute(sql)
    connection.close()
