"""What a usage costs at a price: each class rounded once, the total is their sum."""

from collections.abc import Collection
from math import prod
from typing import Final

import msgspec

from gwd.core.cost import Cost, Price, PriceTier
from gwd.core.extras import ONE, Applied
from gwd.core.money import PICO_PER_NANO, fee_nano, nano_from_pico, nano_from_pico_times
from gwd.core.usage import Usage


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """The per-token prices, in pico-USD, that hold for one whole request."""

    prompt_pico: int
    cache_read_pico: int
    cache_write_5m_pico: int
    cache_write_1h_pico: int
    completion_pico: int
    reasoning_pico: int


class Multiple(msgspec.Struct, frozen=True, kw_only=True):
    """An exact factor of the price of tokens, as a fraction."""

    above: int = 1
    below: int = 1

    def nano(self, pico: int) -> int:
        """Pico-USD at the list price as nano-USD times the factor: rounded once, half up."""
        return nano_from_pico_times(pico, above=self.above, below=self.below)

    def nano_up(self, pico: int) -> int:
        """The same, rounded up."""
        return -(-pico * self.above // (PICO_PER_NANO * self.below))


_ONCE: Final = Multiple()
_PLAIN: Final = Applied()


def multiple_of(millionths: Collection[int]) -> Multiple:
    """The product of factors, which stack."""
    if not millionths:
        return _ONCE
    return Multiple(above=prod(millionths), below=ONE ** len(millionths))


def cost(
    usage: Usage,
    price: Price,
    *,
    byok_fee_bps: int | None = None,
    insured: bool,
    applied: Applied = _PLAIN,
) -> Cost:
    """The cost of `usage`, for a request that is charged or insured; a failed one has no cost at all.

    The factors `applied` multiply the price of tokens of every class, cache reads and writes too; pictures, the request
    and searches have amounts of their own, which no factor touches.
    `byok_fee_bps` is given when the owner's own key served: then the classes show the official price and only the
    fee, rounded down, is charged. An insured request is charged nothing and keeps its classes for information.
    """
    rates = rates_for(price, usage.input_total)
    times = multiple_of([factor.millionths for factor in applied.factors.values()])
    searches_nano = applied.searches * (price.web_search_nano or 0)
    nano = nano_from_pico if times is _ONCE else times.nano
    parts = Cost(
        prompt_nano=nano(usage.input * rates.prompt_pico) + usage.images * price.image_nano,
        cache_read_nano=nano(usage.cache_read * rates.cache_read_pico),
        # The two kinds of cache writes are one class and are rounded together.
        cache_write_nano=nano(
            usage.cache_write_5m * rates.cache_write_5m_pico
            + usage.cache_write_1h * rates.cache_write_1h_pico
        ),
        completion_nano=nano(usage.output * rates.completion_pico),
        reasoning_nano=nano(usage.reasoning * rates.reasoning_pico),
        request_fee_nano=price.request_nano,
        web_search_nano=searches_nano,
        insured=insured,
        byok=byok_fee_bps is not None,
    )
    if insured:
        return parts
    if usage.cache_read or usage.cache_write_5m or usage.cache_write_1h:
        uncached_nano = nano(usage.input_total * rates.prompt_pico)
        prompt_nano = nano(usage.input * rates.prompt_pico)
        discount = uncached_nano - prompt_nano - parts.cache_read_nano - parts.cache_write_nano
        parts = msgspec.structs.replace(parts, cache_discount_nano=discount)
    if byok_fee_bps is None:
        return msgspec.structs.replace(parts, total_nano=parts.list_price_nano)
    fee = fee_nano(parts.list_price_nano, byok_fee_bps)
    return msgspec.structs.replace(parts, platform_fee_nano=fee, total_nano=fee)


def rates_for(price: Price, prompt_tokens: int) -> Rates:
    """The rates of a request with `prompt_tokens` in all: the highest tier that the prompt exceeds, else the base.

    A tier holds for every token of the request, not only for those above its threshold.
    """
    if not price.tiers:
        return _rates(price)
    reached = [tier for tier in price.tiers if prompt_tokens > tier.above_prompt_tokens]
    if not reached:
        return _rates(price)
    return _rates(max(reached, key=lambda tier: tier.above_prompt_tokens))


def reachable_rates(price: Price, prompt_tokens: int) -> tuple[Rates, ...]:
    """Every set of rates that a prompt of at most `prompt_tokens` can end up with: the base and the tiers below."""
    if not price.tiers:
        return (_rates(price),)
    reached = (tier for tier in price.tiers if prompt_tokens > tier.above_prompt_tokens)
    return (_rates(price), *(_rates(tier) for tier in reached))


def _rates(source: Price | PriceTier) -> Rates:
    return Rates(
        prompt_pico=source.prompt_pico,
        cache_read_pico=source.cache_read_pico,
        cache_write_5m_pico=source.cache_write_5m_pico,
        cache_write_1h_pico=source.cache_write_1h_pico,
        completion_pico=source.completion_pico,
        reasoning_pico=source.reasoning_pico,
    )
