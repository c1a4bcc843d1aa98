"""Settings of an organization that change what the gateway does, seen from outside."""

import pytest

from gwd.core.clock import SystemClock
from gwd.core.node_clock import NodeClock
from gwd.jobs import retention
from gwd.orgs.settings import retentions
from tests.support.node import Gateway


async def test_model_list_shows_what_the_key_may_use_where_the_organization_says_so(
    gateway: Gateway,
) -> None:
    key, _ = await gateway.new_key(allowed_models=["demo/chat"])
    headers = {"authorization": f"Bearer {key}"}

    async def listed(headers: dict[str, str]) -> set[str]:
        return {
            m["id"] for m in (await gateway.client.get("/models", headers=headers)).json()["data"]
        }

    assert len(await listed(headers)) > 1
    await gateway.manage(
        "PATCH", "/organization/settings", {"is_filtered_model_catalog_enabled": True}
    )
    assert await listed(headers) == {"demo/chat"}
    assert len(await listed({"authorization": "Bearer nobody"})) > 1


async def test_tags_are_dropped_after_the_retention_and_amounts_stay(gateway: Gateway) -> None:
    reply = await gateway.chat(user="alice", session_id="s1")
    before = await gateway.generation(reply)
    assert before["external_user"] == "alice"
    await gateway.manage("PATCH", "/organization/settings", {"retention_days": 1})
    assert [days for _, days in await gateway.store.read(retentions)] == [1]
    await retention.forget(gateway.store, NodeClock(SystemClock()))
    assert (await gateway.generation(reply))["external_user"] == "alice"

    class Tomorrow(SystemClock):
        def now_us(self) -> int:
            return super().now_us() + 2 * 86_400_000_000

    await retention.forget(gateway.store, NodeClock(Tomorrow()))
    after = await gateway.generation(reply)
    assert (after["external_user"], after["session_id"]) == (None, None)
    assert after["total_cost"] == before["total_cost"]


class NextWeek(SystemClock):
    def now_us(self) -> int:
        return super().now_us() + 7 * 86_400_000_000


async def test_more_than_the_writer_is_given_at_once_goes_all_the_same(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "CHUNK", 2)
    replies = [await gateway.chat(user=f"u{number}") for number in range(5)]
    await gateway.manage("PATCH", "/organization/settings", {"retention_days": 1})
    await retention.forget(gateway.store, NodeClock(NextWeek()))
    users = [(await gateway.generation(reply))["external_user"] for reply in replies]
    assert users == [None] * 5
