"""Which thinking and effort parameters a call gets, decided from the request and the endpoint's flags.

A client that speaks this vendor's format keeps its own `thinking` object wherever the model takes that kind; any
other wish is translated: effort to a budget below the token limit, a budget to the nearest effort.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gwd.core.request import EFFORTS, Effort, Generate, Reasoning, Request
from gwd.core.target import Target

MIN_BUDGET: Final = 1024
MAX_BUDGET: Final = 128_000

_SHARES: Final[dict[Effort, int]] = {  # percent of max_tokens
    "none": 0,
    "minimal": 10,
    "low": 20,
    "medium": 50,
    "high": 80,
    "xhigh": 95,
    "max": 95,
}
_VENDOR_EFFORTS: Final[tuple[Effort, ...]] = ("low", "medium", "high", "xhigh", "max")
_DEFAULT_EFFORTS: Final[tuple[Effort, ...]] = ("low", "medium", "high")
_REASONING_WORDS: Final = frozenset(("reasoning", "reasoning_effort", "include_reasoning"))


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """`config` is the `thinking` object, `effort` goes to output_config; `can_be_off` tells whether off is possible."""

    config: Mapping[str, Any] | None = None
    effort: str | None = None
    is_on: bool = False
    can_be_off: bool = True


def plan(request: Request, target: Target, max_tokens: int) -> Thinking:
    """What the client asked for, as far as the model takes it."""
    if not thinks(target):
        return Thinking()
    body = request.body
    assert isinstance(body, Generate)
    own = _own(request)
    wish = body.reasoning or Reasoning()
    effort = _effort_word(request, body, target)
    kind = own.get("type") if own else _kind_wanted(wish)
    match kind:
        case None:
            return Thinking(effort=effort, can_be_off=not target.flags.rejects_thinking_disabled)
        case "disabled":
            return off(request, target)
        case "enabled" | "adaptive":
            return _on(wish, own, target, max_tokens, effort)
        case _:
            # A kind of the client's own vendor that we do not know is its business.
            return Thinking(config=own, effort=effort, is_on=True)


def off(request: Request, target: Target) -> Thinking:
    """Thinking switched off, or as low as the model lets it be."""
    flags = target.flags
    if not thinks(target):
        return Thinking()
    effort = _effort_word(request, request.body, target)
    if flags.rejects_thinking_disabled:
        if flags.between_tools:
            return Thinking(config={"type": "between_tools"}, effort=effort, is_on=True)
        lowest = _supported(target)[0] if _takes_effort(target) else None
        return Thinking(effort=effort or lowest, is_on=True, can_be_off=False)
    if flags.rejects_disabled_above_high and effort in ("xhigh", "max"):
        effort = "high"
    return Thinking(config={"type": "disabled"}, effort=effort)


def thinks(target: Target) -> bool:
    """Whether the model reasons at all; what the catalog's flag leaves open, the parameters tell."""
    form = target.flags.thinking_form
    return form != "none" and bool(target.supported_parameters & _REASONING_WORDS)


def is_budget(config: Mapping[str, Any] | None) -> bool:
    """Whether this is the form whose tool turns must begin with a signed thinking block."""
    return config is not None and config.get("type") == "enabled"


def _own(request: Request) -> dict[str, Any] | None:
    own = request.extras.get("thinking") if request.extras else None
    is_own = request.family == "anthropic_messages" and isinstance(own, dict)
    return own if is_own else None


def _kind_wanted(wish: Reasoning) -> str | None:
    if wish.enabled is False or wish.effort == "none":
        return "disabled"
    if wish.adaptive:
        return "adaptive"
    if wish.enabled or wish.effort is not None or wish.max_tokens is not None:
        return "enabled"
    return None


def _on(
    wish: Reasoning,
    own: dict[str, Any] | None,
    target: Target,
    max_tokens: int,
    effort: str | None,
) -> Thinking:
    form = target.flags.thinking_form or "budget"
    wants_budget = wish.max_tokens is not None and not wish.adaptive
    if form == "budget" or (form == "both" and wants_budget):
        if max_tokens <= MIN_BUDGET:
            return Thinking()
        budget = {"type": "enabled", "budget_tokens": _budget(wish, max_tokens)}
        return Thinking(config=_merged(own, budget), effort=effort, is_on=True)
    if effort is None and wish.max_tokens is not None:
        effort = _nearest(_by_share(wish.max_tokens, max_tokens), _supported(target))
    adaptive = {"type": "adaptive"}
    if own is None and not wish.exclude:
        # The newer models show no reasoning unless asked to.
        adaptive["display"] = "summarized"
    can_be_off = not target.flags.rejects_thinking_disabled
    return Thinking(config=_merged(own, adaptive), effort=effort, is_on=True, can_be_off=can_be_off)


def _merged(own: dict[str, Any] | None, ours: dict[str, Any]) -> dict[str, Any]:
    """The client's own object where it is of the kind we would send; only a budget is corrected in it."""
    if own is None:
        return ours
    if own.get("type") == ours["type"]:
        return {**own, **ours}
    return {**ours, **({"display": own["display"]} if own.get("display") else {})}


def _budget(wish: Reasoning, max_tokens: int) -> int:
    """A budget within the vendor's bounds and strictly below the token limit."""
    budget = wish.max_tokens or _SHARES[wish.effort or "medium"] * max_tokens // 100
    return min(max(budget, MIN_BUDGET), MAX_BUDGET, max_tokens - 1)


def _effort_word(request: Request, body: object, target: Target) -> str | None:
    """The effort for output_config; a verbosity stands in where no effort was named."""
    if not _takes_effort(target) or not isinstance(body, Generate):
        return None
    config = (request.extras or {}).get("output_config")
    own = config.get("effort") if isinstance(config, dict) else None
    if request.family == "anthropic_messages" and isinstance(own, str) and own not in EFFORTS:
        return own
    reasoning = body.reasoning
    wish = reasoning.effort if reasoning else None
    if wish is None:
        stand_in = own if request.family == "anthropic_messages" else body.verbosity
        wish = next((effort for effort in EFFORTS if effort == stand_in), None)
    return None if wish in (None, "none") else _nearest(wish, _supported(target))


def _takes_effort(target: Target) -> bool:
    form = target.flags.thinking_form
    return form in ("adaptive", "both") or target.flags.supported_efforts is not None


def _supported(target: Target) -> tuple[Effort, ...]:
    listed = target.flags.supported_efforts or _DEFAULT_EFFORTS
    return tuple(effort for effort in _VENDOR_EFFORTS if effort in listed) or _DEFAULT_EFFORTS


def _nearest(wish: Effort, supported: tuple[Effort, ...]) -> Effort:
    """The supported level nearest to the wish, of two equally near ones the lower."""
    rank = EFFORTS.index(wish)
    return min(
        supported, key=lambda level: (abs(EFFORTS.index(level) - rank), EFFORTS.index(level))
    )


def _by_share(budget: int, max_tokens: int) -> Effort:
    share = budget * 100 // max(max_tokens, 1)
    return min(_VENDOR_EFFORTS, key=lambda level: (abs(_SHARES[level] - share), _SHARES[level]))
