"""Which token counts are billed: the vendor's where they can be believed, else the estimate; each side by itself.

The shapes of single fields (negative, boolean, text, fraction, absurdly large) are judged where they are read: a side
of which nothing could be believed arrives here as `unknown`. Here the counts are held against what the request and the
model allow. No bill goes above that, whoever counted: the estimate is cut to the same ceilings.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from gwd.core.extras import fills_prompt
from gwd.core.target import Target
from gwd.core.usage import MAX_COUNT, Usage
from gwd.pricing.hold import Demand, caps_all, longest_answer

CAP_SLACK: Final = 64
CAP_SLACK_PERCENT: Final = 10


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What is believed of a vendor's counts of one answer.

    `prompt` and `output` are ceilings; `output_beside` is that of an answer whose reasoning the cap does not limit. A
    prompt above `prompt_bound` is more than the request can have: it is billed, and told. `is_unreliable` is the
    endpoint's flag: the smaller of the reported and the estimated prompt is billed.
    """

    prompt: int
    output: int
    output_beside: int
    prompt_bound: int
    is_unreliable: bool = False


def limits_of(demand: Demand, target: Target, *, output_cap: int | None, inputs: int = 1) -> Limits:
    """The limits of one answer; `output_cap` is the cap that was sent, None if none was.

    A prompt fills at most the context (each of `inputs` in a batch of embeddings). An answer ends at its cap, with some
    slack for vendors that count otherwise; without a cap, or where it does not limit all that the vendor bills, at the
    longest answer of the model.
    """
    longest = longest_answer(target) if demand.generates else 0
    output = longest
    if output_cap is not None and caps_all(target):
        output = output_cap + output_cap * CAP_SLACK_PERCENT // 100 + CAP_SLACK
    return Limits(
        prompt=min(target.context_length * inputs, MAX_COUNT),
        output=min(output, MAX_COUNT),
        output_beside=min(max(output, longest), MAX_COUNT),
        prompt_bound=MAX_COUNT if fills_prompt(target.sold) else demand.prompt_bound,
        is_unreliable=target.flags.usage_unreliable,
    )


def is_plainly_right(said: Usage, demand: Demand, target: Target, output_cap: int | None) -> bool:
    """Whether the counts are within what the request itself bounds, so that no limit can have anything against them."""
    if said.unknown or output_cap is None or target.flags.usage_unreliable:
        return False
    prompt = (said.input, said.cache_read, said.cache_write_5m, said.cache_write_1h)
    answer = (said.output, said.reasoning)
    return (
        _all_counts(prompt)
        and _all_counts(answer)
        and sum(prompt) <= min(demand.prompt_bound, target.context_length)
        and sum(answer) <= min(output_cap, target.max_completion_tokens)
    )


def check_usage(
    reported: Usage | None,
    limits: Limits,
    *,
    prompt: Callable[[], int],
    answer: Callable[[], tuple[int, int]],
) -> Usage:
    """The usage to bill. `prompt` and `answer` (text, reasoning) make the estimates, where one is needed.

    A reported 0 is a count, not a gap.
    """
    said = Usage(unknown=("input", "output")) if reported is None else reported
    if "input" in said.unknown:
        usage = _with_prompt(said, limits, prompt())
    elif not believes_prompt(said, limits):
        usage = msgspec.structs.replace(_with_prompt(said, limits, prompt()), refused=True)
    elif limits.is_unreliable and (estimate := prompt()) < said.input_total:
        usage = _cut_prompt(said, estimate)
    else:
        usage = said
        if said.input_total > limits.prompt_bound:
            usage = msgspec.structs.replace(said, above_bound=True)
    if "output" in said.unknown:
        usage = _with_answer(usage, limits, answer())
    elif not _believes_answer(said, limits):
        usage = msgspec.structs.replace(_with_answer(usage, limits, answer()), refused=True)
    return msgspec.structs.replace(usage, unknown=()) if usage.unknown else usage


def cut_answer(answer: tuple[int, int], ceiling: int) -> tuple[int, int]:
    """An estimate of text and reasoning within the ceiling: the text is what the client has for certain."""
    output = min(answer[0], ceiling)
    return output, min(answer[1], ceiling - output)


def believes_prompt(said: Usage, limits: Limits) -> bool:
    """Whether a reported prompt can be: its classes are counts and fill no more than the context."""
    classes = (said.input, said.cache_read, said.cache_write_5m, said.cache_write_1h)
    return _all_counts(classes) and sum(classes) <= limits.prompt


def _believes_answer(said: Usage, limits: Limits) -> bool:
    ceiling = limits.output_beside if said.reasoning_beside else limits.output
    classes = (said.output, said.reasoning)
    return _all_counts(classes) and sum(classes) <= ceiling


def _all_counts(classes: tuple[int, ...]) -> bool:
    """Whether all are whole numbers from 0; that none is too large follows from the limit of their sum."""
    return all([type(count) is int and count >= 0 for count in classes])  # noqa: C419 - a list is quicker


def _with_prompt(said: Usage, limits: Limits, estimate: int) -> Usage:
    return msgspec.structs.replace(
        said,
        input=min(estimate, limits.prompt),
        cache_read=0,
        cache_write_5m=0,
        cache_write_1h=0,
        estimated=True,
    )


def _with_answer(said: Usage, limits: Limits, estimate: tuple[int, int]) -> Usage:
    output, reasoning = cut_answer(estimate, limits.output)
    return msgspec.structs.replace(said, output=output, reasoning=reasoning, estimated=True)


def _cut_prompt(usage: Usage, limit: int) -> Usage:
    """Cut the prompt to `limit` tokens: fresh input first, then cache writes, cache reads last.

    Fresh input is what a wrong count inflates: the caches' own counts come from a ledger of the vendor.
    """
    excess = usage.input_total - limit
    input_ = max(0, usage.input - excess)
    excess -= usage.input - input_
    write_1h = max(0, usage.cache_write_1h - excess)
    excess -= usage.cache_write_1h - write_1h
    write_5m = max(0, usage.cache_write_5m - excess)
    excess -= usage.cache_write_5m - write_5m
    return msgspec.structs.replace(
        usage,
        input=input_,
        cache_write_1h=write_1h,
        cache_write_5m=write_5m,
        cache_read=usage.cache_read - excess,
        clamped=True,
    )
