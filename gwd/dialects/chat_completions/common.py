"""Fields that chat completions and legacy completions read the same way: sampling, reasoning, caps, tags."""

from collections.abc import Mapping
from typing import Any, Final

from gwd.core.errors import InvalidValue, UnsupportedParameter
from gwd.core.request import Extras, Reasoning, Sampling
from gwd.dialects.chat_completions.wire import CommonWire
from gwd.dialects.sizes import checked_stops

# Fields that other routers define for themselves: no vendor knows them, so they are never sent on.
ROUTER_FIELDS: Final = frozenset(
    ("transforms", "plugins", "route", "preset", "debug", "trace", "fallbacks", "image_config")
)
SAMPLING_WORDS: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "seed",
)


def check_single_choice(wire: CommonWire) -> None:
    """Raises UnsupportedParameter for `n` above 1: billing and failover know one answer."""
    if wire.n is not None and wire.n != 1:
        raise UnsupportedParameter(
            "`n` must be 1: send one request for each answer you want", param="n"
        )


def sampling_of(wire: CommonWire) -> Sampling:
    stop = (wire.stop,) if isinstance(wire.stop, str) else tuple(wire.stop or ())
    checked_stops(stop, "stop")
    return Sampling(
        temperature=wire.temperature,
        top_p=wire.top_p,
        top_k=wire.top_k,
        min_p=wire.min_p,
        frequency_penalty=wire.frequency_penalty,
        presence_penalty=wire.presence_penalty,
        repetition_penalty=wire.repetition_penalty,
        seed=wire.seed,
        stop=stop,
    )


def reasoning_of(wire: CommonWire) -> Reasoning | None:
    """`reasoning` and `reasoning_effort` as one. Raises InvalidValue where the two disagree."""
    given = wire.reasoning
    effort = given.effort if given else None
    if wire.reasoning_effort is not None:
        if effort is not None and effort != wire.reasoning_effort:
            raise InvalidValue(
                "`reasoning_effort` and `reasoning.effort` differ: send one of them",
                param="reasoning_effort",
            )
        effort = wire.reasoning_effort
    exclude = wire.include_reasoning is False or bool(given and given.exclude)
    reasoning = Reasoning(
        enabled=given.enabled if given else None,
        effort=effort,
        max_tokens=given.max_tokens if given else None,
        exclude=exclude,
    )
    return None if reasoning == Reasoning() else reasoning


def output_cap(wire: CommonWire) -> int | None:
    return wire.max_completion_tokens or wire.max_tokens


def sent_words(wire: CommonWire, extras: Mapping[str, Any] | None) -> set[str]:
    """The words of `supported_parameters` that these fields use.

    `exclude` alone asks nothing of a model. A cap is left out: it is sent to every model under one name or the other.
    """
    words = {name for name in SAMPLING_WORDS if getattr(wire, name) is not None}
    if extras and extras.get("logit_bias") is not None:
        words.add("logit_bias")
    if wire.stop:
        words.add("stop")
    reasoning = wire.reasoning
    if wire.reasoning_effort is not None or (
        reasoning is not None
        and (reasoning.enabled, reasoning.effort, reasoning.max_tokens) != (None, None, None)
    ):
        words.add("reasoning")
    return words


def forwardable(extras: Extras | None) -> Extras | None:
    """Unknown top-level fields without those that only a router would understand, and without nulls."""
    if not extras:
        return None
    kept = {
        name: value
        for name, value in extras.items()
        if name not in ROUTER_FIELDS and value is not None
    }
    return kept or None
