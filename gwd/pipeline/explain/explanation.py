"""From a look at a request to its explanation. Whoever is no operator learns of no credential."""

from collections.abc import Sequence
from math import isinf
from typing import Final

import msgspec

from gwd import budgets
from gwd.catalog.prices import pricing_record
from gwd.catalog.snapshot import Endpoint
from gwd.core.clock import US_PER_S, iso, iso_or_none
from gwd.core.cost import Price
from gwd.core.errors import GatewayError, Unauthenticated
from gwd.core.money import usd_json, usd_or_none
from gwd.health.rests import Rest
from gwd.pipeline.admit.verdict import Payer
from gwd.pipeline.dispatch.dispatch import MAX_ATTEMPTS, Preview
from gwd.pipeline.explain.look import Look
from gwd.pipeline.explain.record import (
    CandidateRecord,
    Explanation,
    HoldRecord,
    LeftOutEndpoint,
    PlannedRest,
    PlannedTarget,
    PromptTokens,
    RefusalRecord,
    Standing,
    UnusableCredential,
    refusal_record,
)
from gwd.pipeline.plan.plan_input import PlanInput
from gwd.pipeline.plan.routing import Plan, Planned
from gwd.pipeline.plan.trace import LeftOut, Reason, UnusableKey
from gwd.pricing.cost import rates_for

_NO_CREDENTIAL: Final = "no usable credential"
_UNPAID: Final = "its hold is more than the balance, or a strict key's limit, has room for"
_ENOUGH: Final = f"a request is given up after {MAX_ATTEMPTS} attempts"
_NOTHING_BUILT: Final = Preview()
_WORDS: Final[dict[Reason, str]] = {
    "disabled": "it or its provider is switched off, or it is draining",
    "price": "it has no complete price in force",
    "allowed_providers": "`provider.only`, or what the organization allows, does not name it",
    "ignored_providers": "`provider.ignore`, or what the organization ignores, names it",
    "vendor_file": "a `file_id` names a file that another vendor keeps",
    "modality": "it does not take {lacks}, and the last message holds some",
    "structured_outputs": "it does not take a JSON schema for the answer",
    "unsupported_tool": "it runs none of the tools that the request names",
    "require_parameters": "`provider.require_parameters` is set, and it does not take {lacks}",
    "context_length": "prompt and answer do not fit into its context of {context} tokens",
    "earlier_media": "others take the pictures or files of earlier turns",
    "unsupported_parameters": "others take `{lacks}`",
    "no_credential": _NO_CREDENTIAL,
    "closed": "it rests after {rest}",
    "no_fallbacks": "`provider.allow_fallbacks` is false, and another comes first",
    "too_many": "more endpoints come before it than one request has places for",
}


def explanation_of(
    look: Look, payer: Payer, *, before: Sequence[GatewayError], sees_credentials: bool
) -> Explanation:
    """The explanation. `before` are the refusals of what comes before the plan: the rate, the node."""
    planned = look.planned
    targets = _targets(look, sees_credentials=sees_credentials)
    refusals = refusals_of(look, before)
    tried = next((each for each in targets if each.skipped is None), None)
    holds = [each.hold_nano for each in planned.targets] if isinstance(planned, Plan) else []
    admitted = look.verdict.admitted
    return Explanation(
        dialect=look.request.dialect,
        key_id=payer.key_id,
        workspace_id=payer.workspace_id,
        serves=tried.tag if tried is not None and not refusals else None,
        is_drawn=isinstance(planned, Plan) and _is_drawn(planned.targets[0]),
        models=_models(look),
        targets=targets,
        left_out=[
            _left_out(each, look, sees_credentials=sees_credentials) for each in look.trace.left_out
        ],
        credentials=[_unusable(each, look) for each in look.trace.unusable_keys]
        if sees_credentials
        else None,
        prompt=prompt_of(look),
        output_cap=look.demand.output_cap,
        dropped_tools=list(look.request.dropped_tools),
        hold=HoldRecord(
            amount=usd_or_none(None if admitted is None else admitted.hold_nano),
            needed=usd_or_none(min(holds, default=None)),
            available=usd_json(look.verdict.free_nano),
        ),
        refusals=refusals,
        budgets=[budgets.key_record(status) for status in look.verdict.budgets],
    )


def refusals_of(look: Look, before: Sequence[GatewayError]) -> list[RefusalRecord]:
    """All refusals in the order of the line: the key, then `before`, then what admission says."""
    found = look.verdict.refusals
    of_key = [each for each in found if isinstance(each, Unauthenticated)]
    others = [each for each in found if not isinstance(each, Unauthenticated)]
    return [refusal_record(each) for each in (*of_key, *before, *others, *_unbuildable(look))]


def prompt_of(look: Look) -> PromptTokens:
    """How long the prompt is."""
    demand = look.demand
    return PromptTokens(
        estimate=demand.prompt_estimate, bound=demand.prompt_bound, images=demand.images
    )


def _unbuildable(look: Look) -> list[GatewayError]:
    """The last refusal of its kind, where no endpoint that would be tried can be sent the request at all."""
    refused = [each.refusal for each in look.previews.values()]
    return [refused[-1]] if refused and refused[-1] is not None and all(refused) else []


def _is_drawn(first: Planned) -> bool:
    return first.sort is None and first.strategy != "ordered" and first.eligible > 1


def _models(look: Look) -> list[CandidateRecord]:
    found = []
    for name in look.request.models:
        candidate, error = look.trace.resolved.get(name), look.trace.refused.get(name)
        life = None if candidate is None else candidate.model.life
        found.append(
            CandidateRecord(
                requested=name,
                model=None if candidate is None else candidate.model.id,
                forwarded_from=None if candidate is None else candidate.forwarded_from,
                sort=None if candidate is None else candidate.sort,
                lifecycle=None if life is None else life.state(look.plan_input.now_us),
                retired_at=None if life is None else iso_or_none(life.retired_at_us),
                successor=None if life is None else life.successor,
                error=None if error is None else refusal_record(error),
            )
        )
    return found


def _targets(look: Look, *, sees_credentials: bool) -> list[PlannedTarget]:
    planned = look.planned
    if not isinstance(planned, Plan):
        return []
    targets = []
    tried = 0
    for place, each in enumerate(planned.targets, start=1):
        target = _target(place, each, look, sees_credentials=sees_credentials)
        tried += target.skipped is None
        if tried > MAX_ATTEMPTS and target.skipped is None:
            target = msgspec.structs.replace(target, skipped=_ENOUGH)
        targets.append(target)
    return targets


def _target(place: int, planned: Planned, look: Look, *, sees_credentials: bool) -> PlannedTarget:
    target, plan_input = planned.target, look.plan_input
    health, now_s = plan_input.health, plan_input.now_s
    rest = health.rest(target.endpoint_id, target.credential.id, now_s)
    ttft_s = health.median_ttft_s(target.endpoint_id, now_s)
    speed = health.median_throughput(target.endpoint_id, now_s)
    preview = look.previews.get(target.endpoint_id, _NOTHING_BUILT)
    state: Standing = "healthy"
    if rest is not None:
        state = "resting"
    elif health.has_outage(target.endpoint_id, now_s):
        state = "outage"
    return PlannedTarget(
        place=place,
        rank=planned.rank,
        model=target.model,
        tag=target.tag,
        provider=target.provider,
        provider_name=target.provider_name,
        upstream_model=target.upstream_model,
        strategy=planned.strategy,
        sort=planned.sort,
        state=state,
        rest=None if rest is None else _rest(rest, plan_input),
        p50_ttft_ms=None if ttft_s is None else round(ttft_s * 1000),
        p50_tokens_per_second=None if speed is None else round(speed, 1),
        pricing=pricing_record(_in_force(target.price, look.demand.prompt_estimate)),
        hold=usd_json(planned.hold_nano),
        byok=target.credential.byok,
        credential_id=target.credential.id if sees_credentials else None,
        drops=list(preview.dropped),
        replaces_media=preview.replaces_media,
        skipped=_skipped(planned, preview, look),
    )


def _skipped(planned: Planned, preview: Preview, look: Look) -> str | None:
    if preview.refusal is not None:
        return preview.refusal.message
    admitted = look.verdict.admitted
    if admitted is not None and planned not in admitted.targets:
        return _UNPAID
    return None


def _in_force(price: Price, prompt_tokens: int) -> Price:
    """The price with the rates of the tier that a prompt of this length falls into."""
    rates = rates_for(price, prompt_tokens)
    return msgspec.structs.replace(
        price,
        prompt_pico=rates.prompt_pico,
        completion_pico=rates.completion_pico,
        cache_read_pico=rates.cache_read_pico,
        cache_write_5m_pico=rates.cache_write_5m_pico,
        cache_write_1h_pico=rates.cache_write_1h_pico,
        reasoning_pico=rates.reasoning_pico,
    )


def _rest(rest: Rest, plan_input: PlanInput) -> PlannedRest:
    return PlannedRest(reason=rest.reason, until=_until(rest, plan_input))


def _until(rest: Rest, plan_input: PlanInput) -> str | None:
    if isinf(rest.until_s):
        return None
    return iso(plan_input.now_us + int((rest.until_s - plan_input.now_s) * US_PER_S))


def _endpoint(endpoint_id: str, look: Look) -> Endpoint:
    return next(
        endpoint
        for candidate in look.trace.candidates
        for endpoint in candidate.model.endpoints
        if endpoint.id == endpoint_id
    )


def _left_out(each: LeftOut, look: Look, *, sees_credentials: bool) -> LeftOutEndpoint:
    endpoint = _endpoint(each.endpoint_id, look)
    keys = [key for key in look.trace.unusable_keys if key.endpoint_id == each.endpoint_id]
    reason: Reason = each.reason
    rests = [key.rest for key in keys if key.rest is not None]
    if reason == "closed" and all(rest.reason == "auth_invalid" for rest in rests):
        reason = "no_credential"  # what is wrong with a key is its operator's to know
    opens_at_us = endpoint.opens_at_us(look.plan_input.now_us)
    message = _WORDS[reason].format(
        lacks=", ".join(each.lacks),
        context=endpoint.context_length,
        rest=", ".join(_words_of(rest, look.plan_input) for rest in rests),
    )
    if reason == "price" and opens_at_us is not None:
        message += f"; its first price begins at {iso(opens_at_us)}"
    if reason == "no_credential" and sees_credentials:
        message += f"; gwctl provider secret {endpoint.provider} gives its provider one"
    return LeftOutEndpoint(
        model=endpoint.model,
        tag=endpoint.tag,
        provider=endpoint.provider,
        reason=reason,
        message=message,
        lacks=list(each.lacks),
    )


def _words_of(rest: Rest, plan_input: PlanInput) -> str:
    until = _until(rest, plan_input)
    return f"{rest.reason}, until {until or 'its key is changed'}"


def _unusable(unusable: UnusableKey, look: Look) -> UnusableCredential:
    endpoint = _endpoint(unusable.endpoint_id, look)
    rest, key = unusable.rest, unusable.key
    if rest is not None:
        status = "" if rest.status is None else f" (status {rest.status})"
        message = f"its vendor said{status}: {rest.message}; it rests after {_words_of(rest, look.plan_input)}"
    else:
        message = key.problem or f"its prepaid credit ended at {iso_or_none(key.expires_at_us)}"
    return UnusableCredential(
        credential_id=key.id, tag=endpoint.tag, provider=endpoint.provider, message=message
    )
