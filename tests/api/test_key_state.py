"""A key's state decides at the very next request: here, while it streams, and everywhere else."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from gwd.demo import Behaviour
from tests.api.office import Office
from tests.support.node import Gateway

SLOW = Behaviour(tokens=30, event_delay_s=0.05)
CHAT = {"model": "demo/chat", "messages": [{"role": "user", "content": "hello"}]}


@asynccontextmanager
async def streaming(gateway: Gateway) -> AsyncIterator["asyncio.Task[list[Any]]"]:
    """A slow stream of the test's key that has begun; its task gives the frames."""
    gateway.vendor.script.next(SLOW)
    begun = asyncio.Event()

    async def read() -> list[Any]:
        frames = []
        async with gateway.client.stream(
            "POST", "/chat/completions", json={**CHAT, "stream": True}
        ) as reply:
            assert reply.status_code == 200
            async for line in reply.aiter_lines():
                if line.startswith("data: "):
                    frames.append(line[6:])
                    begun.set()
        return frames

    task = asyncio.create_task(read())
    await asyncio.wait_for(begun.wait(), 10)
    yield task
    await task


async def refused(gateway: Gateway, **headers: str) -> Any:
    reply = await gateway.client.post("/chat/completions", json=CHAT, headers=headers)
    return reply.status_code, reply.json()["error"]["code"]


ENDS: dict[str, Any] = {
    "disabled": ("PATCH", {"disabled": True}, (401, "key_disabled")),
    "deleted": ("DELETE", None, (401, "invalid_api_key")),
}


@pytest.mark.parametrize("end", ENDS)
async def test_an_ended_key_is_refused_at_the_next_request_while_it_still_streams(
    gateway: Gateway, end: str
) -> None:
    """The running request finishes and is paid; nothing new begins."""
    method, body, expected = ENDS[end]
    async with streaming(gateway) as running:
        await gateway.manage(method, f"/keys/{gateway.key_id}", body)
        assert await refused(gateway) == expected
        assert not running.done()
    frames = running.result()
    assert frames[-1] == "[DONE]"
    last = json.loads(frames[-2])
    assert last["usage"]["completion_tokens"] >= 30
    record = await _record(gateway, last["id"])
    assert record["status"] == "succeeded"
    assert record["total_cost"] > 0


async def test_a_key_that_expires_is_refused_from_that_moment_on(gateway: Gateway) -> None:
    async with streaming(gateway) as running:
        soon = datetime.now(UTC) + timedelta(seconds=0.4)
        await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"expires_at": soon.isoformat()})
        assert (await gateway.client.post("/chat/completions", json=CHAT)).status_code == 200
        await asyncio.sleep(0.5)
        assert await refused(gateway) == (401, "key_expired")
        assert not running.done()
    assert running.result()[-1] == "[DONE]"


async def test_an_enabled_key_works_again_at_once(gateway: Gateway) -> None:
    for disabled, status in ((True, 401), (False, 200), (True, 401)):
        await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"disabled": disabled})
        assert (await gateway.client.post("/chat/completions", json=CHAT)).status_code == status


async def test_a_suspended_organization_serves_nobody_until_it_is_let_go_on(
    busy_office: Office,
) -> None:
    office = busy_office
    there = f"/organizations/{office.stranger_organization_id}"
    made = await office.ok("stranger", "POST", "/keys", {"name": "ci"})
    key = {"authorization": f"Bearer {made['key']}"}
    await office.ok("stranger", "POST", "/credits/purchases", {"amount": 5})
    for suspended, status in ((False, 200), (True, 403), (False, 200)):
        await office.ok("operator", "PATCH", there, {"suspended": suspended})
        reply = await office.client.post("/chat/completions", json=CHAT, headers=key)
        assert reply.status_code == status, reply.text
        managed = await office.call("stranger", "GET", "/keys")
        assert managed.status_code == status
        if suspended:
            assert reply.json()["error"]["code"] == "organization_suspended"


async def test_a_deleted_organizations_keys_are_unknown(busy_office: Office) -> None:
    office = busy_office
    await office.ok("operator", "DELETE", f"/organizations/{office.stranger_organization_id}")
    reply = await office.call("stranger", "GET", "/organization")
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")


async def test_a_removed_member_and_a_lowered_role_count_at_once(office: Office) -> None:
    admin = office["admin"]
    assert (await office.call("admin", "POST", "/workspaces", {"name": "One"})).status_code == 201
    path = f"/organization/members/{admin.user_id}"
    await office.ok("owner", "PATCH", path, {"role": "member"})
    assert (await office.call("admin", "POST", "/workspaces", {"name": "Two"})).status_code == 403
    await office.ok("owner", "DELETE", path)
    reply = await office.call("admin", "GET", "/organization")
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "key_disabled")


async def test_a_budget_and_a_limit_refuse_at_the_next_request(gateway: Gateway) -> None:
    """Management changes reach admission without a restart or a wait."""
    assert (await gateway.chat()).status_code == 200
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": 0})
    reply = await gateway.chat()
    assert (reply.status_code, reply.json()["error"]["code"]) == (402, "key_limit_exceeded")
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"limit": None})
    budget = {"scope": "organization", "interval": "daily", "limit": "0.000000001"}
    made = await gateway.manage("POST", "/budgets", budget)
    reply = await gateway.chat()
    assert (reply.status_code, reply.json()["error"]["code"]) == (402, "budget_exceeded")
    await gateway.manage("DELETE", f"/budgets/{made['data']['id']}")
    assert (await gateway.chat()).status_code == 200


async def test_an_organizations_allowed_models_bind_at_the_next_request(gateway: Gateway) -> None:
    assert (await gateway.chat()).status_code == 200
    await gateway.manage("PATCH", "/organization/settings", {"allowed_models": ["demo/claude"]})
    reply = await gateway.chat()
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "model_not_allowed")
    await gateway.manage("PATCH", "/organization/settings", {"allowed_models": None})
    assert (await gateway.chat()).status_code == 200


async def _record(gateway: Gateway, generation_id: str) -> Any:
    reply = httpx.Response(200, headers={"x-gw-generation-id": generation_id})
    return await gateway.generation(reply)
