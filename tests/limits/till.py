"""One paid request, seen from every side: record, receipt, `usage.cost`, ledger and balance must name one amount.

`Till.buy` sends a request in any dialect and asserts that all of them agree to the nano; tests then look at the amount.
"""

import json
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import httpx
import msgspec

from gwd.activity import service as activity
from gwd.activity.row import GenerationRow
from tests.support.node import Gateway

NANO = Decimal("0.000000001")
PATHS = {
    "chat": "/chat/completions",
    "messages": "/messages",
    "responses": "/responses",
    "completions": "/completions",
    "embeddings": "/embeddings",
}
# The classes of a cost: of the receipt, the price that applies, the columns of the record that are counted.
CLASSES = {
    "prompt": (("prompt", ("tokens_input",)),),
    "cache_read": (("input_cache_read", ("tokens_cache_read",)),),
    "cache_write": (
        ("input_cache_write", ("tokens_cache_write_5m",)),
        ("input_cache_write_1h", ("tokens_cache_write_1h",)),
    ),
    "completion": (("completion", ("tokens_output",)),),
    "reasoning": (("internal_reasoning", ("tokens_reasoning",)),),
}


class Sale(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was paid for. `total` is the one amount that every side names, in USD."""

    total: Decimal
    usage: Mapping[str, Any]
    receipt: Mapping[str, Any]
    row: GenerationRow
    body: Mapping[str, Any]


class Till:
    """Buys answers with the gateway's key and checks every one of them."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.organization_id = ""
        self.headers: dict[str, str] = {}

    async def buy(
        self, dialect: str = "chat", *, stream: bool = False, content: str = "hello", **fields: Any
    ) -> Sale:
        """A request that is answered. Nothing else may run meanwhile: the balance before and after is compared."""
        gateway = self.gateway
        await gateway.at_rest()
        before = await gateway.balance()
        body = {**request(dialect, content, stream=stream), **fields}
        reply = await gateway.client.post(
            path_of(dialect, body), json=body, headers={"x-gw-metadata": "enabled", **self.headers}
        )
        assert reply.status_code == 200, reply.text
        await gateway.at_rest()
        spent = before - await gateway.balance()
        row = await self.row(reply.headers["x-gw-generation-id"])
        last = last_of(dialect, reply, stream=stream)
        usage = last["usageMetadata" if dialect == "gemini" else "usage"]
        receipt = last["gateway_metadata"]
        record = await self.record(row.id)
        seen = {
            "record": record["total_cost"],
            "receipt": receipt["cost"]["total"],
            "usage.cost": usage["cost"],
            "ledger": await self.charged(row.id),
            "balance": spent,
        }
        assert len(set(seen.values())) == 1, seen
        assert receipt["generation_id"] == row.id
        assert receipt["cost"]["insured"] is record["insured"]
        check_parts(receipt["cost"])
        return Sale(total=spent, usage=usage, receipt=receipt, row=row, body=last)

    async def row(self, generation_id: str) -> GenerationRow:
        """The generation as it is stored, with every class of tokens."""
        if not self.organization_id:
            self.organization_id = await self.gateway.organization_id()
        found: GenerationRow = await self.gateway.store.read(
            activity.get, self.organization_id, generation_id
        )
        return found

    async def last_row(self) -> GenerationRow:
        """The newest generation: for clients that never saw their reply's headers."""
        reply = await self.gateway.operator.get("/generations", params={"limit": 1})
        return await self.row(reply.json()["data"][0]["id"])

    async def record(self, generation_id: str) -> Any:
        """The generation record of the API, its numbers exact."""
        reply = await self.gateway.operator.get("/generation", params={"id": generation_id})
        assert reply.status_code == 200, reply.text
        return decoded(reply.content)["data"]

    async def charged(self, generation_id: str) -> Decimal:
        """What the ledger's charges of a generation add up to; its hold came back whole."""
        entries = await self.entries(generation_id)
        held = sum(e["amount"] for e in entries if e["type"] == "reservation")
        back = sum(e["amount"] for e in entries if e["type"] in ("settlement", "release"))
        assert held + back == 0, entries
        return -sum((e["amount"] for e in entries if e["type"] == "charge"), Decimal(0))

    async def entries(self, generation_id: str) -> list[Any]:
        """The ledger's lines of a generation, oldest first."""
        reply = await self.gateway.operator.get(
            "/credits/ledger", params={"generation_id": generation_id, "limit": 100}
        )
        return list(reversed(decoded(reply.content)["data"]))

    async def partial(self, row: GenerationRow) -> Decimal:
        """The amount of a generation whose client may have seen no end: record and ledger must agree."""
        record, charged = await self.record(row.id), await self.charged(row.id)
        assert record["total_cost"] == charged == Decimal(row.cost_total_nano) * NANO
        return charged


def request(dialect: str, content: str, *, stream: bool) -> dict[str, Any]:
    """The smallest request of a dialect that asks for its cost."""
    asked: dict[str, Any] = {"usage": {"include": True}}
    if stream:
        asked["stream"] = True
    match dialect:
        case "chat":
            return {"model": "demo/chat", "messages": [_user(content)], **asked}
        case "messages":
            return {
                "model": "demo/chat",
                "max_tokens": 4_000,
                "messages": [_user(content)],
                **asked,
            }
        case "responses":
            return {"model": "demo/chat", "input": content, **asked}
        case "gemini":
            return {"model": "demo/chat", "contents": [{"parts": [{"text": content}]}], **asked}
        case "completions":
            return {"model": "demo/chat", "prompt": content, **asked}
        case _:
            assert dialect == "embeddings"
            return {"model": "demo/embed", "input": content, **asked}


def path_of(dialect: str, body: Mapping[str, Any]) -> str:
    """Where a request goes; one dialect names the model and the stream in its address."""
    if dialect != "gemini":
        return PATHS[dialect]
    method = "streamGenerateContent?alt=sse" if body.get("stream") else "generateContent"
    return f"/models/{body['model']}:{method}"


def bill(row: GenerationRow, prices: Mapping[str, str]) -> Decimal:
    """What a record's tokens cost at a catalog's prices, worked out in decimals apart from the gateway's integers."""
    rates = dict(prices)
    rates.setdefault("completion", "0")
    rates.setdefault("input_cache_read", rates["prompt"])
    rates.setdefault("input_cache_write", rates["prompt"])
    rates.setdefault("input_cache_write_1h", rates["input_cache_write"])
    rates.setdefault("internal_reasoning", rates["completion"])
    images = row.images * Decimal(rates.get("image", "0"))
    total = Decimal(rates.get("request", "0")) + images
    for parts in CLASSES.values():
        exact = sum(
            (
                Decimal(rates[price]) * sum(getattr(row, column) for column in columns)
                for price, columns in parts
            ),
            Decimal(0),
        )
        total += exact.quantize(NANO, ROUND_HALF_UP)
    return total


def check_parts(cost: Mapping[str, Any]) -> None:
    """The classes of a receipt add up to its total; insured is 0, an own key pays the fee."""
    parts = {*CLASSES, "request_fee", "platform_fee", *({"web_search"} & cost.keys())}
    assert set(cost) == {*parts, "currency", "total", "insured", "byok"}
    whole = sum(cost[name] for name in parts)
    if cost["insured"]:
        assert cost["total"] == 0
    elif cost["byok"]:
        assert cost["total"] == cost["platform_fee"]
    else:
        assert cost["platform_fee"] == 0
        assert cost["total"] == whole


def last_of(dialect: str, reply: httpx.Response, *, stream: bool) -> Any:
    """The object that carries usage and receipt: the whole body, or that frame of a stream."""
    if not stream:
        return decoded(reply.content)
    found = [frame for frame in frames(reply.text) if _carries(dialect, frame)]
    assert found, reply.text
    return found[-1]["response"] if dialect == "responses" else found[-1]


def frames(text: str) -> list[Any]:
    """The JSON objects of a stream."""
    return [decoded(line[6:].encode()) for line in text.splitlines() if line.startswith("data: {")]


def decoded(data: bytes) -> Any:
    """JSON with exact numbers."""
    return json.loads(data, parse_float=Decimal, parse_int=_whole)


def _carries(dialect: str, frame: Any) -> bool:
    if dialect == "responses":
        return frame["type"] in ("response.completed", "response.incomplete", "response.failed")
    if dialect == "messages":
        return bool(frame["type"] == "message_delta")
    return frame.get("usageMetadata" if dialect == "gemini" else "usage") is not None


def _user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def _whole(text: str) -> int:
    return int(text)
