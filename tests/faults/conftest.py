"""One node for a module: hundreds of faults, each followed by a look at the ledger."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gwd.health.rests import Rests
from tests.faults.clients import CLIENTS, Client
from tests.support.node import Gateway, open_gateway


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_node(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Gateway]:
    """A node with the settings that the module names in SETTINGS."""
    settings: dict[str, str] = getattr(request.module, "SETTINGS", {})
    async with open_gateway(
        tmp_path_factory.mktemp("faults"), credit="100", environment=settings
    ) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def node(shared_node: Gateway) -> AsyncIterator[Gateway]:
    """The module's node as if nothing had happened yet; afterwards the ledger must add up, nothing held."""
    shared_node.vendor.script.clear()
    shared_node.vendor.calls.clear()
    health = shared_node.running.node.state.health
    health._rests = Rests()
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
