"""What a generation adds to the node's counters, once, at its end."""

from gwd.core.clock import Clock
from gwd.core.counters import Counters
from gwd.pipeline.attempt import Outcome
from gwd.pipeline.bill import Bill
from gwd.pipeline.ticket import Ticket
from gwd.pricing.extras import unpriced


def count_end(counters: Counters, outcome: Outcome, ticket: Ticket, clock: Clock) -> None:
    """Its waits and its cancelled call; it has just been settled."""
    if outcome.first_output_s is not None and ticket.stream:
        counters.first_token.observe(outcome.first_output_s - outcome.started_s)
    shown = outcome.serving or outcome.trying
    if shown is not None:
        counters.hosted_tools_dropped += len(shown.target.sold.refused_tools)
    if outcome.finished is not None and outcome.last_output_s is not None:
        counters.settlement.observe(max(0.0, clock.monotonic_s() - outcome.last_output_s))
    elif outcome.client_left and outcome.trying is not None:
        counters.attempts[outcome.trying.target.adapter, "cancelled"] += 1


def count_bill(counters: Counters, outcome: Outcome, bill: Bill, hold_nano: int) -> None:
    """Whose counts were billed, and whether the hold was a bound (reliability I7)."""
    if bill.usage.estimated:
        if outcome.finished is not None and outcome.finished.usage is not None:
            counters.usage_rejected += 1
        else:
            counters.usage_estimated += 1
    if outcome.serving is not None:
        target = outcome.serving.target
        counters.unpriced_extras += unpriced(
            outcome.given, target.price, target.adapter, target.sold
        )
    if bill.cost.total_nano > hold_nano:
        counters.estimates_exceeded += 1
