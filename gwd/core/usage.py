"""Token counts in one convention: **no class contains another**; totals are properties.

How each vendor's fields map onto the classes (its decode turns them into this form, each render turns them back):

  class            OpenAI chat                    Anthropic                    Responses           Gemini
  input            prompt - cached - written      input_tokens                 as OpenAI chat      prompt+tool-cached
  cache_read       details.cached_tokens          cache_read_input_tokens      details.cached      cachedContent
  cache_write_5m   details.cache_write_tokens     ephemeral_5m (or the total)  details.cache_write -
  cache_write_1h   -                              ephemeral_1h                 -                   -
  output           completion - reasoning         output - thinking            output - reasoning  candidatesTokenCount
  reasoning        details.reasoning_tokens       details.thinking_tokens      details.reasoning   thoughtsTokenCount
"""

from typing import Final

import msgspec

MAX_COUNT: Final = 10_000_000


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Disjoint token classes of one answer; `images` counts input images, not tokens."""

    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0
    images: int = 0
    estimated: bool = False
    clamped: bool = False

    @property
    def cache_write(self) -> int:
        return self.cache_write_5m + self.cache_write_1h

    @property
    def input_total(self) -> int:
        return self.input + self.cache_read + self.cache_write

    @property
    def output_total(self) -> int:
        return self.output + self.reasoning

    @property
    def total(self) -> int:
        return self.input_total + self.output_total


def from_inclusive(
    *,
    prompt: object,
    completion: object,
    cached: object = None,
    written: object = None,
    reasoning: object = None,
) -> Usage | None:
    """Usage of a vendor that counts cached and written tokens inside the prompt, reasoning inside the completion.

    Missing details count as 0. A detail that exceeds the count that holds it is cut and the usage is flagged
    `clamped`. None means the object cannot be believed (negative, boolean, fraction, text, absurdly large): estimate.
    """
    counts = _counts(prompt, completion, cached, written, reasoning)
    if counts is None:
        return None
    prompt_n, completion_n, cached_n, written_n, reasoning_n = counts
    cut_cached = min(cached_n, prompt_n)
    cut_written = min(written_n, prompt_n - cut_cached)
    cut_reasoning = min(reasoning_n, completion_n)
    return Usage(
        input=prompt_n - cut_cached - cut_written,
        cache_read=cut_cached,
        cache_write_5m=cut_written,
        output=completion_n - cut_reasoning,
        reasoning=cut_reasoning,
        clamped=(cut_cached, cut_written, cut_reasoning) != (cached_n, written_n, reasoning_n),
    )


def from_exclusive(
    *,
    input_: object,
    output: object,
    cache_read: object = None,
    cache_write_5m: object = None,
    cache_write_1h: object = None,
    reasoning: object = None,
) -> Usage | None:
    """Usage of a vendor whose input count excludes both cache counts; its output count includes reasoning.

    Returns None for an object that cannot be believed, as `from_inclusive` does.
    """
    counts = _counts(input_, output, cache_read, cache_write_5m, cache_write_1h, reasoning)
    if counts is None:
        return None
    input_n, output_n, read_n, write_5m_n, write_1h_n, reasoning_n = counts
    cut_reasoning = min(reasoning_n, output_n)
    return Usage(
        input=input_n,
        cache_read=read_n,
        cache_write_5m=write_5m_n,
        cache_write_1h=write_1h_n,
        output=output_n - cut_reasoning,
        reasoning=cut_reasoning,
        clamped=cut_reasoning != reasoning_n,
    )


def is_count(value: object) -> bool:
    """Whether a count can be believed by itself."""
    return type(value) is int and 0 <= value <= MAX_COUNT


def _counts(*reported: object) -> list[int] | None:
    counts = []
    for value in reported:
        if value is None:
            counts.append(0)
        elif type(value) is int and 0 <= value <= MAX_COUNT:
            counts.append(value)
        else:
            return None
    return counts
