"""The plan of a request: which targets, in which order, or why none. A value computed from values; no I/O.

In this order: resolve names (resolution), filter endpoints (eligibility), order them, choose credentials.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from gwd.catalog.snapshot import Endpoint
from gwd.catalog.targets import target_of
from gwd.core.errors import GatewayError
from gwd.core.request import Request
from gwd.core.target import Credential, Target
from gwd.credentials.service import VendorKey
from gwd.pipeline.plan.eligibility import (
    Exclusions,
    eligible_endpoints,
    is_named,
    matches,
    needs_of,
    none_left,
)
from gwd.pipeline.plan.plan_input import PlanInput, Sort
from gwd.pipeline.plan.resolution import Candidate, Rejected, resolve
from gwd.pricing import hold as holds
from gwd.pricing.extras import sell
from gwd.pricing.hold import Demand

MAX_TARGETS: Final = 24
_NOBODY: Final = Credential(id="", secret="")


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A target in the order of the plan, with what its receipt says of the routing.

    `eligible` counts the endpoints of its model that could serve.
    """

    target: Target
    hold_nano: int
    rank: int
    forwarded_from: str | None
    strategy: str
    sort: Sort | None
    eligible: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Targets in the order they will be tried; never empty.

    `opens_s` is when the first of those that cannot be tried now can be (on the monotonic clock), None without any.
    `passed_over` are the names of the request's models that nobody knows.
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


def plan(request: Request, plan_input: PlanInput, demand: Demand) -> Plan | Refusal:
    """The plan of a request, or the refusal; both carry the revisions they were computed from."""
    revisions: dict[str, Any] = {
        "catalog_revision": plan_input.catalog.revision,
        "organization_revision": plan_input.organization.revision,
    }
    try:
        candidates, passed_over = resolve(request, plan_input)
    except Rejected as rejected:
        return Refusal(error=rejected.error, stage="model", **revisions)
    needs = needs_of(request)
    excluded = Exclusions()
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
    return Plan(
        targets=_resting_last(found),
        demand=demand,
        opens_s=None if wait_s is None else plan_input.now_s + wait_s,
        passed_over=passed_over,
        **revisions,
    )


class _Found(msgspec.Struct, frozen=True):
    """A target, and until when it rests; None where it does not rest."""

    planned: Planned
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
        endpoints = [e for e in endpoints if is_named(e, order)]
        if not endpoints:
            excluded.reasons.add("allowed_providers")
    keys_of = {e.id: _usable_keys(e, plan_input, excluded) for e in endpoints}
    usable = [e for e in endpoints if keys_of[e.id]]
    if endpoints and not usable and excluded.closed is None:
        excluded.closed = (candidate, endpoints[0])
    sort = _sort_of(candidate, request, plan_input)
    found = [
        _Found(
            _planned(
                candidate, e, key.credential, len(usable), bool(order), sort, demand, plan_input
            ),
            until_s,
        )
        for e in _ordered(usable, order, sort, plan_input)
        for key, until_s in keys_of[e.id]
    ]
    if not request.preferences.allow_fallbacks and not order:
        awake = [each for each in found if each.rests_until_s is None]
        return awake[:1] or sorted(found, key=lambda each: each.rests_until_s or 0.0)[:1]
    return found


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
    default = plan_input.organization.settings.default_provider_sort
    return request.preferences.sort or candidate.sort or default


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
    return sorted(found, key=lambda each: position[each.planned.target.endpoint_id])


def _usable_keys(
    endpoint: Endpoint, plan_input: PlanInput, excluded: Exclusions
) -> list[tuple[VendorKey, float | None]]:
    """The platform's keys for an endpoint, the one whose prepaid credit ends soonest first (`expiry_first`).

    Each with the end of its rest, None where it is awake; what is closed is left out.
    """
    usable: list[tuple[VendorKey, float | None]] = []
    keys = plan_input.vendor_keys.get(endpoint.provider, ())
    readable = [key for key in keys if key.is_usable(plan_input.now_us)]
    if not readable:
        excluded.keyless.add(endpoint.provider)
    for key in readable:
        rest = plan_input.health.rest(endpoint.id, key.id, plan_input.now_s)
        if rest is not None and rest.is_closed:
            excluded.close(rest.until_s - plan_input.now_s, rest.reason)
        elif rest is not None:
            usable.append((key, rest.until_s))
        else:
            # Where a call is on trial after a rest, the others are tried first.
            on_trial = plan_input.health.is_on_trial(endpoint.id, key.id)
            usable.append((key, plan_input.now_s if on_trial else None))
    if not usable:
        excluded.unavailable = True
    if len(usable) > 1:
        usable.sort(
            key=lambda pair: (
                pair[0].expires_at_us is None,
                pair[0].expires_at_us or 0,
                pair[0].sort_order,
            )
        )
    return usable


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
        hold_nano=max(1, hold.amount_nano),
        rank=candidate.rank,
        forwarded_from=candidate.forwarded_from,
        strategy="ordered" if is_ordered else plan_input.organization.settings.routing_strategy,
        sort=sort,
        eligible=eligible,
    )
