"""Fixtures of the management tests: a node with people in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.api.office import Office, furnished_for_people, people, working
from tests.support.node import Gateway, open_gateway, with_catalog


@pytest_asyncio.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """A running node with people of every role and an empty catalog, whose webhooks may go to this machine."""
    near = {
        "GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]',
        "GWD_WEBHOOKS_ALLOW_HTTP": "true",
    }
    async with (
        open_gateway(tmp_path, begin=people, environment=near) as made,
        working(made) as office,
    ):
        yield office


@pytest_asyncio.fixture
async def guarded_office(tmp_path: Path) -> AsyncIterator[Office]:
    """The same with a node that calls public addresses only."""
    async with open_gateway(tmp_path, begin=people) as made, working(made) as office:
        yield office


@pytest_asyncio.fixture
async def gateway(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Gateway]:
    """The gateway that most tests use; with people where the test asks for them, too."""
    begin = furnished_for_people if "busy_office" in request.fixturenames else with_catalog
    async with open_gateway(tmp_path, begin=begin) as made:
        yield made


@pytest_asyncio.fixture
async def busy_office(gateway: Gateway) -> AsyncIterator[Office]:
    """An office with a catalog on the simulated vendor."""
    async with working(gateway) as office:
        yield office
