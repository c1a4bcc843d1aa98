"""Token counts of OpenAI-format servers, with the spellings of their relatives."""

from typing import Any

import msgspec

from gwd.core.target import Target
from gwd.core.usage import Usage, from_inclusive


class Counts(msgspec.Struct, frozen=True):
    """Counts as reported: cached and written are inside the prompt, reasoning is inside the completion."""

    prompt: object
    completion: object
    cached: object = None
    written: object = None
    reasoning: object = None


def usage_of(reported: object, target: Target) -> Usage | None:
    """The usage a server reported; None when there is none or it cannot be believed."""
    counts = counts_of(reported)
    if counts is None:
        return None
    completion = counts.completion
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


def merged(first: Usage | None, second: Usage) -> Usage:
    """A later report on top of an earlier one: counts are cumulative, so the larger of each total holds."""
    if first is None or second == first:
        return second
    prompt = max(first.input_total, second.input_total)
    completion = max(first.output_total, second.output_total)
    both = from_inclusive(
        prompt=prompt,
        completion=completion,
        cached=max(first.cache_read, second.cache_read),
        written=max(first.cache_write, second.cache_write),
        reasoning=max(first.reasoning, second.reasoning),
    )
    assert both is not None
    return msgspec.structs.replace(both, clamped=both.clamped or second.clamped)


def counts_of(reported: object) -> Counts | None:
    """None where the prompt or the completion was not counted at all: missing is not zero."""
    if not isinstance(reported, dict):
        return None
    prompt = _first(reported.get("prompt_tokens"), reported.get("input_tokens"))
    completion = _first(reported.get("completion_tokens"), reported.get("output_tokens"))
    if prompt is None or completion is None:
        return None
    inside_prompt = _details(reported, "prompt_tokens_details")
    inside_completion = _details(reported, "completion_tokens_details")
    return Counts(
        prompt=prompt,
        completion=completion,
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
