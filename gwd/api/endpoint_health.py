"""How each endpoint stands now, for the operator: the state of routing as records."""

from typing import Any, Literal

from gwd.api.node import Node
from gwd.catalog.snapshot import Endpoint
from gwd.core.clock import US_PER_S, iso
from gwd.credentials.service import VendorKey
from gwd.pipeline.health import Health

Record = dict[str, Any]
State = Literal["healthy", "cooling_down", "outage", "disabled", "no_price", "no_credential"]


async def endpoint_records(node: Node, now_us: int) -> list[Record]:
    """All endpoints by model: healthy, or why they are not tried or tried last."""
    catalog = await node.state.catalog()
    keys, health = node.state.vendor_keys, node.state.health
    now_s = node.clock.monotonic_s()
    return [
        _record(endpoint, keys.get(endpoint.provider, ()), health, now_us, now_s)
        for model in catalog.models.values()
        for endpoint in model.endpoints
    ]


def usable(keys: tuple[VendorKey, ...], now_us: int) -> list[VendorKey]:
    """Keys that could be opened and whose prepaid credit has not ended."""
    return [
        key
        for key in keys
        if key.secret is not None and (key.expires_at_us is None or key.expires_at_us > now_us)
    ]


def _record(
    endpoint: Endpoint, keys: tuple[VendorKey, ...], health: Health, now_us: int, now_s: float
) -> Record:
    attempts, failures = health.attempts(endpoint.id, now_s)
    ttft_s = health.median_ttft_s(endpoint.id, now_s)
    status, reason, wait_s = _state(endpoint, keys, health, now_us, now_s)
    return {
        "id": endpoint.id,
        "model": endpoint.model,
        "provider": endpoint.provider,
        "tag": endpoint.tag,
        "status": status,
        "reason": reason,
        "cooldown_until": None if wait_s is None else iso(now_us + int(wait_s * US_PER_S)),
        "attempts": attempts,
        "failures": failures,
        "p50_ttft_ms": None if ttft_s is None else round(ttft_s * 1000),
    }


def _state(
    endpoint: Endpoint, keys: tuple[VendorKey, ...], health: Health, now_us: int, now_s: float
) -> tuple[State, str | None, float | None]:
    if not endpoint.is_live:
        return "disabled", "the endpoint or its provider is disabled or draining", None
    if endpoint.price_at(now_us) is None:
        return "no_price", "it has no complete price, so nothing is sent to it", None
    ready = usable(keys, now_us)
    if not ready:
        problem = next((key.problem for key in keys if key.problem is not None), None)
        return "no_credential", problem or "its provider has no usable credential", None
    waits = [(health.cooling(endpoint.id, key.id, now_s), key.id) for key in ready]
    soonest = min(
        ((wait_s, key_id) for wait_s, key_id in waits if wait_s is not None), default=None
    )
    if soonest is not None and all(wait_s is not None for wait_s, _ in waits):
        wait_s, key_id = soonest
        return "cooling_down", health.cooling_reason(endpoint.id, key_id), wait_s
    if health.has_outage(endpoint.id, now_s):
        return "outage", "many of its last calls failed; it is tried last", None
    return "healthy", None, None
