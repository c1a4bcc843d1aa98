"""Gemini's token counts to disjoint classes (api.md 5.11).

Thoughts are counted beside the candidates, cached tokens inside the prompt, tool results beside it. In a stream every
chunk repeats the counts so far: the last value of each holds, nothing is added up.
"""

from gwd.core.usage import Usage, from_inclusive
from gwd.vendors.gemini.wire import UsageWire


def known_counts(before: UsageWire | None, reported: UsageWire) -> UsageWire:
    """The report, completed by what earlier ones said of the counts that it leaves out."""
    if before is not None:
        for name in UsageWire.__struct_fields__:
            if getattr(reported, name) is None:
                setattr(reported, name, getattr(before, name))
    return reported


def usage_of(wire: UsageWire | None) -> Usage | None:
    """None where nothing was counted, or the counts cannot be believed."""
    if wire is None or wire.prompt_token_count is None:
        return None
    prompt = _sum(wire.prompt_token_count, wire.tool_use_prompt_token_count)
    completion = None if prompt is None else _completion(wire, prompt)
    if completion is None:
        return None
    return from_inclusive(
        prompt=prompt,
        completion=completion,
        cached=wire.cached_content_token_count,
        reasoning=wire.thoughts_token_count,
    )


def _completion(wire: UsageWire, prompt: int) -> int | None:
    """Everything the model wrote. The vendor leaves a zero out, and some servers count the answer only in total."""
    if wire.candidates_token_count is not None:
        return _sum(wire.candidates_token_count, wire.thoughts_token_count)
    if type(wire.total_token_count) is int:
        # The total may be of an earlier report than the thoughts.
        return max(_sum(wire.thoughts_token_count) or 0, wire.total_token_count - prompt)
    return None if wire.thoughts_token_count is None else _sum(wire.thoughts_token_count)


def _sum(*counts: object) -> int | None:
    """The sum, missing ones as zero; None if one is not a count."""
    total = 0
    for count in counts:
        if count is None:
            continue
        if type(count) is not int or count < 0:
            return None
        total += count
    return total
