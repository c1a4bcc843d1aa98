"""Prices that look like a typing error, found before anything is sent; the daemon judges again by its own rule."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from gwctl import text

MOST_TIMES = 10
DEAR = Decimal("0.001")  # USD a token
_WHOLE = ("request", "image", "web_search")
# What is charged for a class of token that has no price of its own.
_INSTEAD = {
    "input_cache_read": "prompt", "input_cache_write": "prompt", "input_cache_write_1h": "prompt",
    "internal_reasoning": "completion",
}  # fmt: skip


def found(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What looks wrong in a new price, in a few words; empty when nothing does."""
    for name, value in after.items():
        now, was = (
            text.decimal(value),
            text.decimal(before.get(name, before.get(_INSTEAD.get(name, name)))),
        )
        if now is None or now == was:
            continue
        shown = f"{name} {_shown(name, was)} -> {_shown(name, now)}"
        if was is not None and not was <= now * MOST_TIMES <= was * MOST_TIMES**2:
            return f"{shown}, more than tenfold"
        if now > DEAR and name not in _WHOLE:
            return f"{shown}, above $0.001 a token"
    return ""


def _shown(name: str, value: Decimal | None) -> str:
    if value is None:
        return "none"
    if name in _WHOLE:
        return text.exact_money(value)
    return f"{text.per_million(value)} per million"
