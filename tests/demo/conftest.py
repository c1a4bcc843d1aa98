"""A simulated vendor per test, and clients pointed straight at it."""

from collections.abc import AsyncIterator

import anthropic
import httpx
import openai
import pytest

from gwd.demo import SimulatedVendor
from tests.vendor import StrictVendor

HEADERS = {"authorization": "Bearer up-key", "anthropic-version": "2023-06-01"}


@pytest.fixture
async def vendor() -> AsyncIterator[SimulatedVendor]:
    async with StrictVendor() as running:
        yield running


@pytest.fixture
async def http(vendor: SimulatedVendor) -> AsyncIterator[httpx.AsyncClient]:
    # Loading the machine's certificates would cost more than most tests do.
    async with httpx.AsyncClient(
        base_url=vendor.url, headers=HEADERS, timeout=5, verify=False
    ) as client:
        yield client


@pytest.fixture
async def openai_client(vendor: SimulatedVendor) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        api_key="up-key", base_url=vendor.openai_url, max_retries=0, timeout=5
    ) as client:
        yield client


@pytest.fixture
async def anthropic_client(vendor: SimulatedVendor) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(
        api_key="up-key", base_url=vendor.url, max_retries=0, timeout=5
    ) as client:
        yield client
