"""The credit to hold for a request at a target.

A demand is measured once per request; a hold is computed from it for each target. The hold is never under the cost of
any usage that stays within its bounds, whichever classes and tier the tokens end up in.
"""

from typing import Final

import msgspec

from gwd.core.cost import Price
from gwd.core.extras import fills_prompt
from gwd.core.money import fee_nano
from gwd.core.request import Generate, Request
from gwd.core.target import Target
from gwd.pricing.bound import bound_prompt
from gwd.pricing.cost import Multiple, Rates, multiple_of, reachable_rates
from gwd.pricing.estimate import count_images, estimate_prompt
from gwd.pricing.extras import ceilings

DEFAULT_OUTPUT_BOUND: Final = 32_768
LARGE_BYTES: Final = 256 * 1024
_CLASSES: Final = 5
_ONCE: Final = Multiple()


class Demand(msgspec.Struct, kw_only=True):
    """What a request asks for, in tokens: measured once, before any target is considered.

    `output_cap` is the client's own limit. `writes_1h` tells that a one-hour prompt-cache mark is present. The
    estimate of the prompt is computed when it is first asked for: a healthy request never needs it.
    """

    request: Request
    prompt_bound: int
    images: int
    generates: bool
    writes_1h: bool
    output_cap: int | None
    estimated: int | None = None

    @property
    def prompt_estimate(self) -> int:
        """About how many prompt tokens the vendor will count; never above `prompt_bound`."""
        if self.estimated is None:
            self.estimated = min(estimate_prompt(self.request), self.prompt_bound)
        return self.estimated


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """Credit to hold for one target, with the bounds it was computed from.

    `list_price_nano` is the bound of the official price: the amount itself, but on an own key, where that is the fee.
    """

    prompt_tokens: int
    output_tokens: int
    amount_nano: int
    list_price_nano: int


def measure(request: Request) -> Demand:
    """The demand of a request: bound of its prompt, pictures, cache marks, output limit.

    A large request is measured beside the event loop, and its estimate with it: it must not be computed there later.
    """
    body = request.body
    generates = isinstance(body, Generate)
    demand = Demand(
        request=request,
        prompt_bound=bound_prompt(request),
        images=count_images(request),
        generates=generates,
        writes_1h=isinstance(body, Generate) and "1h" in body.cache_marks,
        output_cap=body.max_output_tokens if isinstance(body, Generate) else None,
    )
    if request.body_bytes > LARGE_BYTES:
        demand.estimated = demand.prompt_estimate
    return demand


def longest_answer(target: Target) -> int:
    """The most tokens that one answer of this target has."""
    return target.max_completion_tokens or target.context_length


def caps_all(target: Target) -> bool:
    """Whether a cap on the answer limits all that the vendor bills of it: not reasoning that stands beside, and not
    what it writes between the tools that it runs."""
    return not (target.flags.reasoning_excluded or fills_prompt(target.sold))


def bound_output(demand: Demand, target: Target, *, default_output_bound: int) -> int:
    """The most output tokens, reasoning included, that this target may produce for the request.

    A client's cap counts as it is sent: at most the model's maximum, at least what the vendor's format takes. One that
    does not limit all of the answer is no bound: then it is the longest answer.
    """
    if not demand.generates:
        return 0
    if demand.output_cap is not None:
        if not caps_all(target):
            return longest_answer(target)
        cap = min(demand.output_cap, target.max_completion_tokens)
        return max(cap, target.format.least_output)
    wanted = min(target.max_completion_tokens, default_output_bound)
    if demand.prompt_bound + wanted <= target.context_length:
        return wanted
    return min(wanted, max(1, target.context_length - demand.prompt_estimate))


def hold(
    demand: Demand, target: Target, *, default_output_bound: int = DEFAULT_OUTPUT_BOUND
) -> Hold:
    """The credit that covers the dearest way this target can answer the request.

    What it is sold of the priced extras counts at its dearest. Tools that the vendor runs write their results into the
    prompt, so with them only the context bounds it.
    On the owner's own key only the fee is held; its fallback to the platform's key is a target of its own.
    """
    prompt = demand.prompt_bound
    if demand.generates:
        # A longer prompt is refused by the vendor. A batch of embeddings may well exceed one context.
        prompt = min(prompt, target.context_length)
    sold = target.sold
    if fills_prompt(sold):
        prompt = max(prompt, target.context_length)
    output = bound_output(demand, target, default_output_bound=default_output_bound)
    list_price = amount = hold_nano(
        target.price,
        prompt_tokens=prompt,
        output_tokens=output,
        images=demand.images,
        writes_1h=demand.writes_1h,
        times=multiple_of(ceilings(target.price, target.format, sold).values()),
        searches=sold.searches,
    )
    if target.credential.byok:
        amount = fee_nano(amount, target.credential.fee_bps)
    return Hold(
        prompt_tokens=prompt,
        output_tokens=output,
        amount_nano=amount,
        list_price_nano=list_price,
    )


def hold_nano(
    price: Price,
    *,
    prompt_tokens: int,
    output_tokens: int,
    images: int,
    writes_1h: bool,
    times: Multiple = _ONCE,
    searches: int = 0,
) -> int:
    """The dearest official price of at most so many tokens, in nano-USD, rounded up.

    Every tier that the prompt can reach counts, and the prices below it too: the real prompt may be shorter.
    """
    tokens_pico = max(
        prompt_tokens * _dearest_prompt(rates, writes_1h=writes_1h)
        + output_tokens * max(rates.completion_pico, rates.reasoning_pico)
        for rates in reachable_rates(price, prompt_tokens)
    )
    # Each class of the real cost is rounded half up on its own: at most half a nano a class above the exact sum.
    rounded_up = times.nano_up(tokens_pico) + _CLASSES
    pieces = images * price.image_nano + searches * (price.web_search_nano or 0)
    return rounded_up + price.request_nano + pieces


def _dearest_prompt(rates: Rates, *, writes_1h: bool) -> int:
    """Some vendors cache without being asked, so a five-minute write always counts."""
    usual = max(rates.prompt_pico, rates.cache_read_pico, rates.cache_write_5m_pico)
    return max(usual, rates.cache_write_1h_pico) if writes_1h else usual
