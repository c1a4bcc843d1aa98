"""One node for a module: hundreds of faults, each followed by a look at the ledger."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gwd.demo import SimulatedVendor
from tests.faults.clients import CLIENTS, Client
from tests.support.node import Gateway, Nodes, fill_catalog


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_node(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Gateway]:
    """A node with the settings that the module names in SETTINGS."""
    directory: Path = tmp_path_factory.mktemp("faults")
    nodes = Nodes(directory)
    management_key = nodes.init("100")
    settings: dict[str, str] = getattr(request.module, "SETTINGS", {})
    async with SimulatedVendor() as vendor, nodes.running(None, **settings) as running:
        made = Gateway(running, vendor, management_key)
        await fill_catalog(made)
        made.key, made.key_id = await made.new_key()
        made.client.headers["authorization"] = f"Bearer {made.key}"
        try:
            yield made
        finally:
            await made.client.aclose()
            await made.operator.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def node(shared_node: Gateway) -> AsyncIterator[Gateway]:
    """The module's node as if nothing had happened yet; afterwards the ledger must add up, nothing held."""
    shared_node.vendor.script.clear()
    shared_node.vendor.calls.clear()
    health = shared_node.running.node.state.health
    health._pairs.clear()
    health._credentials.clear()
    health._endpoints.clear()
    yield shared_node
    await shared_node.verify()


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    found: Client = request.param
    return found


@pytest.fixture(params=[False, True], ids=["whole", "stream"])
def stream(request: pytest.FixtureRequest) -> bool:
    found: bool = request.param
    return found
