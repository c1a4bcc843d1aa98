"""POST /messages/count_tokens: free, no generation, a rate bucket of its own."""

from typing import Any

import httpx

from tests.support.node import Gateway

PATH = "/messages/count_tokens"
BODY = {"model": "demo/claude", "messages": [{"role": "user", "content": "hello there"}]}


async def count(gateway: Gateway, **fields: Any) -> httpx.Response:
    return await gateway.client.post(PATH, json={**BODY, **fields})


async def test_a_longer_prompt_counts_more_and_costs_nothing(gateway: Gateway) -> None:
    before = await gateway.balance()
    short = (await count(gateway)).json()["input_tokens"]
    long = (await count(gateway, system="Be brief. " * 100)).json()["input_tokens"]
    assert 0 < short < long
    assert await gateway.balance() == before
    assert (await gateway.manage("GET", "/generations"))["total_count"] == 0
    assert gateway.vendor.calls.on("/v1/messages") == []


async def test_counting_leaves_the_rate_of_requests_alone(gateway: Gateway) -> None:
    key, _ = await gateway.new_key(rate_limit_per_minute=2)
    gateway.client.headers["authorization"] = f"Bearer {key}"
    assert [(await count(gateway)).status_code for _ in range(3)] == [200, 200, 429]
    assert (await gateway.chat()).status_code == 200


async def test_a_model_that_the_key_may_not_use_is_not_counted_either(gateway: Gateway) -> None:
    key, _ = await gateway.new_key(allowed_models=["demo/chat"])
    gateway.client.headers["authorization"] = f"Bearer {key}"
    assert (await count(gateway)).status_code == 403
    assert (await count(gateway, model="demo/chat")).status_code == 200


async def test_errors_come_in_the_messages_envelope(gateway: Gateway) -> None:
    unknown = await count(gateway, model="demo/none")
    assert unknown.status_code == 404
    assert unknown.json()["error"]["type"] == "not_found_error"
    broken = await gateway.client.post(PATH, content=b"{")
    assert broken.status_code == 400
    assert broken.json()["type"] == "error"
    del gateway.client.headers["authorization"]
    assert (await count(gateway)).json()["error"]["type"] == "authentication_error"
