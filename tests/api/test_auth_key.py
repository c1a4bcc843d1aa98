"""GET /auth/key and /key: what the calling key is, may and has used."""

import pytest

from tests.support.node import Gateway


@pytest.mark.parametrize("path", ["/auth/key", "/key"])
async def test_a_key_reads_itself_without_its_secret(gateway: Gateway, path: str) -> None:
    reply = await gateway.client.get(path)
    data = reply.json()["data"]
    assert data["id"] == gateway.key_id
    assert data["rate_limit_per_minute"] == 600
    assert data["limit"] is None
    assert data["limit_remaining"] is None
    assert data["is_management_key"] is False
    assert gateway.key not in reply.text


async def test_limit_and_rest_follow_what_was_spent(gateway: Gateway) -> None:
    key, _ = await gateway.new_key(limit=1, limit_reset="daily", rate_limit_per_minute=30)
    gateway.client.headers["authorization"] = f"Bearer {key}"
    cost = (await gateway.chat(usage={"include": True})).json()["usage"]["cost"]
    await gateway.at_rest()
    data = (await gateway.client.get("/auth/key")).json()["data"]
    assert data["usage"] == cost
    assert data["usage_daily"] == cost
    assert data["limit_remaining"] == pytest.approx(1 - cost, abs=1e-12)
    assert data["limit_resets_at"].endswith("T00:00:00Z")
    assert data["rate_limit"]["requests"] == 30


async def test_the_budgets_that_bind_the_key_are_shown(gateway: Gateway) -> None:
    scope = {"scope": "organization", "scope_id": await gateway.organization_id()}
    body = {**scope, "interval": "monthly", "kind": "hard", "limit": 3}
    made = (await gateway.manage("POST", "/budgets", body))["data"]
    data = (await gateway.client.get("/auth/key")).json()["data"]
    (budget,) = data["budgets"]
    assert budget["budget_id"] == made["id"]
    assert (budget["limit"], budget["remaining"]) == (3, 3)
    assert data["effective_budget"] == budget


async def test_a_management_key_reads_itself_too(gateway: Gateway) -> None:
    data = (await gateway.manage("GET", "/auth/key"))["data"]
    assert data["is_management_key"] is True
    assert data["type"] == "management"
