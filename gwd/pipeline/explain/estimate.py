"""What a request would cost, from and to: by the functions that bill it, at the endpoints of its plan."""

from collections.abc import Sequence

import msgspec

from gwd.core.cost import Cost, Price
from gwd.core.errors import GatewayError
from gwd.core.extras import Applied, Factor
from gwd.core.money import usd_json
from gwd.core.target import Target
from gwd.core.usage import Usage
from gwd.pipeline.explain.explanation import prompt_of, refusals_of
from gwd.pipeline.explain.look import Look
from gwd.pipeline.explain.record import CostRange, EstimateRecord, TargetEstimate
from gwd.pipeline.plan.routing import Plan, Planned
from gwd.pricing import cost as costs
from gwd.pricing import extras
from gwd.pricing import hold as holds
from gwd.pricing.hold import Demand


def estimate_of(look: Look, before: Sequence[GatewayError]) -> EstimateRecord:
    """The estimate. `before` are the refusals of what comes before the plan."""
    targets = look.planned.targets if isinstance(look.planned, Plan) else ()
    default_output_bound = look.plan_input.default_output_bound

    def of(planned: Planned) -> TargetEstimate:
        return _of_target(planned, look.demand, default_output_bound)

    return EstimateRecord(
        dialect=look.request.dialect,
        prompt=prompt_of(look),
        first=of(targets[0]) if targets else None,
        dearest=of(max(targets, key=lambda each: each.hold_nano)) if targets else None,
        without_price=_without_price(look),
        refusals=refusals_of(look, before),
    )


def _without_price(look: Look) -> list[str]:
    now_us = look.plan_input.now_us
    return [
        candidate.model.id
        for candidate in look.trace.candidates
        if all(endpoint.price_at(now_us) is None for endpoint in candidate.model.live_endpoints)
    ]


def _of_target(planned: Planned, demand: Demand, default_output_bound: int) -> TargetEstimate:
    target = planned.target
    hold = holds.hold(demand, target, default_output_bound=default_output_bound)
    shortest = 1 if demand.generates else 0
    sold = target.sold
    as_sent = extras.applied(None, target.price, target.format, sold)
    ceilings = extras.ceilings(target.price, target.format, sold)
    dearest = Applied(
        factors={
            name: Factor(value=name, millionths=millionths) for name, millionths in ceilings.items()
        },
        searches=sold.searches,
    )
    least = Usage(input=demand.prompt_estimate, output=shortest, images=demand.images)
    most = _dearest_usage(demand, target.price, hold.prompt_tokens, hold.output_tokens)
    return TargetEstimate(
        model=target.model,
        tag=target.tag,
        provider=target.provider,
        byok=target.credential.byok,
        output_from=shortest,
        output_to=hold.output_tokens,
        least=_range(_cost(least, target, Applied(factors=as_sent.factors))),
        most=_range(_cost(most, target, dearest)),
        hold=usd_json(planned.hold_nano),
    )


def _dearest_usage(demand: Demand, price: Price, prompt_tokens: int, output_tokens: int) -> Usage:
    """The longest prompt, all of it in the class that costs most, and the longest answer."""
    rates = costs.rates_for(price, prompt_tokens)
    classes = {
        "input": rates.prompt_pico,
        "cache_read": rates.cache_read_pico,
        "cache_write_5m": rates.cache_write_5m_pico,
    }
    if demand.writes_1h:
        classes["cache_write_1h"] = rates.cache_write_1h_pico
    prompt_class = max(classes, key=lambda name: classes[name])
    reasons = rates.reasoning_pico > rates.completion_pico
    answer = Usage(
        output=0 if reasons else output_tokens,
        reasoning=output_tokens if reasons else 0,
        images=demand.images,
    )
    return msgspec.structs.replace(answer, **{prompt_class: prompt_tokens})


def _cost(usage: Usage, target: Target, applied: Applied) -> Cost:
    credential = target.credential
    return costs.cost(
        usage,
        target.price,
        byok_fee_bps=credential.fee_bps if credential.byok else None,
        insured=False,
        applied=applied,
    )


def _range(cost: Cost) -> CostRange:
    return CostRange(
        prompt=usd_json(cost.prompt_nano),
        cache_read=usd_json(cost.cache_read_nano),
        cache_write=usd_json(cost.cache_write_nano),
        completion=usd_json(cost.completion_nano + cost.reasoning_nano),
        request_fee=usd_json(cost.request_fee_nano),
        web_search=usd_json(cost.web_search_nano),
        platform_fee=usd_json(cost.platform_fee_nano),
        total=usd_json(cost.total_nano),
    )
