"""The route receipt (`gateway_metadata`): every field, as JSON, from what the generation knows."""

from typing import Any, Final

import msgspec

from gwd.core.cost import Cost, Price
from gwd.core.extras import Applied
from gwd.core.money import factor_text, per_million_json, usd_json
from gwd.pipeline.dispatch.outcome import FailedAttempt, Outcome
from gwd.pipeline.plan.routing import Planned
from gwd.pricing.cost import rates_for

_LIST_PRICE: Final = Applied()


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds; None where it did not come to that. A receipt, whose times are all numbers, shows those as 0."""

    routing: int
    fallback: int
    ttft: int | None
    generation: int | None
    total: int


def timing_of(outcome: Outcome, now_s: float) -> Timing:
    """The durations of a generation that ends now."""
    first_call_s = outcome.first_call_s if outcome.first_call_s is not None else now_s
    first, last = outcome.first_output_s, outcome.last_output_s
    return Timing(
        routing=_ms(first_call_s - outcome.started_s),
        fallback=_ms(sum(failure.duration_s for failure in outcome.failures)),
        ttft=None if first is None else _ms(first - outcome.started_s),
        generation=None if first is None or last is None else _ms(last - first),
        total=_ms(now_s - outcome.started_s),
    )


def receipt_json(
    *,
    generation_id: str,
    requested_model: str,
    primary: Planned,
    outcome: Outcome,
    cost: Cost,
    prompt_tokens: int,
    timing: Timing,
    applied: Applied = _LIST_PRICE,
) -> msgspec.Raw:
    """The receipt as one JSON fragment. `primary`, the plan's first target, stands in when every attempt failed.

    `prompt_tokens` are all input tokens that were billed: they decide which tier's rates are shown. The rates are those
    of the list; `pricing.modifiers` are the factors that were applied to them, there only where some were.
    """
    served = outcome.serving
    shown = served or primary
    price = shown.target.price
    body: dict[str, Any] = {
        "generation_id": generation_id,
        "requested_model": requested_model,
        "model": shown.target.model,
        "vendor": shown.target.vendor,
        "routing": {
            "strategy": shown.strategy,
            "sort": shown.sort,
            "eligible_endpoints": shown.eligible,
            "attempt": outcome.attempts if served is not None else None,
            "attempts": outcome.attempts,
            "fallback_model": served is not None and served.rank > 0,
            "fallbacks": [
                *(_passed_over(name) for name in outcome.passed_over),
                *(_fallback(failure) for failure in outcome.failures),
            ],
        },
        "timing_ms": msgspec.structs.replace(
            timing, ttft=timing.ttft or 0, generation=timing.generation or 0
        ),
        "cost": _cost(cost, price),
        "pricing": _pricing(price, prompt_tokens, applied),
    }
    if shown.forwarded_from is not None or shown.sticky:
        body["pipeline"] = _pipeline(shown)
    return msgspec.Raw(msgspec.json.encode(body))


def modifiers_record(applied: Applied) -> dict[str, Any]:
    """The factors of a bill by field: the value that was given, and what it multiplies the price of tokens by."""
    return {
        name: {"value": factor.value, "factor": factor_text(factor.millionths)}
        for name, factor in applied.factors.items()
    }


def _pipeline(shown: Planned) -> dict[str, Any]:
    done: dict[str, Any] = {}
    if shown.forwarded_from is not None:
        done["forwarded_from"] = shown.forwarded_from
    if shown.sticky:
        done["sticky"] = True
    return done


def _fallback(failure: FailedAttempt) -> dict[str, Any]:
    target = failure.planned.target
    return {
        "vendor": target.vendor,
        "provider": target.tag,
        **({"byok": True} if target.credential.byok else {}),
        "outcome": "retryable_error" if failure.fault.retryable else "fatal_error",
        "reason": failure.fault.reason,
        "duration_ms": _ms(failure.duration_s),
    }


def _passed_over(name: str) -> dict[str, Any]:
    """A name of the request's models that the catalog does not know."""
    return {
        "vendor": name[:100].lstrip("~").partition("/")[0],
        "provider": None,
        "model": name[:100],
        "outcome": "fatal_error",
        "reason": "model_access_denied",
        "duration_ms": 0,
    }


def _cost(cost: Cost, price: Price) -> dict[str, Any]:
    searches = {"web_search": usd_json(cost.web_search_nano)}
    return {
        "currency": "USD",
        "prompt": usd_json(cost.prompt_nano),
        "cache_read": usd_json(cost.cache_read_nano),
        "cache_write": usd_json(cost.cache_write_nano),
        "completion": usd_json(cost.completion_nano),
        "reasoning": usd_json(cost.reasoning_nano),
        "request_fee": usd_json(cost.request_fee_nano),
        **(searches if price.web_search_nano is not None else {}),
        "platform_fee": usd_json(cost.platform_fee_nano),
        "total": usd_json(cost.total_nano),
        "insured": cost.insured,
        "byok": cost.byok,
    }


def _pricing(price: Price, prompt_tokens: int, applied: Applied) -> dict[str, Any]:
    rates = rates_for(price, prompt_tokens)
    extras: dict[str, Any] = {}
    if price.web_search_nano is not None:
        extras |= {"web_search": usd_json(price.web_search_nano), "searches": applied.searches}
    if applied.factors:
        extras["modifiers"] = modifiers_record(applied)
    return {
        "prompt_per_million": per_million_json(rates.prompt_pico),
        "completion_per_million": per_million_json(rates.completion_pico),
        "cache_read_per_million": per_million_json(rates.cache_read_pico),
        "cache_write_per_million": per_million_json(rates.cache_write_5m_pico),
        "reasoning_per_million": per_million_json(rates.reasoning_pico)
        if price.reasoning_is_separate
        else None,
        "request_fee": usd_json(price.request_nano),
        **extras,
    }


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1_000))
