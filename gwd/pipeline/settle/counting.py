"""What a generation adds to the node's counters, once, at its end."""

import logging

from gwd.core.clock import Clock
from gwd.core.counters import Counters
from gwd.pipeline.admit.identity import GenerationIdentity
from gwd.pipeline.dispatch.outcome import Outcome
from gwd.pipeline.settle.bill import Bill
from gwd.pricing.extras import unpriced
from gwd.pricing.hold import Demand

log = logging.getLogger(__name__)


def count_end(
    counters: Counters, outcome: Outcome, identity: GenerationIdentity, clock: Clock
) -> None:
    """Its waits and its cancelled call; it has just been settled."""
    if outcome.first_output_s is not None and identity.stream:
        counters.first_token.observe(outcome.first_output_s - outcome.started_s)
    shown = outcome.serving or outcome.trying
    if shown is not None:
        counters.hosted_tools_dropped += len(shown.target.sold.refused_tools)
    if outcome.finished is not None and outcome.last_output_s is not None:
        counters.settlement.observe(max(0.0, clock.monotonic_s() - outcome.last_output_s))
    elif outcome.client_left and outcome.trying is not None:
        counters.attempts[outcome.trying.target.adapter, "cancelled"] += 1


def count_bill(
    counters: Counters,
    outcome: Outcome,
    bill: Bill,
    demand: Demand,
    *,
    hold_nano: int,
    now_s: float,
) -> None:
    """What it came to, whose counts were billed, and whether the hold was a bound."""
    usage, demand = bill.usage, outcome.demand or demand
    counters.tokens["input"] += usage.input_total
    counters.tokens["output"] += usage.output_total
    pace = counters.last_minute.at(now_s)
    pace.requests += 1
    pace.errors += bill.status in ("failed", "incomplete")
    pace.tokens_prompt += usage.input_total
    pace.tokens_completion += usage.output_total
    pace.charged_nano += bill.cost.total_nano if bill.charged else 0
    if usage.refused:
        counters.usage_rejected += 1
    elif usage.estimated:
        counters.usage_estimated += 1
    if usage.above_bound and outcome.serving is not None:
        provider = outcome.serving.target.provider
        counters.prompts_above_bound[provider] += 1
        seen = counters.prompts_above_bound[provider]
        if seen & (seen - 1) == 0:  # the first, and each time the number has doubled
            log.warning(
                "%s counted %d prompt tokens where the request has at most %d; billed as reported (%d such so far)",
                provider, usage.input_total, demand.prompt_bound, seen,
            )  # fmt: skip
    if outcome.serving is not None:
        target = outcome.serving.target
        counters.unpriced_extras += unpriced(
            outcome.given, target.price, target.format, target.sold
        )
    if bill.cost.total_nano > hold_nano:
        counters.estimates_exceeded += 1
