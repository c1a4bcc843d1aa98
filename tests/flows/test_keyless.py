"""A provider that takes no key: planned, called, billed and resting like any other, and never sent one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gwd.demo import Behaviour, SimulatedVendor
from tests.flows.clock import MovableClock
from tests.flows.conftest import Opened
from tests.flows.frames import error_of
from tests.support.node import PRICES, Gateway
from tests.vendor import StrictVendor

# adapter → its address on a vendor, the vendor's name of the model
SERVERS = {
    "openai_chat": ("openai_url", "gpt-demo"),
    "openai_responses": ("openai_url", "o-demo"),
    "anthropic_messages": ("url", "claude-demo"),
    "gemini": ("gemini_url", "gemini-demo"),
    "openai_embeddings": ("openai_url", "embed-demo"),
}
ASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/chat/completions", {"messages": [{"role": "user", "content": "hello"}]}),
    "messages": (
        "/messages",
        {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 50},
    ),
    "responses": ("/responses", {"input": "hello"}),
    "completions": ("/completions", {"prompt": "hello"}),
}
CREDENTIALS = {"authorization", "api-key", "x-api-key", "x-goog-api-key"}


@pytest.fixture
async def local() -> AsyncIterator[SimulatedVendor]:
    """A server that answers 401 to whatever carries a credential."""
    async with StrictVendor(keys=()) as vendor:
        yield vendor


async def add(gateway: Gateway, local: SimulatedVendor, adapter: str, **fields: Any) -> str:
    """A keyless provider of the adapter with one model; the model's name."""
    address, upstream = SERVERS[adapter]
    slug = f"local-{adapter.replace('_', '-')}"
    provider = {"slug": slug, "name": slug, "adapter": adapter, "auth": "none", **fields}
    provider["base_url"] = getattr(local, address)
    await gateway.manage("POST", "/catalog/providers", provider)
    embeds = adapter == "openai_embeddings"
    pricing = {"prompt": "0.0000001"} if embeds else PRICES
    model = f"local/{upstream}"
    await gateway.add_model(model, pricing=pricing, embeddings=embeds)
    await gateway.add_endpoint(model, slug, upstream)
    return model


async def health(gateway: Gateway, model: str) -> Any:
    found = (await gateway.manage("GET", "/operator/status"))["data"]["endpoints"]
    return next(each for each in found if each["model"] == model)


async def checks(gateway: Gateway) -> dict[str, Any]:
    found = (await gateway.manage("GET", "/operator/doctor"))["data"]["checks"]
    return {check["name"]: check for check in found}


@pytest.mark.parametrize("adapter", [name for name in SERVERS if name != "openai_embeddings"])
@pytest.mark.parametrize("dialect", ASKS)
async def test_every_dialect_is_served_and_charged(
    gateway: Gateway, local: SimulatedVendor, adapter: str, dialect: str
) -> None:
    model = await add(gateway, local, adapter)
    path, body = ASKS[dialect]
    for stream in (False, True):
        before = await gateway.balance()
        reply = await gateway.client.post(path, json={"model": model, "stream": stream, **body})
        assert reply.status_code == 200, reply.text
        record = await gateway.generation(reply)
        assert record["status"] == "succeeded"
        charged = before - await gateway.balance()
        assert charged > 0
        assert float(charged) == pytest.approx(record["total_cost"])
    assert CREDENTIALS.isdisjoint(local.calls.last.headers)


async def test_embeddings_are_served(gateway: Gateway, local: SimulatedVendor) -> None:
    model = await add(gateway, local, "openai_embeddings")
    reply = await gateway.client.post("/embeddings", json={"model": model, "input": "hello"})
    assert reply.status_code == 200, reply.text


async def test_nothing_misses_a_key(gateway: Gateway, local: SimulatedVendor) -> None:
    model = await add(gateway, local, "openai_chat")
    assert (await health(gateway, model))["status"] == "healthy"
    assert (await checks(gateway))["credentials"]["state"] == "ok"
    tested = await gateway.manage("POST", "/catalog/providers/local-openai-chat/test")
    assert (tested["data"]["ok"], tested["data"]["credential_id"]) == (True, None)
    listed = (await gateway.manage("GET", f"/models/{model}/endpoints"))["data"]["endpoints"]
    assert [each["status"] for each in listed] == [0]  # it can serve
    reloaded = (await gateway.manage("POST", "/operator/reload"))["data"]
    assert reloaded["credentials"] == 4  # those of the catalog's other providers
    assert (await gateway.chat(model=model)).status_code == 200


async def test_a_key_that_it_has_all_the_same_is_not_sent(
    gateway: Gateway, local: SimulatedVendor
) -> None:
    model = await add(gateway, local, "openai_chat")
    path = "/catalog/providers/local-openai-chat"
    key = {"provider": "local-openai-chat", "key": "sk-unwanted-0000"}
    await gateway.manage("POST", "/catalog/credentials", key)
    assert (await gateway.chat(model=model)).status_code == 200
    await gateway.manage("PATCH", path, {"auth": "api-key"})
    assert (await gateway.chat(model=model)).status_code == 502  # the server wants none
    assert local.calls.last.headers["api-key"] == "sk-unwanted-0000"
    await gateway.manage("PATCH", path, {"auth": "none"})
    assert (await gateway.chat(model=model)).status_code == 200


async def test_a_server_that_wants_a_key_after_all_is_closed_until_its_provider_is_changed(
    gateway: Gateway, local: SimulatedVendor
) -> None:
    model = await add(gateway, local, "openai_chat")
    local.script.next(Behaviour(status=401), model="gpt-demo")
    assert (await gateway.chat(model=model)).status_code == 502
    refused = await gateway.chat(model=model)
    assert (refused.status_code, error_of(refused)["code"]) == (503, "no_available_endpoint")
    [rest] = (await health(gateway, model))["rests"]
    assert (rest["credential_id"], rest["until"], rest["tried"]) == (None, None, False)
    found = (await checks(gateway))["rests"]
    assert "until its provider is changed" in found["message"]
    assert "--auth bearer" in found["do"]
    path = "/catalog/providers/local-openai-chat"
    await gateway.manage("PATCH", path, {"name": "Local"})
    assert (await gateway.chat(model=model)).status_code == 200


async def test_it_rests_as_others_do(
    opened: Opened, clock: MovableClock, local: SimulatedVendor
) -> None:
    async with opened(clock) as gateway:
        model = await add(gateway, local, "openai_chat")
        clock.stop()
        local.script.next(Behaviour(status=503), model="gpt-demo")
        assert (await gateway.chat(model=model)).status_code == 503
        assert (await health(gateway, model))["status"] == "cooling_down"
        assert (await gateway.chat(model=model)).status_code == 200  # nothing else is left
        assert (await health(gateway, model))["status"] == "healthy"
