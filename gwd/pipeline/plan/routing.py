"""The plan of a request: which targets, in which order, or why none. A value computed from values; no I/O.

In this order: resolve names (resolution), filter endpoints (eligibility), find their credentials (credential_choice),
order them, put the target first that served the conversation last (stickiness).
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from gwd.catalog.snapshot import Endpoint
from gwd.catalog.targets import target_of
from gwd.core.errors import GatewayError
from gwd.core.request import Request
from gwd.core.target import Credential, Target
from gwd.pipeline.plan.credential_choice import KeyChoice, Turn, choices_of, own_first
from gwd.pipeline.plan.eligibility import (
    Exclusions,
    eligible_endpoints,
    needs_of,
    none_left,
)
from gwd.pipeline.plan.plan_input import PlanInput, Sort
from gwd.pipeline.plan.policy import Choice, is_named, matches
from gwd.pipeline.plan.resolution import Candidate, Rejected, resolve
from gwd.pipeline.plan.trace import Reason, Trace
from gwd.pricing import hold as holds
from gwd.pricing.extras import sell
from gwd.pricing.hold import Demand

MAX_TARGETS: Final = 24
_NOBODY: Final = Credential(id="", secret="")


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A target in the order of the plan, with what its receipt says of the routing.

    `eligible` counts the endpoints of its model that could serve. `list_price_nano` bounds the official price, which is
    more than the hold where an own key serves. `sticky` says that it comes first because it served the conversation
    last.
    """

    target: Target
    hold_nano: int
    list_price_nano: int
    rank: int
    forwarded_from: str | None
    strategy: str
    sort: Sort | None
    eligible: int
    sticky: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Targets in the order they will be tried; never empty.

    `opens_s` is when the first of those that cannot be tried now can be (on the monotonic clock), None without any.
    `passed_over` are the names of the request's models that lead to none now.
    """

    targets: tuple[Planned, ...]
    demand: Demand
    opens_s: float | None = None
    passed_over: tuple[str, ...] = ()
    catalog_revision: int
    organization_revision: int


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no plan; `stage` places it among the checks: `model` before money, `endpoints` after it.

    `closed` is the target that would have served if a key of its provider were usable now.
    """

    error: GatewayError
    stage: Literal["model", "endpoints"]
    closed: Planned | None = None
    passed_over: tuple[str, ...] = ()
    catalog_revision: int
    organization_revision: int


def plan(
    request: Request, plan_input: PlanInput, demand: Demand, trace: Trace | None = None
) -> Plan | Refusal:
    """The plan of a request, or the refusal; both carry the revisions they were computed from.

    `trace` is told of every endpoint that is left out.
    """
    revisions: dict[str, Any] = {
        "catalog_revision": plan_input.catalog.revision,
        "organization_revision": plan_input.organization.revision,
    }
    try:
        candidates, passed_over = resolve(request, plan_input, trace)
    except Rejected as rejected:
        return Refusal(error=rejected.error, stage="model", **revisions)
    needs = needs_of(request)
    excluded = Exclusions(trace)
    pools = [
        eligible_endpoints(candidate, request, demand, needs, plan_input, excluded)
        for candidate in candidates
    ]
    if request.preferences.sort and request.preferences.partition == "none":
        found = _one_pool(candidates, pools, request, demand, plan_input, excluded)
    else:
        found = [
            each
            for candidate, endpoints in zip(candidates, pools, strict=True)
            for each in _targets(candidate, endpoints, request, demand, plan_input, excluded)
        ]
    if not found:
        return Refusal(
            error=none_left(request, demand, excluded),
            stage="endpoints",
            closed=_closed(excluded, request, demand, plan_input),
            passed_over=passed_over,
            **revisions,
        )
    wait_s = excluded.retry_after_s
    targets = _resting_last(found)
    if trace is not None and len(targets) < len(found):
        _leave_out_others(trace, found, targets, "too_many")
    return Plan(
        targets=targets,
        demand=demand,
        opens_s=None if wait_s is None else plan_input.now_s + wait_s,
        passed_over=passed_over,
        **revisions,
    )


def _leave_out_others(
    trace: Trace, found: "list[_Found]", kept: Sequence[Planned], reason: Reason
) -> None:
    there = {planned.target.endpoint_id for planned in kept}
    for each in found:
        if each.planned.target.endpoint_id not in there:
            trace.leave_out(each.planned.target.endpoint_id, reason)


class _Found(msgspec.Struct, frozen=True):
    """A target, and until when it rests; None where it does not rest.

    An own key has a place among the organization's own: that of its endpoint in the request's `order`, then its own.
    """

    planned: Planned
    turn: Turn
    own_place: tuple[int, int]
    rests_until_s: float | None


def _resting_last(found: list[_Found]) -> tuple[Planned, ...]:
    """Targets that rest come after all others, the soonest end of a rest first; none is left out."""
    awake = [each.planned for each in found if each.rests_until_s is None]
    if len(awake) == len(found):
        return tuple(awake[:MAX_TARGETS])
    resting = [(each.rests_until_s, each.planned) for each in found if each.rests_until_s]
    resting.sort(key=lambda pair: pair[0])
    # Places are kept for resting targets: they are tried when all the others fail.
    awake = awake[: max(MAX_TARGETS - len(resting), MAX_TARGETS // 2)]
    return (*awake, *(planned for _, planned in resting))[:MAX_TARGETS]


def _targets(
    candidate: Candidate,
    endpoints: list[Endpoint],
    request: Request,
    demand: Demand,
    plan_input: PlanInput,
    excluded: Exclusions,
) -> list[_Found]:
    """The targets of one model in order, rests aside."""
    order = request.preferences.order
    if endpoints and order and not request.preferences.allow_fallbacks:
        named = [e for e in endpoints if is_named(e, order)]
        excluded.leave_out_others(endpoints, named, "no_fallbacks")
        endpoints = named
        if not endpoints:
            excluded.choose(Choice("allowed_providers", "request"))
    choices = {e.id: choices_of(e, candidate.model, plan_input, excluded) for e in endpoints}
    usable = [e for e in endpoints if choices[e.id]]
    if endpoints and not usable and excluded.closed is None:
        excluded.closed = (candidate, endpoints[0])
    sort = _sort_of(candidate, request, plan_input)
    found = [
        _found(candidate, e, choice, len(usable), order, sort, demand, plan_input)
        for e in _ordered(usable, order, sort, plan_input)
        for choice in choices[e.id]
    ]
    if plan_input.own_keys.by_provider:
        found = own_first(found)
    # What the request says of the order itself comes before what its prompt costs.
    if len(found) > 1 and not (order or request.preferences.sort or candidate.sort):
        found = _sticky_first(candidate.model.id, found, plan_input)
    if not request.preferences.allow_fallbacks and not order:
        awake = [each for each in found if each.rests_until_s is None]
        first = awake[:1] or sorted(found, key=lambda each: each.rests_until_s or 0.0)[:1]
        if excluded.trace is not None:
            kept = [each.planned for each in first]
            _leave_out_others(excluded.trace, found, kept, "no_fallbacks")
        return first
    return found


def _sticky_first(model: str, found: list[_Found], plan_input: PlanInput) -> list[_Found]:
    """The target first that served the conversation last, else another of its endpoint, if it is awake and well.

    It comes first of its kind only: own vendor keys and the platform's keep their places.
    """
    seat = None
    if plan_input.conversation is not None:
        seat = plan_input.stickiness.seat(plan_input.conversation, model, plan_input.now_s)
    if seat is None or plan_input.health.has_outage(seat[0], plan_input.now_s):
        return found
    targets = [each.planned.target for each in found]
    there = [
        at
        for at, target in enumerate(targets)
        if target.endpoint_id == seat[0] and found[at].rests_until_s is None
    ]
    if not there:
        return found
    at = next((at for at in there if targets[at].credential.id == seat[1]), there[0])
    first = at
    while first > 0 and found[first - 1].turn == found[at].turn:
        first -= 1
    planned = msgspec.structs.replace(found[at].planned, sticky=True)
    sticky = msgspec.structs.replace(found[at], planned=planned)
    return [*found[:first], sticky, *found[first:at], *found[at + 1 :]]


def _closed(
    excluded: Exclusions, request: Request, demand: Demand, plan_input: PlanInput
) -> Planned | None:
    if excluded.closed is None:
        return None
    candidate, endpoint = excluded.closed
    sort = _sort_of(candidate, request, plan_input)
    is_ordered = bool(request.preferences.order)
    return _planned(candidate, endpoint, _NOBODY, 0, is_ordered, sort, demand, plan_input)


def _sort_of(candidate: Candidate, request: Request, plan_input: PlanInput) -> Sort | None:
    return request.preferences.sort or candidate.sort or plan_input.sort


def _one_pool(
    candidates: list[Candidate],
    pools: list[list[Endpoint]],
    request: Request,
    demand: Demand,
    plan_input: PlanInput,
    excluded: Exclusions,
) -> list[_Found]:
    """`partition: none`: the endpoints of all models sorted together."""
    found = [
        each
        for candidate, endpoints in zip(candidates, pools, strict=True)
        for each in _targets(candidate, endpoints, request, demand, plan_input, excluded)
    ]
    there = {each.planned.target.endpoint_id for each in found}
    everywhere = [e for pool in pools for e in pool if e.id in there]
    position = {
        e.id: place
        for place, e in enumerate(
            _ordered(everywhere, request.preferences.order, request.preferences.sort, plan_input)
        )
    }
    found.sort(key=lambda each: position[each.planned.target.endpoint_id])
    return own_first(found) if plan_input.own_keys.by_provider else found


def _ordered(
    endpoints: list[Endpoint], order: Sequence[str], sort: Sort | None, plan_input: PlanInput
) -> list[Endpoint]:
    if len(endpoints) < 2:
        return endpoints
    listed: list[Endpoint] = []
    for name in order:
        listed += [e for e in endpoints if e not in listed and matches(e, name)]
    rest = [e for e in endpoints if e not in listed]
    if sort is not None:
        return listed + _sorted(rest, sort, plan_input)
    sick = [e for e in rest if plan_input.health.has_outage(e.id, plan_input.now_s)]
    healthy = [e for e in rest if e not in sick]
    return listed + _balanced(healthy, plan_input) + _sorted(sick, "price", plan_input)


def _sorted(endpoints: list[Endpoint], sort: Sort, plan_input: PlanInput) -> list[Endpoint]:
    health, now_s = plan_input.health, plan_input.now_s

    def key(endpoint: Endpoint) -> tuple[bool, float, int, float]:
        price = _mixed_price(endpoint, plan_input.now_us)
        measured: float | None = None
        if sort == "throughput":
            speed = health.median_throughput(endpoint.id, now_s)
            measured = None if speed is None else -speed
        elif sort == "latency":
            measured = health.median_ttft_s(endpoint.id, now_s)
        else:
            measured = 0.0
        return measured is None, measured or 0.0, price, -endpoint.weight

    return sorted(endpoints, key=key)


def _balanced(endpoints: list[Endpoint], plan_input: PlanInput) -> list[Endpoint]:
    """A weighted random pick (weight / price squared) first, the rest by price."""
    if len(endpoints) < 2:
        return endpoints
    weights = [e.weight / max(1, _mixed_price(e, plan_input.now_us)) ** 2 for e in endpoints]
    [first] = plan_input.rng.choices(endpoints, weights)
    return [first, *_sorted([e for e in endpoints if e is not first], "price", plan_input)]


def _mixed_price(endpoint: Endpoint, now_us: int) -> int:
    price = endpoint.price_at(now_us)
    assert price is not None
    return (3 * price.prompt_pico + price.completion_pico) // 4


def _found(
    candidate: Candidate,
    endpoint: Endpoint,
    choice: KeyChoice,
    eligible: int,
    order: Sequence[str],
    sort: Sort | None,
    demand: Demand,
    plan_input: PlanInput,
) -> _Found:
    credential, named = choice.credential, 0
    if choice.turn is not Turn.PLATFORM:
        named = next((n for n, name in enumerate(order) if matches(endpoint, name)), len(order))
    return _Found(
        _planned(candidate, endpoint, credential, eligible, bool(order), sort, demand, plan_input),
        choice.turn,
        (named, choice.sort_order),
        choice.rests_until_s,
    )


def _planned(
    candidate: Candidate,
    endpoint: Endpoint,
    credential: Credential,
    eligible: int,
    is_ordered: bool,  # noqa: FBT001 - the one fact of the request that the receipt's strategy shows
    sort: Sort | None,
    demand: Demand,
    plan_input: PlanInput,
) -> Planned:
    price = endpoint.price_at(plan_input.now_us)
    assert price is not None
    sold = sell(demand.request, endpoint.format, price)
    target = target_of(candidate.model, endpoint, credential, price, sold)
    hold = holds.hold(demand, target, default_output_bound=plan_input.default_output_bound)
    return Planned(
        target=target,
        # Of an own key without a fee nothing can be charged; anything else holds something.
        hold_nano=hold.amount_nano if credential.byok else max(1, hold.amount_nano),
        list_price_nano=hold.list_price_nano,
        rank=candidate.rank,
        forwarded_from=candidate.forwarded_from,
        strategy="ordered" if is_ordered else plan_input.organization.settings.routing_strategy,
        sort=sort,
        eligible=eligible,
    )
