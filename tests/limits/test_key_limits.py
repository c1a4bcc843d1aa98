"""Spend limits of keys over HTTP."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from gwd.demo import Behaviour
from tests.limits.conftest import Opened
from tests.limits.price import bearer, served_by_own_key, spend
from tests.limits.watch import Watch
from tests.support.node import Gateway

# Window, the last moment of the current period from Wednesday 25 November 2026, and the first of the next.
RESETS = [
    ("daily", "2026-11-25T23:59:59.5Z", "2026-11-26T00:00:00Z"),
    ("weekly", "2026-11-29T23:59:59.5Z", "2026-11-30T00:00:00Z"),
    ("monthly", "2026-11-30T23:59:59.5Z", "2026-12-01T00:00:00Z"),
]
SLOW = Behaviour(tokens=8, delay_s=0.6)


async def key_of(gateway: Gateway, key_id: str) -> Any:
    return (await gateway.manage("GET", f"/keys/{key_id}"))["data"]


def refusal(reply: httpx.Response) -> Any:
    assert reply.status_code == 402, reply.text
    error = reply.json()["error"]
    assert (error["type"], error["code"]) == ("insufficient_credits_error", "key_limit_exceeded")
    return error


async def test_the_request_that_reaches_a_lifetime_limit_completes_and_the_next_is_refused(
    opened: Opened, watch: Watch
) -> None:
    async with opened() as gateway:
        key, key_id = await gateway.new_key(limit=0.02)
        own = bearer(key)
        assert (await spend(gateway, 1, **own)).status_code == 200
        assert (await key_of(gateway, key_id))["limit_remaining"] == 0.01
        assert (await spend(gateway, 5, **own)).status_code == 200, "a cent is left: it completes"
        error = refusal(await spend(gateway, 1, **own))
        assert error["metadata"] == {
            "limit": 0.02,
            "limit_reset": None,
            "usage": 0.06,
            "limit_resets_at": None,
        }
        assert "0.02 USD" in error["message"]
        watch.set("2031-01-01T00:00:00Z")
        refusal(await spend(gateway, 1, **own))
        record = await key_of(gateway, key_id)
        assert (record["usage"], record["limit_remaining"]) == (0.06, 0)
        assert (record["limit_reset"], record["limit_resets_at"]) == (None, None)


@pytest.mark.parametrize(("window", "last", "first"), RESETS)
async def test_a_recurring_limit_opens_with_its_next_period_in_utc(
    opened: Opened, watch: Watch, window: str, last: str, first: str
) -> None:
    """Days end at midnight UTC, weeks on Monday, months on the first."""
    async with opened() as gateway:
        key, key_id = await gateway.new_key(limit=0.01, limit_reset=window)
        own = bearer(key)
        assert (await spend(gateway, 1, **own)).status_code == 200
        error = refusal(await spend(gateway, 1, **own))
        assert error["metadata"] == {
            "limit": 0.01,
            "limit_reset": window,
            "usage": 0.01,
            "limit_resets_at": first,
        }
        assert first in error["message"]
        assert (await key_of(gateway, key_id))["limit_resets_at"] == first
        watch.set(last)
        refusal(await spend(gateway, 1, **own))
        watch.set(first)
        record = await key_of(gateway, key_id)
        assert (record["limit_remaining"], record["usage"]) == (0.01, 0.01)
        assert (await spend(gateway, 1, **own)).status_code == 200
        refusal(await spend(gateway, 1, **own))


async def test_a_request_counts_in_the_period_in_which_it_was_settled(
    opened: Opened, watch: Watch
) -> None:
    """From settled_at, not created_at; so a closed day never changes."""
    async with opened() as gateway:
        key, key_id = await gateway.new_key(limit=1, limit_reset="daily")
        watch.set("2026-11-25T23:59:59.9Z")
        gateway.vendor.script.next(SLOW)
        running = asyncio.create_task(gateway.chat(headers=bearer(key), stream=True))
        await gateway.vendor.calls.wait_for(1)
        watch.set("2026-11-26T00:00:00Z")
        assert (await running).status_code == 200
        await gateway.at_rest()
        record = await key_of(gateway, key_id)
        assert record["usage_daily"] == record["usage"] > 0
        watch.set("2026-11-27T00:00:00Z")
        record = await key_of(gateway, key_id)
        assert (record["usage_daily"], record["limit_remaining"]) == (0, 1)


async def test_calendar_usage_does_not_depend_on_the_key_s_own_reset(
    opened: Opened, watch: Watch
) -> None:
    async with opened() as gateway:
        key, key_id = await gateway.new_key(limit=9)
        for moment in (
            "2026-11-25T13:00:00Z",  # a Wednesday
            "2026-11-29T12:00:00Z",  # the Sunday of that week
            "2026-11-30T12:00:00Z",  # the Monday after, same month
        ):
            watch.set(moment)
            assert (await spend(gateway, 1, **bearer(key))).status_code == 200
        usage = await key_of(gateway, key_id)
        named = ("usage", "usage_monthly", "usage_weekly", "usage_daily")
        assert [usage[name] for name in named] == [0.03, 0.03, 0.01, 0.01]
        watch.set("2026-12-01T12:00:00Z")
        usage = await key_of(gateway, key_id)
        assert [usage[name] for name in named] == [0.03, 0, 0.01, 0]


async def test_a_limit_of_nothing_blocks_at_once_and_calls_nobody(gateway: Gateway) -> None:
    key, key_id = await gateway.new_key(limit=0)
    error = refusal(await gateway.chat(headers=bearer(key)))
    assert (error["metadata"]["limit"], error["metadata"]["usage"]) == (0, 0)
    assert not gateway.vendor.calls
    assert (await key_of(gateway, key_id))["limit_remaining"] == 0


async def test_changing_the_limit_or_its_reset_never_zeroes_usage(gateway: Gateway) -> None:
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": 0.01})
    assert (await spend(gateway, 1)).status_code == 200
    refusal(await spend(gateway, 1))
    for changes in ({"limit_reset": "monthly"}, {"limit": 0.005}, {"limit_reset": None}):
        changed = (await gateway.manage("PATCH", f"/keys/{gateway.key_id}", changes))["data"]
        assert (changed["usage"], changed["usage_monthly"]) == (0.01, 0.01)
        assert changed["limit_remaining"] == 0
        refusal(await spend(gateway, 1))
    raised = await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": 0.015})
    assert raised["data"]["limit_remaining"] == 0.005
    assert (await spend(gateway, 1)).status_code == 200
    refusal(await spend(gateway, 1))
    none = await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": None})
    assert (none["data"]["limit"], none["data"]["limit_remaining"]) == (None, None)
    assert none["data"]["usage"] == 0.02
    assert (await spend(gateway, 1)).status_code == 200


async def test_a_rotated_key_and_its_successor_share_one_counter(gateway: Gateway) -> None:
    """Rotating does not hand the limit out again, and the overlap does not double it (I14)."""
    old, old_id = await gateway.new_key(limit=0.03, limit_reset="monthly")
    assert (await spend(gateway, 1, **bearer(old))).status_code == 200
    rotated = await gateway.manage("POST", f"/keys/{old_id}/rotate", {"overlap": "1h"})
    new, new_id = rotated["key"], rotated["data"]["id"]
    assert (rotated["data"]["usage"], rotated["data"]["limit_remaining"]) == (0.01, 0.02)
    assert (await spend(gateway, 1, **bearer(new))).status_code == 200
    assert (await spend(gateway, 1, **bearer(old))).status_code == 200
    for key in (old, new):
        error = refusal(await spend(gateway, 1, **bearer(key)))
        assert error["metadata"]["usage"] == 0.03
    again = await gateway.manage("POST", f"/keys/{new_id}/rotate")
    refusal(await spend(gateway, 1, **bearer(again["key"])))
    for key_id in (old_id, new_id, again["data"]["id"]):
        assert (await key_of(gateway, key_id))["usage_monthly"] == 0.03
    await gateway.manage("DELETE", f"/keys/{old_id}")
    assert (await key_of(gateway, new_id))["usage"] == 0.03


async def test_own_provider_keys_count_against_a_limit_only_when_it_says_so(
    gateway: Gateway,
) -> None:
    """The fee is charged, so it counts anyway; the list price counts with include_byok_in_limit."""
    plain, plain_id = await gateway.new_key(limit=0.01)
    counting, counting_id = await gateway.new_key(limit=0.01, include_byok_in_limit=True)
    for key_id in (plain_id, counting_id):
        await served_by_own_key(gateway, key_id, list_price="0.01", fee="0.0005")
    record = await key_of(gateway, plain_id)
    assert (record["usage"], record["limit_remaining"]) == (0.0005, 0.0095)
    assert (record["byok_usage"], record["byok_usage_daily"]) == (0.01, 0.01)
    assert (await spend(gateway, 1, **bearer(plain))).status_code == 200
    assert (await key_of(gateway, counting_id))["limit_remaining"] == 0
    error = refusal(await spend(gateway, 1, **bearer(counting)))
    assert error["metadata"]["usage"] == 0.0105
    changed = {"include_byok_in_limit": False}
    await gateway.manage("PATCH", f"/keys/{counting_id}", changed)
    assert (await spend(gateway, 1, **bearer(counting))).status_code == 200


async def test_a_strict_key_counts_what_running_requests_hold_and_what_this_one_may_cost(
    gateway: Gateway,
) -> None:
    """Spent, open holds and the new hold stay within the limit, so it is never overshot (I13)."""
    key, key_id = await gateway.new_key(limit=0.02, strict=True)
    own = bearer(key)
    error = refusal(await gateway.chat(headers=own))
    assert "max_tokens" in error["message"]
    assert error["metadata"]["usage"] == 0
    assert not gateway.vendor.calls
    gateway.vendor.script.always(SLOW)
    small: dict[str, Any] = {
        "headers": own,
        "max_tokens": 1_200,
    }  # at most 0.0096 USD, and the prompt
    replies = await asyncio.gather(*(gateway.chat(**small) for _ in range(4)))
    assert sorted(reply.status_code for reply in replies) == [200, 402, 402, 402]
    [refused, *_] = [reply for reply in replies if reply.status_code == 402]
    assert "running requests" in refusal(refused)["message"]
    assert (await gateway.chat(**small)).status_code == 200
    await gateway.at_rest()
    assert (await key_of(gateway, key_id))["usage"] < 0.02


async def test_the_same_key_without_strict_runs_as_many_as_it_likes(gateway: Gateway) -> None:
    key, _ = await gateway.new_key(limit=0.02)
    gateway.vendor.script.always(SLOW)
    replies = await asyncio.gather(*(gateway.chat(headers=bearer(key)) for _ in range(4)))
    assert [reply.status_code for reply in replies] == [200] * 4


async def test_a_key_s_in_flight_cap_refuses_the_request_beyond_it(gateway: Gateway) -> None:
    """429 too_many_in_flight with retry-after 1; off by default; shared by the family."""
    gateway.vendor.script.always(SLOW)
    key, key_id = await gateway.new_key(in_flight_cap=2)
    rotated = await gateway.manage("POST", f"/keys/{key_id}/rotate")
    keys = (key, rotated["key"], key, rotated["key"])
    replies = await asyncio.gather(*(gateway.chat(headers=bearer(each)) for each in keys))
    assert sorted(reply.status_code for reply in replies) == [200, 200, 429, 429]
    [refused, *_] = [reply for reply in replies if reply.status_code == 429]
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "too_many_in_flight")
    assert refused.headers["retry-after"] == "1"
    assert "2 requests" in error["message"]
    await gateway.at_rest()
    assert (await gateway.chat(headers=bearer(key))).status_code == 200
    await gateway.manage("PATCH", f"/keys/{key_id}", {"in_flight_cap": None})
    replies = await asyncio.gather(*(gateway.chat(headers=bearer(key)) for _ in range(4)))
    assert [reply.status_code for reply in replies] == [200] * 4


async def test_the_node_s_cap_holds_for_keys_without_their_own(opened: Opened) -> None:
    async with opened(GWD_LIMITS_IN_FLIGHT_PER_KEY="1") as gateway:
        gateway.vendor.script.always(SLOW)
        wider, _ = await gateway.new_key(in_flight_cap=3)
        for key, served in ((gateway.key, 1), (wider, 3)):
            replies = await asyncio.gather(*(gateway.chat(headers=bearer(key)) for _ in range(4)))
            assert [reply.status_code for reply in replies].count(200) == served
            await gateway.at_rest()


async def test_every_dialect_refuses_with_the_limit_in_its_own_envelope(gateway: Gateway) -> None:
    """billing_error for messages, the chat envelope elsewhere; each refusal is in Activity."""
    key, key_id = await gateway.new_key(limit=0)
    user = [{"role": "user", "content": "hi"}]
    bodies: dict[str, dict[str, Any]] = {
        "/chat/completions": {"model": "demo/chat", "messages": user},
        "/responses": {"model": "demo/chat", "input": "hi"},
        "/completions": {"model": "demo/chat", "prompt": "hi"},
        "/embeddings": {"model": "demo/embed", "input": "hi"},
    }
    for path, body in bodies.items():
        refusal(await gateway.client.post(path, json=body, headers=bearer(key)))
    body = {"model": "demo/claude", "max_tokens": 9, "messages": user}
    reply = await gateway.client.post("/messages", json=body, headers=bearer(key))
    assert reply.status_code == 402
    assert reply.json()["type"] == "error"
    assert reply.json()["error"]["type"] == "billing_error"
    found = await gateway.manage("GET", f"/generations?key_id={key_id}&status=refused")
    assert [one["error"]["code"] for one in found["data"]] == ["key_limit_exceeded"] * 5
    assert json.dumps([one["total_cost"] for one in found["data"]]) == "[0, 0, 0, 0, 0]"
