"""What is answered outside of the table of management routes is of its type, too: models, and receipts."""

from typing import Any

import msgspec

from gwd.api.model_record import ModelAnswer, ModelEndpoints, ModelList
from gwd.api.openapi.answers import CountedTokens
from gwd.api.shapes import One
from gwd.core.receipt import (
    Receipt,
    ReceiptCost,
    ReceiptPipeline,
    ReceiptPricing,
    ReceiptRouting,
    ReceiptTiming,
)
from gwd.demo import Behaviour
from tests.api.money_scenes import FULL_PRICES, LONGER
from tests.flows.conftest import ORDER, A, add_backup
from tests.support.answers import Seen, differences, sometimes
from tests.support.node import Gateway

PATHS: dict[str, Any] = {
    "/models": ModelList,
    "/models?client_version=1.0": ModelList,
    "/models?output_modalities=all&limit=1": ModelList,
    "/models?q=nothing-of-this-name": ModelList,
    "/models/demo/chat": ModelAnswer,
    "/models/chatty": ModelAnswer,
    "/models/demo/plain": ModelAnswer,
    "/models/demo/chat/endpoints": One[ModelEndpoints],
    "/models/demo/plain/endpoints": One[ModelEndpoints],
    "/models/demo/embed/endpoints": One[ModelEndpoints],
}
PARTS: dict[str, type[msgspec.Struct]] = {
    "": Receipt,
    "routing": ReceiptRouting,
    "timing_ms": ReceiptTiming,
    "cost": ReceiptCost,
    "pricing": ReceiptPricing,
    "pipeline": ReceiptPipeline,
}


async def test_models_are_answered_as_their_types_say(gateway: Gateway) -> None:
    changes = {"pricing": FULL_PRICES, "aliases": ["chatty"], "family": "chat", "accept": True}
    await gateway.manage("PATCH", "/catalog/models/demo/chat", changes)
    await gateway.add_model("demo/plain", pricing=None, parameters=["max_tokens"])
    wrong: list[str] = []
    seen: Seen = set()
    for path, answers in PATHS.items():
        reply = await gateway.client.get(path)
        assert reply.status_code == 200, reply.text
        wrong += [f"{path}: {what}" for what in differences(reply.content, answers, seen)]
    assert wrong == []
    declared = sometimes(ModelList) | sometimes(One[ModelEndpoints])
    assert sorted(declared - seen) == []


async def test_a_count_of_tokens_is_as_its_type_says(gateway: Gateway) -> None:
    body = {"model": "demo/chat", "messages": [{"role": "user", "content": "hello"}]}
    reply = await gateway.client.post("/messages/count_tokens", json=body)
    assert reply.status_code == 200
    assert differences(reply.content, CountedTokens) == []


ONLY = {"only": ["openai-chat"]}


async def test_a_receipt_is_what_its_type_says_in_its_order(gateway: Gateway) -> None:
    """The inference line writes it by hand."""
    await add_backup(gateway)
    changes = {"pricing": FULL_PRICES, "pricing_tiers": LONGER, "accept": True}
    await gateway.manage("PATCH", "/catalog/models/demo/chat", changes)
    past = {"deprecated_at": "2026-01-01T00:00:00Z", "retired_at": "2026-01-02T00:00:00Z"}
    await gateway.manage("PATCH", "/catalog/models/demo/chat-b", {**past, "successor": "demo/chat"})
    gateway.client.headers["x-gw-metadata"] = "enabled"
    wrong: list[str] = []
    seen: Seen = set()
    for fields in (
        {"session_id": "s-1"},
        {"session_id": "s-1"},
        {"model": "demo/claude"},
        {"service_tier": "priority"},
        {"model": None, "models": ["demo/chat:odd", "demo/chat"]},
        {"provider": ORDER},
        {"model": "demo/chat-b"},
        {"provider": ONLY},
    ):
        if fields.get("provider") == ONLY:
            own = {"provider": "openai-chat", "key": "sk-own-77aa0011"}
            await gateway.manage("POST", "/byok", own)
        if "provider" in fields:
            gateway.vendor.script.next(Behaviour(status=500), model=A)
        reply = await gateway.chat("hello", **fields)
        assert reply.status_code == 200, reply.text
        receipt = bytes(
            msgspec.json.decode(reply.content, type=dict[str, msgspec.Raw])["gateway_metadata"]
        )
        wrong += [f"{fields}: {what}" for what in differences(receipt, Receipt, seen)]
        reported = msgspec.json.decode(receipt)
        wrong += [
            f"{fields}: {name or 'receipt'} is in another order"
            for name, shape in PARTS.items()
            if not _is_in_order(reported.get(name, {}) if name else reported, shape)
        ]
    assert wrong == []
    assert sorted(sometimes(Receipt) - seen) == []


def _is_in_order(reported: dict[str, Any], shape: type[msgspec.Struct]) -> bool:
    return list(reported) == [name for name in shape.__struct_fields__ if name in reported]
