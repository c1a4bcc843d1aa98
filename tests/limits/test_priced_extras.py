"""What is held for what makes a call dearer, and that it is paid once whatever the vendor says."""

from decimal import Decimal
from typing import Any

from gwd.demo import Behaviour
from tests.limits.till import Till
from tests.support.node import PRICES

EXTRAS = {
    "web_search": "0.01",
    "price_modifiers": {"service_tier": {"priority": "2", "default": "1.5"}},
}


async def held(till: Till, generation_id: str) -> Decimal:
    entries = await till.entries(generation_id)
    (amount,) = (entry["amount"] for entry in entries if entry["type"] == "reservation")
    return abs(Decimal(amount))


async def test_the_hold_covers_the_dearest_that_was_sent_on(till: Till) -> None:
    """The simulated vendor serves every tier as `default`, which has a price of its own here."""
    gateway = till.gateway
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"pricing": {**PRICES, **EXTRAS}})
    gateway.vendor.script.always(Behaviour(text="fine", prompt_tokens=107))
    holds: dict[str, Decimal] = {}
    asked: dict[str, dict[str, Any]] = {
        "left to the vendor": {},
        "plain": {"service_tier": "default"},
        "dearer": {"service_tier": "priority"},
        "not sold": {"service_tier": "ultrafast"},
    }
    for name, fields in asked.items():
        sale = await till.buy(max_tokens=100, **fields)
        holds[name] = await held(till, sale.row.id)
        tokens = Decimal(PRICES["prompt"]) * sale.row.tokens_input * Decimal("1.5")
        assert sale.receipt["cost"]["prompt"] == tokens.quantize(Decimal("0.000000001"))
        assert sale.total <= holds[name]
    plain = holds.pop("plain")
    assert all(hold > plain * Decimal("1.25") for hold in holds.values()), (plain, holds)


async def test_a_hold_without_credit_for_the_extra_is_refused(till: Till) -> None:
    gateway = till.gateway
    dear = {"price_modifiers": {"service_tier": {"priority": "1000"}}}
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"pricing": {**PRICES, **dear}})
    assert (await gateway.chat(service_tier="default", max_tokens=5_000)).status_code == 200
    assert (await gateway.chat(service_tier="priority", max_tokens=5_000)).status_code == 402
