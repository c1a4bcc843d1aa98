"""Which token counts are billed: the vendor's where they can be believed, else the estimate (reliability.md 1.3).

The shapes of single fields (negative, boolean, text, fraction, NaN, cached above prompt, reasoning above completion)
are judged where they are read, in core/usage.py: an unbelievable object arrives here as None, a cut one is `clamped`.
Here the whole is judged, and judged again for a decoder that builds a Usage of its own.
"""

from typing import Final, Literal

import msgspec

from gwd.core.usage import MAX_COUNT, Usage

OVERSHOOT_PERCENT: Final = 10
OVERSHOOT_TOKENS: Final = 64

Verdict = Literal["reported", "estimated", "rejected", "reduced"]


class Billable(msgspec.Struct, frozen=True, kw_only=True):
    """The usage to bill, and how it came about.

    reported   the vendor's own counts (`usage.clamped` tells of a cut detail)
    estimated  the vendor reported nothing believable
    rejected   the vendor's counts were impossible for this model; the estimate stands in
    reduced    unreliable accounting: the prompt was cut to the estimate
    """

    usage: Usage
    verdict: Verdict


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """More tokens than these an answer cannot have, in all and written by the model.

    `reasoning_apart`: this vendor counts reasoning beside what it caps, so only the rest is held to `output`.
    """

    total: int
    output: int = MAX_COUNT
    reasoning_apart: bool = False

    def holds(self, usage: Usage) -> bool:
        """Whether an answer can have had so many."""
        written = usage.output if self.reasoning_apart else usage.output_total
        return usage.total <= self.total and written <= self.output


def check_usage(
    reported: Usage | None, estimated: Usage, *, ceiling: Ceiling, unreliable: bool = False
) -> Billable:
    """Decide between what the vendor reported and what was estimated.

    `ceiling` is the most tokens the answer can have (see `usage_ceiling`). `unreliable` is the endpoint's flag: the
    smaller of reported and estimated prompt tokens is billed (spec 8.2). A reported 0 is a count, not a gap.
    """
    if reported is None:
        return Billable(usage=_marked(estimated), verdict="estimated")
    if not _possible(reported, ceiling):
        return Billable(usage=_marked(estimated), verdict="rejected")
    if unreliable and estimated.input_total < reported.input_total:
        return Billable(usage=_cut_prompt(reported, estimated.input_total), verdict="reduced")
    return Billable(usage=reported, verdict="reported")


def usage_ceiling(
    *,
    context_length: int,
    max_completion_tokens: int,
    most_output: int | None = None,
    reasoning_apart: bool = False,
    inputs: int = 1,
) -> Ceiling:
    """The context of each input and one longest answer; of the answer the cap that was sent, which vendors overshoot
    a little: they look at it between steps, and count the marks around tools and thoughts.
    """
    total = context_length * inputs + max_completion_tokens
    if most_output is None:
        return Ceiling(total=total)
    slack = most_output * OVERSHOOT_PERCENT // 100 + OVERSHOOT_TOKENS
    return Ceiling(total=total, output=most_output + slack, reasoning_apart=reasoning_apart)


def _possible(usage: Usage, ceiling: Ceiling) -> bool:
    counts = (
        usage.input,
        usage.cache_read,
        usage.cache_write_5m,
        usage.cache_write_1h,
        usage.output,
        usage.reasoning,
        usage.images,
    )
    if not all(type(count) is int and 0 <= count <= MAX_COUNT for count in counts):
        return False
    return ceiling.holds(usage)


def _marked(estimated: Usage) -> Usage:
    return msgspec.structs.replace(estimated, estimated=True)


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
