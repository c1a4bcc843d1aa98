"""An office with a catalog for each module, and browsers of its people."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.api.office import Office, furnished_for_people, working
from tests.page.browser import Browser
from tests.support.node import open_gateway

NEAR = {"GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]', "GWD_WEBHOOKS_ALLOW_HTTP": "true"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def office(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Office]:
    """People of every role with a catalog on the simulated vendor; shared by a module."""
    folder = tmp_path_factory.mktemp("page")
    async with (
        open_gateway(folder, begin=furnished_for_people, environment=NEAR) as made,
        working(made) as office,
    ):
        yield office


@pytest_asyncio.fixture(loop_scope="module")
async def browser(office: Office) -> AsyncIterator[Browser]:
    """A browser in which nobody is signed in."""
    async with Browser(office.gateway) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def owner(office: Office) -> AsyncIterator[Browser]:
    """The owner's browser."""
    async with Browser(office.gateway) as made:
        await made.sign_in(office["owner"].key)
        yield made
