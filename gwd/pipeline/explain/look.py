"""A request looked at as the line would take it, up to the moment at which something would be held or sent."""

from typing import Final

import msgspec

from gwd.core.errors import Unavailable
from gwd.core.request import Request
from gwd.keys.policy import KeyPolicy
from gwd.pipeline.admit.admission import Stale
from gwd.pipeline.admit.verdict import Payer, Verdict, judge
from gwd.pipeline.dispatch.dispatch import MAX_ATTEMPTS, Preview
from gwd.pipeline.inference import Line
from gwd.pipeline.plan.plan_input import Asker, PlanInput
from gwd.pipeline.plan.routing import Plan, Refusal, plan
from gwd.pipeline.plan.stickiness import conversation_of
from gwd.pipeline.plan.trace import Trace
from gwd.pricing.hold import Demand, measure

MAX_PREVIEWS: Final = MAX_ATTEMPTS
"""So many calls are built to see what is left out of them; more are not tried for one request either."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a request before it is served. `previews` are by endpoint."""

    request: Request
    demand: Demand
    plan_input: PlanInput
    planned: Plan | Refusal
    trace: Trace
    verdict: Verdict
    previews: dict[str, Preview]


async def look_at(
    line: Line,
    request: Request,
    payer: Payer,
    key: KeyPolicy,
    asker: Asker,
) -> Look:
    """Plan the request and ask the checks of admission. Raises Unavailable while the catalog keeps changing."""
    payer = msgspec.structs.replace(
        payer,
        user=request.sender.user_id,
        tags=tuple(dict.fromkeys(request.sender.tags + key.tags)),
    )
    demand = await line.offload.run(request.body_bytes, measure, request)
    await line.offload.run(request.body_bytes, lambda: demand.prompt_estimate)
    conversation = conversation_of(
        request,
        organization_id=payer.organization_id,
        workspace_id=payer.workspace_id,
        family_id=payer.family_id,
    )
    for _ in range(2):
        trace = Trace()
        plan_input = await line.state.plan_input(
            payer.organization_id, key, asker, lambda: conversation
        )
        planned = plan(request, plan_input, demand, trace)
        verdict = await line.store.read(
            judge,
            planned,
            payer,
            in_flight_cap=line.in_flight_cap,
            app_url=line.app_url,
            now_us=line.clock.now_us(),
            due_us=line.clock.due_us(),
        )
        if isinstance(verdict, Stale):
            line.state.forget(payer.organization_id)
            continue
        return Look(
            request=request,
            demand=demand,
            plan_input=plan_input,
            planned=planned,
            trace=trace,
            verdict=verdict,
            previews=await _previews(line, request, planned),
        )
    raise Unavailable("the catalog is changing right now; try again", retry_after_s=1)


async def _previews(line: Line, request: Request, planned: Plan | Refusal) -> dict[str, Preview]:
    """What would be sent to the first endpoints, as far as it differs from what was asked."""
    if isinstance(planned, Refusal):
        return {}
    first = {each.target.endpoint_id: each.target for each in reversed(planned.targets)}
    endpoints = list(dict.fromkeys(each.target.endpoint_id for each in planned.targets))
    return {
        endpoint_id: await line.offload.run(
            request.body_bytes, line.dispatcher.preview, request, first[endpoint_id]
        )
        for endpoint_id in endpoints[:MAX_PREVIEWS]
    }
