"""Token counts of OpenAI-format servers, with the spellings of their relatives."""

from typing import Any

import msgspec

from gwd.core.target import Target
from gwd.core.usage import Usage, from_inclusive, is_count


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts as reported: cached and written are inside the prompt, reasoning is inside the completion."""

    prompt: object = None
    completion: object = None
    cached: object = None
    written: object = None
    reasoning: object = None


class Reports:
    """What the chunks of one answer report, each perhaps a part of it: counts are cumulative, the largest holds.

    A report with a count that cannot be believed says nothing at all; it takes nothing back of what was said before.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._held: dict[str, int] = {}

    def add(self, reported: object) -> Usage | None:
        """The usage so far; None while prompt or completion was not counted: missing is not zero."""
        counts = counts_of(reported)
        said = {} if counts is None else msgspec.structs.asdict(counts)
        said = {name: value for name, value in said.items() if value is not None}
        if all(is_count(value) for value in said.values()):
            for name, value in said.items():
                self._held[name] = max(value, self._held.get(name, 0))
        return _usage(Counts(**self._held), self._target)


def usage_of(reported: object, target: Target) -> Usage | None:
    """The usage a server reported; None when there is none or it cannot be believed."""
    counts = counts_of(reported)
    return None if counts is None else _usage(counts, target)


def _usage(counts: Counts, target: Target) -> Usage | None:
    completion = counts.completion
    if counts.prompt is None or completion is None:
        return None
    # xAI-style servers count reasoning beside the completion, not inside it.
    if (
        target.flags.reasoning_excluded
        and type(completion) is int
        and type(counts.reasoning) is int
        and counts.reasoning > 0
    ):
        completion += counts.reasoning
    return from_inclusive(
        prompt=counts.prompt,
        completion=completion,
        cached=counts.cached,
        written=counts.written,
        reasoning=counts.reasoning,
    )


def counts_of(reported: object) -> Counts | None:
    """What a usage object says, in the spellings of all relatives; None for what is no object."""
    if not isinstance(reported, dict):
        return None
    inside_prompt = _details(reported, "prompt_tokens_details")
    inside_completion = _details(reported, "completion_tokens_details")
    return Counts(
        prompt=_first(reported.get("prompt_tokens"), reported.get("input_tokens")),
        completion=_first(reported.get("completion_tokens"), reported.get("output_tokens")),
        cached=_first(
            inside_prompt.get("cached_tokens"),
            reported.get("prompt_cache_hit_tokens"),
            reported.get("cached_tokens"),
        ),
        written=_first(
            inside_prompt.get("cache_write_tokens"),
            inside_prompt.get("cache_creation_tokens"),
            inside_prompt.get("cache_creation_input_tokens"),
        ),
        reasoning=_first(
            inside_completion.get("reasoning_tokens"), reported.get("reasoning_tokens")
        ),
    )


def _details(reported: dict[str, Any], name: str) -> dict[str, Any]:
    found = reported.get(name)
    return found if isinstance(found, dict) else {}


def _first(*values: object) -> object:
    for value in values:
        if value is not None:
            return value
    return None
