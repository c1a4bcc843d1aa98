"""The `thinkingConfig` of a call: a level for the newer models, a budget of tokens for the older ones.

A model whose catalog entry names no form gets a budget, which all of them understand.
"""

from typing import Any, Final

from gwd.core.request import Effort, Generate, Reasoning, Request
from gwd.core.target import Target
from gwd.vendors.openai_chat.effort import SHARES, effort_for

Json = dict[str, Any]

WORDS: Final = frozenset(("reasoning", "reasoning_effort", "include_reasoning"))
MIN_BUDGET: Final = 1_024
# The range of the models that take a budget ends here or a little higher; above it they refuse the call
# (ai.google.dev/gemini-api/docs/thinking, 2026-11-28: Flash and Flash-Lite 24,576, Pro 32,768).
MAX_BUDGET: Final = 24_576
SMALLEST_BUDGET: Final = 128
OFF: Final = 0
AUTOMATIC: Final = -1

_DEFAULT_EFFORTS: Final[tuple[Effort, ...]] = ("minimal", "low", "medium", "high")
_SHARES: Final = {**dict(SHARES), "max": dict(SHARES)["xhigh"]}
_LEVELS: Final[dict[Effort, str]] = {
    "none": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "XHIGH",
    "max": "HIGH",
}


def thinking_config(request: Request, target: Target) -> Json | None:
    """None leaves thinking to the model. Raises InvalidValue for `none` at a model that always thinks."""
    body = request.body
    assert isinstance(body, Generate)
    reasoning = body.reasoning
    if reasoning is None or not thinks(target):
        return None
    effort = effort_for(body, request, target, default=_DEFAULT_EFFORTS)
    if by_level(target, reasoning):
        config: Json = {} if effort is None else {"thinkingLevel": _LEVELS[effort]}
        is_on = not _is_off(reasoning)
    else:
        budget = _budget(reasoning, body, target)
        config = {"thinkingBudget": budget}
        is_on = budget not in (OFF, SMALLEST_BUDGET)
    if is_on:
        config["includeThoughts"] = not reasoning.exclude
    return config or None


def is_honoured(request: Request, config: Json | None) -> bool:
    """Whether a wish about thinking found its place; an answer too short to think for loses it."""
    assert isinstance(request.body, Generate)
    reasoning = request.body.reasoning
    if reasoning is None or _is_off(reasoning):
        return True
    return config is not None and config.get("thinkingBudget") not in (OFF, SMALLEST_BUDGET)


def thinks(target: Target) -> bool:
    """Whether the model reasons at all."""
    return target.flags.thinking_form != "none" and bool(target.supported_parameters & WORDS)


def by_level(target: Target, reasoning: Reasoning) -> bool:
    form = target.flags.thinking_form
    return form == "adaptive" or (form == "both" and reasoning.max_tokens is None)


def _is_off(reasoning: Reasoning) -> bool:
    return reasoning.enabled is False or reasoning.effort == "none" or reasoning.max_tokens == 0


def _budget(reasoning: Reasoning, body: Generate, target: Target) -> int:
    off = SMALLEST_BUDGET if target.flags.mandatory_reasoning else OFF
    if _is_off(reasoning):
        return off
    if reasoning.adaptive and reasoning.effort is None and reasoning.max_tokens is None:
        return AUTOMATIC
    ceiling = target.max_completion_tokens
    room = min(body.max_output_tokens or ceiling, ceiling) if ceiling > 0 else MAX_BUDGET
    if room <= MIN_BUDGET:
        return off
    wanted = reasoning.max_tokens or round(_SHARES[reasoning.effort or "medium"] * room)
    return min(max(wanted, MIN_BUDGET), MAX_BUDGET, room - 1)
