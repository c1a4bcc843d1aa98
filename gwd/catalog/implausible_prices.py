"""Prices that look like a typing error are taken only with `accept: true`.

That is a price that changes by more than tenfold, or one above 0.001 USD a token (1,000 USD a million).
"""

from decimal import Decimal
from typing import Final

from msgspec import UNSET

from gwd.catalog.price_body import PriceBody, modifiers, rates, resolved, whole_nano
from gwd.catalog.price_body import check as check_body
from gwd.core.errors import PriceNotAccepted
from gwd.core.money import MILLIONTHS, PICO_PER_NANO, PICO_PER_USD

MOST_TIMES: Final = 10
DEAR_PICO: Final = PICO_PER_USD // 1_000
_WHOLE: Final = ("request", "image", "web_search")


def check(before: PriceBody | None, after: PriceBody) -> None:
    """Raises PriceNotAccepted for the first price that needs `accept: true`; `before` is None for a first price."""
    check_body(after)
    steps = {
        0,
        *(tier.above_prompt_tokens for tier in after.tiers),
        *(tier.above_prompt_tokens for tier in (before.tiers if before else ())),
    }
    for above in sorted(steps):
        then = _at(before, above) if before else {}
        for name, pico in _at(after, above).items():
            field = f"pricing_tiers above {above}: {name}" if above else f"pricing.{name}"
            was = then.get(name)
            if pico == was:
                continue
            if was is not None and not was <= pico * MOST_TIMES <= was * MOST_TIMES**2:
                raise _refusal(field, name, pico, was)
            if pico > DEAR_PICO and name not in _WHOLE:
                raise _refusal(field, name, pico, None)


def _at(body: PriceBody, above: int) -> dict[str, int]:
    """What each class costs in a prompt longer than `above`, every fallback applied."""
    named = rates(body.pricing, "pricing")
    tiers = [tier for tier in body.tiers if tier.above_prompt_tokens <= above]
    if tiers:
        last = max(tiers, key=lambda tier: tier.above_prompt_tokens)
        named |= rates(last.pricing, "pricing_tiers")
    if named.keys() >= {"prompt", "completion"}:
        named = resolved(named)
    dearer = {}
    for field, factors in modifiers(body.pricing).items():
        for value, factor in factors.items():
            for name in ("prompt", "completion"):
                if name in named:
                    dearer[f"{name} with {field} {value}"] = named[name] * factor // MILLIONTHS
    whole = {name: getattr(body.pricing, name) for name in _WHOLE}
    return (
        named
        | dearer
        | {
            name: whole_nano(text, name) * PICO_PER_NANO
            for name, text in whole.items()
            if text is not UNSET
        }
    )


def _refusal(field: str, name: str, pico: int, was: int | None) -> PriceNotAccepted:
    unit = f"USD per {name}" if name in _WHOLE else "USD per million tokens"
    scale = 0 if name in _WHOLE else 6
    now, then = (f"{Decimal(p).scaleb(scale - 12):f}" for p in (pico, was or 0))
    now, then = (text.rstrip("0").rstrip(".") if "." in text else text for text in (now, then))
    what = (
        f"goes from {then} to {now} {unit}, more than tenfold"
        if was is not None
        else f"is {now} {unit}, above 0.001 USD a token"
    )
    return PriceNotAccepted(
        f"`{field}` {what}; send `accept: true` if that is meant", param=field.partition(" ")[0]
    )
