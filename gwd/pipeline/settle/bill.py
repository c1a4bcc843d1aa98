"""What a generation is charged, and how it is recorded: pure arithmetic over its outcome."""

from typing import Final

import msgspec

from gwd.activity.row import Status
from gwd.core.cost import Cost
from gwd.core.extras import Applied, Given
from gwd.core.target import Target
from gwd.core.usage import Usage
from gwd.pipeline.dispatch.outcome import Outcome
from gwd.pricing.cost import cost
from gwd.pricing.extras import applied
from gwd.pricing.hold import Demand
from gwd.pricing.tokens import estimate_text
from gwd.pricing.usage_check import check_usage, cut_answer, is_plainly_right, limits_of

_FREE: Final = Cost()
_LIST_PRICE: Final = Applied()
_NOTHING: Final = Usage()


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a generation: its status, what was used, what it costs. `charged` False releases the hold."""

    status: Status
    finish_reason: str | None
    usage: Usage
    cost: Cost
    charged: bool
    applied: Applied = _LIST_PRICE


def bill_of(outcome: Outcome, demand: Demand, *, inputs: int = 1) -> Bill:
    """The bill. `inputs` is how many texts a batch of embeddings holds.

    Finished answers are billed by the vendor's counts where they can be believed; a stream that broke off or whose
    client left is billed for what was received; a failure before any output is free.
    """
    served, demand = outcome.serving, outcome.demand or demand
    if served is None:
        status: Status = "cancelled" if outcome.client_left else "failed"
        return Bill(status=status, finish_reason=None, usage=_NOTHING, cost=_FREE, charged=False)
    finished = outcome.finished
    if finished is None and not outcome.reached_client:
        # A whole answer that never became whole gave the client nothing.
        status = "cancelled" if outcome.client_left else "failed"
        return Bill(status=status, finish_reason=None, usage=_NOTHING, cost=_FREE, charged=False)
    usage = _usage(outcome, demand, inputs)
    # A stream that broke off before its first token is a failure like any other: nothing was received.
    insured = (
        demand.generates
        and usage.output_total == 0
        and (finished is None or finished.reason in (None, "error"))
    )
    credential = served.target.credential
    extras = applied_of(outcome.given, served.target)
    charged = cost(
        usage,
        served.target.price,
        byok_fee_bps=credential.fee_bps if credential.byok else None,
        insured=insured,
        applied=extras,
    )
    if finished is None:
        status = "cancelled" if outcome.client_left else "incomplete"
        reason = None if outcome.client_left else "error"
        return Bill(
            status=status,
            finish_reason=reason,
            usage=usage,
            cost=charged,
            charged=True,
            applied=extras,
        )
    status = "incomplete" if finished.reason == "error" else "succeeded"
    return Bill(
        status=status,
        finish_reason=finished.reason,
        usage=usage,
        cost=charged,
        charged=True,
        applied=extras,
    )


def applied_of(given: Given | None, target: Target) -> Applied:
    """What an answer is billed beside the list price of its tokens, by what its vendor says it gave."""
    return applied(given, target.price, target.format, target.sold)


def opening_usage(reported: Usage | None, demand: Demand, target: Target) -> Usage:
    """The prompt as it is told before the answer: by the vendor's counts if it opened with some, else estimated."""
    limits = limits_of(demand, target, output_cap=None)
    if reported is not None and not reported.input_total:  # a placeholder
        reported = None
    return check_usage(
        reported, limits, prompt=lambda: demand.prompt_estimate, answer=lambda: (0, 0)
    )


def received_usage(
    reported: Usage | None,
    demand: Demand,
    target: Target,
    *,
    output_cap: int | None,
    output_tokens: int,
    reasoning_tokens: int,
) -> Usage:
    """The usage of a broken stream: the vendor's counts where it gave some, else the estimate of what was delivered.

    A vendor's early output count is a placeholder, so the delivered text decides where it says more; an early prompt
    of nothing is one too.
    """
    limits = limits_of(demand, target, output_cap=output_cap)
    if reported is not None and reported.input_total == 0:
        reported = msgspec.structs.replace(reported, unknown=("input", *reported.unknown))
    delivered = cut_answer((output_tokens, reasoning_tokens), limits.output)
    usage = check_usage(
        reported, limits, prompt=lambda: demand.prompt_estimate, answer=lambda: delivered
    )
    if usage.output_total < sum(delivered):
        output, reasoning = delivered
        usage = msgspec.structs.replace(usage, output=output, reasoning=reasoning, estimated=True)
    return _with_images(usage, demand)


def _usage(outcome: Outcome, demand: Demand, inputs: int) -> Usage:
    assert outcome.serving is not None
    target, finished = outcome.serving.target, outcome.finished

    def delivered() -> tuple[int, int]:
        return estimate_text("".join(outcome.texts)), estimate_text("".join(outcome.reasonings))

    if finished is None:
        output_tokens, reasoning_tokens = delivered()
        return received_usage(
            outcome.reported,
            demand,
            target,
            output_cap=outcome.output_cap,
            output_tokens=output_tokens,
            reasoning_tokens=reasoning_tokens,
        )
    said, cap = finished.usage, outcome.output_cap
    if said is not None and is_plainly_right(said, demand, target, cap):
        return _with_images(said, demand)
    limits = limits_of(demand, target, output_cap=cap, inputs=inputs)
    usage = check_usage(said, limits, prompt=lambda: demand.prompt_estimate, answer=delivered)
    return _with_images(usage, demand)


def _with_images(usage: Usage, demand: Demand) -> Usage:
    if usage.images == demand.images:
        return usage
    return msgspec.structs.replace(usage, images=demand.images)
