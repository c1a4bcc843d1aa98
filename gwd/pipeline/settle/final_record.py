"""How a generation ends, as values: its bill, its record, and what the client is told of both."""

import msgspec

from gwd.activity.row import GenerationRow
from gwd.core.clock import Clock
from gwd.core.cost import Cost
from gwd.core.errors import GatewayError, InternalError
from gwd.core.events import Settled
from gwd.core.request import Embed, Request
from gwd.pipeline.admit.identity import GenerationIdentity, error_columns, identity_columns
from gwd.pipeline.dispatch.outcome import Outcome
from gwd.pipeline.plan.routing import Plan, Planned, Refusal
from gwd.pipeline.settle.bill import Bill, bill_of
from gwd.pipeline.settle.receipt import receipt_json, timing_of
from gwd.pipeline.settle.settlement import row_of
from gwd.pricing.hold import Demand


class FinalRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`settled` is the last event, with the receipt if one was asked for."""

    bill: Bill
    row: GenerationRow
    settled: Settled


def final_record_of(
    identity: GenerationIdentity,
    request: Request,
    outcome: Outcome,
    demand: Demand,
    *,
    primary: Planned,
    clock: Clock,
) -> FinalRecord:
    """The final record of the outcome as it is now. `primary` is the plan's first target, named where none served."""
    inputs = len(request.body.inputs) if isinstance(request.body, Embed) else 1
    bill = bill_of(outcome, demand, inputs=inputs)
    timing = timing_of(outcome, clock.monotonic_s())
    receipt = None
    if request.include_receipt or outcome.failures or outcome.passed_over:
        receipt = receipt_json(
            generation_id=identity.generation_id,
            requested_model=request.models[0],
            primary=primary,
            outcome=outcome,
            cost=bill.cost,
            prompt_tokens=bill.usage.input_total,
            timing=timing,
            applied=bill.applied,
        )
    row = row_of(
        identity,
        outcome,
        bill,
        primary=primary,
        timing=timing,
        receipt=receipt,
        settled_us=clock.now_us(),
    )
    shown = receipt if request.include_receipt else None
    settled = Settled(usage=bill.usage, cost=bill.cost, receipt=shown)
    return FinalRecord(bill=bill, row=row, settled=settled)


def explain(
    error: GatewayError,
    planned: Plan | Refusal,
    identity: GenerationIdentity,
    request: Request,
    outcome: Outcome,
    clock: Clock,
) -> None:
    """Add the receipt, if one was asked for, to a refusal because no target can be tried now."""
    if not (isinstance(planned, Refusal) and planned.error is error and planned.closed):
        return
    if request.include_receipt:
        receipt = receipt_json(
            generation_id=identity.generation_id,
            requested_model=request.models[0],
            primary=planned.closed,
            outcome=outcome,
            cost=Cost(),
            prompt_tokens=0,
            timing=timing_of(outcome, clock.monotonic_s()),
        )
        error.metadata = {**(error.metadata or {}), "gateway_metadata": receipt}


def show(receipt: msgspec.Raw | None, error: GatewayError | None, outcome: Outcome) -> None:
    """Put a receipt that was asked for on the error: whatever became of an attempt, it tells how it was routed.

    Mistakes of ours tell nothing.
    """
    if receipt is None or error is None:
        return
    if error.status != InternalError.status and (outcome.attempts > 0 or error.status >= 429):
        error.metadata = {**(error.metadata or {}), "gateway_metadata": receipt}


def given_up_row(
    identity: GenerationIdentity, row: GenerationRow, error: GatewayError
) -> GenerationRow:
    """The record instead of `row` if the client is told of `error` and nothing is charged."""
    return GenerationRow(
        **identity_columns(identity),
        **error_columns(error),
        model=row.model,
        vendor=row.vendor,
        status="failed",
        attempts=row.attempts,
        latency_ms=row.latency_ms,
        settled_at=row.settled_at,
    )
