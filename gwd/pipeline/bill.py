"""What a generation is charged, and how it is recorded: pure arithmetic over its outcome (spec 3, 7, 8)."""

from typing import Final

import msgspec

from gwd.activity.row import Status
from gwd.core.cost import Cost
from gwd.core.usage import Usage
from gwd.pipeline.attempt import Outcome
from gwd.pricing.cost import cost
from gwd.pricing.hold import Demand
from gwd.pricing.tokens import estimate_text
from gwd.pricing.usage_check import check_usage, usage_ceiling

_FREE: Final = Cost()
_NOTHING: Final = Usage()


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a generation: its status, what was used, what it costs. `charged` False releases the hold."""

    status: Status
    finish_reason: str | None
    usage: Usage
    cost: Cost
    charged: bool


def bill_of(outcome: Outcome, demand: Demand, *, inputs: int = 1) -> Bill:
    """The bill. `inputs` is how many texts a batch of embeddings holds.

    Finished answers are billed by the vendor's counts where they can be believed; a stream that broke off or whose
    client left is billed for what was received; a failure before any output is free.
    """
    served = outcome.serving
    if served is None:
        status: Status = "cancelled" if outcome.client_left else "failed"
        return Bill(status=status, finish_reason=None, usage=_NOTHING, cost=_FREE, charged=False)
    finished = outcome.finished
    if finished is None and not outcome.reached_client:
        # A whole answer that never became whole gave the client nothing.
        status = "cancelled" if outcome.client_left else "failed"
        return Bill(status=status, finish_reason=None, usage=_NOTHING, cost=_FREE, charged=False)
    usage = _usage(outcome, demand, inputs)
    insured = (
        finished is not None
        and demand.generates
        and usage.output_total == 0
        and finished.reason in (None, "error")
    )
    credential = served.target.credential
    charged = cost(
        usage,
        served.target.price,
        byok_fee_bps=credential.fee_bps if credential.byok else None,
        insured=insured,
    )
    if finished is None:
        status = "cancelled" if outcome.client_left else "incomplete"
        return Bill(status=status, finish_reason="error", usage=usage, cost=charged, charged=True)
    status = "incomplete" if finished.reason == "error" and not insured else "succeeded"
    return Bill(
        status=status, finish_reason=finished.reason, usage=usage, cost=charged, charged=True
    )


def received_usage(
    reported: Usage | None, *, prompt_estimate: int, output_tokens: int, reasoning_tokens: int
) -> Usage:
    """The usage of a broken stream: the vendor's counts where it gave some, else the estimate of what was delivered.

    A vendor's early output count is a placeholder, so the delivered text decides where it says more.
    """
    if reported is None:
        return Usage(
            input=prompt_estimate,
            output=output_tokens,
            reasoning=reasoning_tokens,
            estimated=True,
        )
    if reported.output_total >= output_tokens + reasoning_tokens:
        return reported
    return msgspec.structs.replace(
        reported, output=output_tokens, reasoning=reasoning_tokens, estimated=True
    )


def _usage(outcome: Outcome, demand: Demand, inputs: int) -> Usage:
    assert outcome.serving is not None
    target = outcome.serving.target
    finished = outcome.finished
    ceiling = usage_ceiling(
        context_length=target.context_length,
        max_completion_tokens=target.max_completion_tokens,
        inputs=inputs,
    )
    if finished is None:
        received = received_usage(
            outcome.reported,
            prompt_estimate=0 if outcome.reported else demand.prompt_estimate,
            output_tokens=estimate_text("".join(outcome.texts)),
            reasoning_tokens=estimate_text("".join(outcome.reasonings)),
        )
        usage = check_usage(received, _estimate(outcome, demand), ceiling=ceiling).usage
    elif finished.usage is None or target.flags.usage_unreliable or finished.usage.total > ceiling:
        usage = check_usage(
            finished.usage,
            _estimate(outcome, demand),
            ceiling=ceiling,
            unreliable=target.flags.usage_unreliable,
        ).usage
    else:
        usage = finished.usage
    if demand.images and usage.images != demand.images:
        usage = msgspec.structs.replace(usage, images=demand.images)
    return usage


def _estimate(outcome: Outcome, demand: Demand) -> Usage:
    return Usage(
        input=demand.prompt_estimate,
        output=estimate_text("".join(outcome.texts)),
        reasoning=estimate_text("".join(outcome.reasonings)),
        images=demand.images,
        estimated=True,
    )
