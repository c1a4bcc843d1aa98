"""Fixtures of the management tests: a node with people in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.api.office import Office
from tests.support.node import Gateway, Nodes
from tests.vendor import StrictVendor


@pytest_asyncio.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """A running node with people of every role and an empty catalog."""
    nodes = Nodes(tmp_path)
    management_key = nodes.init()
    async with StrictVendor() as vendor, nodes.running() as running:
        gateway = Gateway(running, vendor, management_key)
        made = Office(gateway)
        try:
            await made.move_in()
            yield made
            await gateway.verify()
        finally:
            await made.close()
            await gateway.client.aclose()
            await gateway.operator.aclose()


@pytest_asyncio.fixture
async def busy_office(gateway: Gateway) -> AsyncIterator[Office]:
    """The same with a catalog on the simulated vendor."""
    made = Office(gateway)
    try:
        await made.move_in()
        yield made
    finally:
        await made.close()
