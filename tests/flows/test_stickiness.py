"""A conversation stays where its prompt is cached, as long as nothing speaks against it."""

from typing import Any

import httpx
import pytest

from gwd.demo import Behaviour
from gwd.demo.calls import Call
from tests.flows.clock import MovableClock
from tests.flows.conftest import A, B, Opened, add_backup
from tests.flows.frames import receipt_of
from tests.support.node import Gateway

ROUNDS = 12
"""By chance alone all of them go to one of two endpoints once in four thousand times."""
LONG = "The rules of the house, which do not change. " * 400


async def _ask(gateway: Gateway, content: str = "hello", **fields: Any) -> httpx.Response:
    fields.setdefault("session_id", "s-1")
    reply = await gateway.chat(content, **{"headers": {"x-gw-metadata": "enabled"}, **fields})
    assert reply.status_code == 200
    return reply


async def _places(gateway: Gateway, rounds: int = ROUNDS, **fields: Any) -> set[str]:
    """Where so many requests went."""
    before = len(gateway.vendor.calls)
    for _ in range(rounds):
        await _ask(gateway, **fields)
    return {call.model for call in gateway.vendor.calls[before:]}


def _is_sticky(reply: httpx.Response) -> bool:
    return bool(receipt_of(reply).get("pipeline") == {"sticky": True})


async def test_a_session_stays_at_its_endpoint_and_the_receipt_says_so(two: Gateway) -> None:
    assert not _is_sticky(await _ask(two))
    assert _is_sticky(await _ask(two))
    assert len(await _places(two)) == 1
    assert len(await _places(two, 2 * ROUNDS, session_id=None)) == 2


async def test_a_session_stays_at_its_credential(gateway: Gateway) -> None:
    def secret(call: Call) -> str:
        return call.headers["authorization"]

    await gateway.manage(
        "POST",
        "/catalog/credentials",
        {"provider": "openai-chat", "key": "sk-first", "sort_order": -1},
    )
    gateway.vendor.script.next(Behaviour(status=401), model=A)
    await _ask(gateway)
    refused, served = map(secret, gateway.vendor.calls)
    assert refused == "Bearer sk-first"
    gateway.running.node.state.health.forget_credentials()
    await _ask(gateway)
    assert secret(gateway.vendor.calls.last) == served
    await _ask(gateway, session_id="s-2")
    assert secret(gateway.vendor.calls.last) == refused


async def test_ten_minutes_without_a_request_end_it(opened: Opened, clock: MovableClock) -> None:
    async with opened(clock) as gateway:
        await add_backup(gateway)
        await _ask(gateway)
        for _ in range(3):
            clock.pass_by(590)
            assert _is_sticky(await _ask(gateway))
        clock.pass_by(601)
        assert not _is_sticky(await _ask(gateway))


async def test_without_a_session_what_was_cached_stays_and_nothing_else(two: Gateway) -> None:
    first = await _ask(two, LONG, session_id=None)
    record = await two.generation(first)
    assert record["native_tokens_cached"] == 0
    reply = first
    while not record["native_tokens_cached"]:  # until an endpoint is met a second time
        reply = await _ask(two, LONG, session_id=None)
        record = await two.generation(reply)
    assert len(await _places(two, content=LONG, session_id=None)) == 1
    assert _is_sticky(await _ask(two, LONG, session_id=None))
    assert not _is_sticky(await _ask(two, "short", session_id=None))
    assert not _is_sticky(await _ask(two, "short", session_id=None))


@pytest.mark.parametrize(
    "fields",
    [
        {"provider": {"order": ["backup", "openai-chat"]}},
        {"provider": {"sort": "price"}},
        {"model": "demo/chat:floor"},
    ],
    ids=["order", "sort", "suffix"],
)
async def test_what_the_request_says_of_the_order_comes_first(
    gateway: Gateway, fields: dict[str, Any]
) -> None:
    await _ask(gateway)  # while there is one endpoint only
    cheap = {"prompt": "0.000001", "completion": "0.000001"}
    await add_backup(gateway, pricing=cheap)
    assert _is_sticky(await _ask(gateway))
    assert gateway.vendor.calls.last.model == A
    reply = await _ask(gateway, **fields)
    assert not _is_sticky(reply)
    assert gateway.vendor.calls.last.model == B


async def test_an_organizations_sort_does_not(gateway: Gateway) -> None:
    await _ask(gateway)
    await add_backup(gateway, pricing={"prompt": "0.000001", "completion": "0.000001"})
    organization_id = await gateway.organization_id()
    await gateway.manage(
        "PATCH", f"/organizations/{organization_id}/settings", {"default_provider_sort": "price"}
    )
    assert _is_sticky(await _ask(gateway))
    assert gateway.vendor.calls.last.model == A


async def test_what_rests_is_not_waited_for_and_who_steps_in_keeps_it(two: Gateway) -> None:
    await _ask(two)
    first = two.vendor.calls.last.model
    other = B if first == A else A
    two.vendor.script.next(Behaviour(status=429, retry_after="60"), model=first)
    reply = await _ask(two)
    assert [call.model for call in two.vendor.calls[-2:]] == [first, other]
    assert receipt_of(reply)["routing"]["attempts"] == 2
    assert await _places(two) == {other}


async def test_an_endpoint_that_is_gone_is_forgotten(two: Gateway) -> None:
    await _ask(two)
    first = two.vendor.calls.last.model
    provider = "openai-chat" if first == A else "backup"
    reply = await _ask(two, provider={"ignore": [provider]})
    assert not _is_sticky(reply)
    assert two.vendor.calls.last.model != first


async def test_no_other_workspace_and_no_other_tenant_shares_it(two: Gateway) -> None:
    workspace = (await two.manage("POST", "/workspaces", {"name": "Other"}))["data"]["id"]
    await _ask(two)
    key, _ = await two.new_key(workspace_id=workspace)
    headers = {"x-gw-metadata": "enabled", "authorization": f"Bearer {key}"}
    assert not _is_sticky(await _ask(two, headers=headers))
    assert _is_sticky(await _ask(two, headers=headers))


async def test_a_failed_answer_keeps_nothing(two: Gateway) -> None:
    for model in (A, B):
        two.vendor.script.next(Behaviour(status=500), model=model)
    reply = await two.chat(session_id="s-1")
    assert reply.status_code == 502
    assert len(two.running.node.state.stickiness) == 0
