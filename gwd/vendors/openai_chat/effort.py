"""Reasoning wishes to the one level an OpenAI-format model takes."""

from collections.abc import Sequence
from typing import Final

from gwd.core.errors import InvalidValue
from gwd.core.request import EFFORTS, Effort, Generate, Reasoning, Request
from gwd.core.target import Target

DEFAULT_EFFORTS: Final[tuple[Effort, ...]] = ("minimal", "low", "medium", "high", "xhigh")
SHARES: Final[tuple[tuple[Effort, float], ...]] = (
    ("minimal", 0.10),
    ("low", 0.20),
    ("medium", 0.50),
    ("high", 0.80),
    ("xhigh", 0.95),
)


def effort_for(
    generate: Generate,
    request: Request,
    target: Target,
    *,
    default: Sequence[Effort] = DEFAULT_EFFORTS,
) -> Effort | None:
    """The level to send; None leaves it to the vendor. Raises InvalidValue for `none` at a model that always thinks.

    `default` are the levels of a model whose catalog entry lists none.
    """
    reasoning = generate.reasoning
    if reasoning is None:
        return None
    wanted = _wanted(reasoning, generate.max_output_tokens or target.max_completion_tokens)
    if wanted is None:
        return None
    if wanted == "none" and target.flags.mandatory_reasoning and _is_exact(request, target):
        raise InvalidValue(
            f"{target.model} always reasons: leave reasoning out, or ask for its lowest effort",
            param="reasoning.effort",
        )
    return nearest(wanted, target.flags.supported_efforts or default)


def nearest(wanted: Effort, supported: Sequence[Effort]) -> Effort:
    """The nearest supported level on the scale from none to max, ties downwards."""
    place = EFFORTS.index(wanted)
    return min(
        supported, key=lambda level: (abs(EFFORTS.index(level) - place), EFFORTS.index(level))
    )


def _wanted(reasoning: Reasoning, room: int) -> Effort | None:
    if reasoning.enabled is False or reasoning.effort == "none":
        return "none"
    if reasoning.effort is not None:
        return reasoning.effort
    if reasoning.max_tokens is not None:
        if reasoning.max_tokens == 0:
            return "none"
        share = reasoning.max_tokens / max(room, 1)
        return min(SHARES, key=lambda level: (abs(level[1] - share), level[1]))[0]
    if reasoning.enabled and not reasoning.adaptive:
        return "medium"
    return None


def _is_exact(request: Request, target: Target) -> bool:
    """Whether the client named this very model, not an alias that may move to one that always thinks."""
    return any(name.partition(":")[0] == target.model for name in request.models)
