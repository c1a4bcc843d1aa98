"""The token counts of one call, and every way to report them wrongly."""

from collections.abc import Callable
from typing import assert_never

import msgspec

from gwd.demo.behaviour import Behaviour, UsageKind
from gwd.demo.wire import Json


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """`prompt` includes what was read from and written to the cache, `completion` includes reasoning."""

    prompt: int
    completion: int
    reasoning: int = 0
    cached: int = 0
    write_5m: int = 0
    write_1h: int = 0

    @property
    def uncached(self) -> int:
        """What the Messages format calls input tokens."""
        return self.prompt - self.cached - self.write_5m - self.write_1h


def overridden(counts: Counts, behaviour: Behaviour) -> Counts:
    """The counts with the numbers a behaviour names in place of the counted ones."""
    named = {
        "prompt": behaviour.prompt_tokens,
        "completion": behaviour.completion_tokens,
        "cached": behaviour.cached_tokens,
        "write_5m": behaviour.cache_write_tokens,
        "write_1h": behaviour.cache_write_1h_tokens,
        "reasoning": behaviour.reasoning_tokens,
    }
    chosen = {name: value for name, value in named.items() if value is not None}
    return msgspec.structs.replace(counts, **chosen) if chosen else counts


def reported(usage: Json, behaviour: Behaviour) -> Json | None:
    """The usage object as it goes out; None means there is none."""
    if behaviour.usage_object is not None:
        return dict(behaviour.usage_object)
    kind: UsageKind = behaviour.usage
    match kind:
        case "honest" | "every_event" | "twice":
            return usage
        case "missing" | "null":
            return None
        case "cached_over_prompt":
            return _raised(
                usage, ("cached_tokens", "cache_read_input_tokens", "cachedContentTokenCount")
            )
        case "reasoning_over_completion":
            return _raised(usage, ("reasoning_tokens", "thinking_tokens", "thoughtsTokenCount"))
        case "wrong_total":
            return _raised(usage, ("total_tokens", "totalTokenCount"))
        case "zero" | "negative" | "string" | "float" | "boolean" | "huge":
            return _each_number(usage, _CHANGES[kind])
        case _:
            assert_never(kind)


_CHANGES: dict[str, Callable[[int], object]] = {
    "zero": lambda _: 0,
    "negative": lambda number: -max(number, 600),
    "string": str,
    "float": lambda number: number + 0.5,
    "boolean": lambda _: True,
    "huge": lambda number: 2**63 + number,
}


def _each_number(usage: Json, change: Callable[[int], object]) -> Json:
    changed: Json = {}
    for name, value in usage.items():
        if isinstance(value, dict):
            changed[name] = _each_number(value, change)
        else:
            changed[name] = change(value) if isinstance(value, int) else value
    return changed


def _raised(usage: Json, names: tuple[str, ...]) -> Json:
    """The named numbers made larger than the whole they are part of."""
    largest = max(value for value in usage.values() if isinstance(value, int))
    changed: Json = {}
    for name, value in usage.items():
        if isinstance(value, dict):
            changed[name] = {
                inner: largest + 1000 if inner in names else number
                for inner, number in value.items()
            }
        else:
            changed[name] = largest + 1000 if name in names else value
    return changed
