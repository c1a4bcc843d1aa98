"""What answers about the catalog, money and requests say only sometimes: (route, its reply) by the dozen."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from gwd.demo import Behaviour
from tests.api.office import Office
from tests.flows.conftest import ORDER, A, add_backup
from tests.support.node import CLAUDE_PRICES, PRICES, Gateway, fill_catalog

Answered = AsyncIterator[tuple[str, httpx.Response]]

FULL_PRICES = {
    **CLAUDE_PRICES,
    "internal_reasoning": "0.00002",
    "request": "0.01",
    "image": "0.002",
    "web_search": "0.01",
    "price_modifiers": {"service_tier": {"priority": "2", "default": "3"}},
}
LONGER = [{"above_prompt_tokens": 1_000, "pricing": {"prompt": "0.000004"}}]
MODEL = "/catalog/models/demo/chat"


async def catalog(office: Office) -> Answered:
    """Every field of a price, announced versions, vendor keys that cannot be used, headers that are hidden."""
    await fill_catalog(office.gateway)
    priced = {"pricing": FULL_PRICES, "pricing_tiers": LONGER, "family": "chat"}
    next_year = (datetime.now(UTC) + timedelta(days=365)).isoformat()
    announced = {"pricing": PRICES, "effective_at": next_year}
    for change in (priced, announced):
        reply = await office.call("operator", "PATCH", MODEL, {**change, "accept": True})
        yield "PATCH /catalog/models/<model:path>", reply
    served = (await office.ok("operator", "GET", MODEL))["data"]["endpoints"][0]["id"]
    own: dict[str, Any] = {
        "pricing": FULL_PRICES,
        "base_url": office.gateway.vendor.openai_url,
        "supported_parameters": ["max_tokens"],
        "flags": {"mid_system": True},
        "accept": True,
    }
    for fields in (own, {"pricing": None, "base_url": None, "supported_parameters": None}):
        reply = await office.call("operator", "PATCH", f"/catalog/endpoints/{served}", fields)
        yield "PATCH /catalog/endpoints/<endpoint>", reply
    unset = {"provider": "openai-chat", "key_ref": "env:NOT_THERE", "expires_at": next_year}
    made = await office.call("operator", "POST", "/catalog/credentials", unset)
    yield "POST /catalog/credentials", made
    yield "POST /operator/reload", await office.call("operator", "POST", "/operator/reload")
    yield "GET /operator/doctor", await office.call("operator", "GET", "/operator/doctor")
    await office.ok("operator", "DELETE", f"/catalog/credentials/{made.json()['data']['id']}")
    headers = {"headers": {"x-team": "blue"}}
    await office.ok("operator", "PATCH", "/catalog/providers/openai-chat", headers)
    asked = {"model": "demo/chat"}
    for path in ("/route/explain", "/estimate"):
        yield f"POST {path}", await office.call("operator", "POST", path, asked)
    for noun in ("providers", "models", "endpoints"):
        reply = await office.call("member", "GET", f"/catalog/{noun}", params={"limit": 100})
        yield f"GET /catalog/{noun}", reply


async def money(office: Office) -> Answered:
    """Bookings of every kind, once and again, and the books after them."""
    bookings: list[tuple[str, dict[str, Any]]] = [
        ("purchases", {"amount": 2.5}),
        ("grants", {"kind": "promotional", "amount": 1, "expires_at": "2999-01-01T00:00:00Z"}),
        ("refunds", {"amount": 0.000000001, "note": "changed our mind"}),
        ("adjustments", {"amount": -3, "reason": "of several kinds of credit"}),
    ]
    for path, body in bookings:
        for _ in range(2):
            again = {**body, "reference": f"{path} of the scene"}
            yield (
                f"POST /credits/{path}",
                await office.call("operator", "POST", f"/credits/{path}", again),
            )
    ledger = await office.call("operator", "GET", "/credits/ledger", params={"limit": 3})
    yield "GET /credits/ledger", ledger
    after = {"after": ledger.json()["next"]}
    yield (
        "GET /credits/ledger",
        await office.call("operator", "GET", "/credits/ledger", params=after),
    )
    head = await office.call("operator", "GET", "/ledger/head", params={"all": "true"})
    yield "GET /ledger/head", head
    kept = {"all": True, "head": head.json()["data"]}
    yield "POST /ledger/verify", await office.call("operator", "POST", "/ledger/verify", kept)


async def requests(office: Office) -> Answered:
    """Records of requests that were served plainly, dearly, by another endpoint, by a successor, or not at all."""
    gateway = office.gateway
    await add_backup(gateway)
    made = await office.ok("operator", "POST", "/keys", {"name": office.unique()})
    gateway.client.headers["authorization"] = f"Bearer {made['key']}"
    gateway.client.headers["x-gw-metadata"] = "enabled"
    served = [
        await gateway.chat("hello", user="tenant-7"),
        await gateway.chat("hello", service_tier="priority", stream=True),
        await gateway.chat("hello", model="demo/claude"),
        await gateway.chat("hello", session_id="s-1"),
        await gateway.chat("hello again", session_id="s-1"),
    ]
    gateway.vendor.script.next(Behaviour(status=500), model=A)
    served.append(await gateway.chat("hello", provider=ORDER))
    own = await gateway.manage(
        "POST", "/byok", {"provider": "openai-chat", "key": "sk-own-77aa0011"}
    )
    gateway.vendor.script.next(Behaviour(status=500), model=A)
    served.append(await gateway.chat("hello", provider=ORDER))
    await gateway.manage("DELETE", f"/byok/{own['data']['id']}")
    gateway.vendor.script.next(Behaviour(status=401), model=A)
    asked = {"models": ["demo/chat:odd", "demo/chat"], "provider": {"only": ["openai-chat"]}}
    served.append(await gateway.chat("hello", model=None, **asked))
    await _retire(gateway)
    served.append(await gateway.chat("hello", model="demo/chat-b"))
    for reply in served:
        await gateway.generation(reply)
        asked_for = {"id": reply.headers["x-gw-generation-id"]}
        yield (
            "GET /generation",
            await office.call("operator", "GET", "/generation", params=asked_for),
        )
    yield "GET /generations", await office.call("operator", "GET", "/generations")
    yield "GET /operator/status", await office.call("operator", "GET", "/operator/status")
    yield "GET /operator/doctor", await office.call("operator", "GET", "/operator/doctor")
    await gateway.running.node.store.write(_turned_away)
    yield (
        "GET /catalog/credentials",
        await office.call("operator", "GET", "/catalog/credentials"),
    )


async def _retire(gateway: Gateway) -> None:
    """`demo/chat-b` is retired, and `demo/chat` takes its requests."""
    ago = [(datetime.now(UTC) - timedelta(days=days)).isoformat() for days in (2, 1)]
    dates = {"deprecated_at": ago[0], "retired_at": ago[1], "successor": "demo/chat"}
    await gateway.manage("PATCH", "/catalog/models/demo/chat-b", dates)


def _turned_away(connection: Any) -> None:
    """What the daemon notes of a vendor's 401 within a minute."""
    connection.execute(
        "UPDATE credential SET last_error_at = created_at, last_error_reason = 'auth_invalid'"
    )
