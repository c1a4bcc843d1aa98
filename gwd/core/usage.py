"""Token counts in one convention: **no class contains another**; totals are properties.

How each vendor's fields map onto the classes (vendors/usage.py turns them into this form, each render turns them back):

  class            OpenAI chat                    Anthropic                    Responses           Gemini
  input            prompt - cached - written      input_tokens                 as OpenAI chat      prompt+tool-cached
  cache_read       details.cached_tokens          cache_read_input_tokens      details.cached      cachedContent
  cache_write_5m   details.cache_write_tokens     ephemeral_5m (or the total)  details.cache_write -
  cache_write_1h   -                              ephemeral_1h                 -                   -
  output           completion - reasoning         output - thinking            output - reasoning  candidatesTokenCount
  reasoning        details.reasoning_tokens       details.thinking_tokens      details.reasoning   thoughtsTokenCount
"""

from typing import Final, Literal

import msgspec

MAX_COUNT: Final = 10_000_000
Side = Literal["input", "output"]


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Disjoint token classes of one answer; `images` counts input images, not tokens.

    As a vendor reports it: `unknown` names the sides of which it said nothing believable (their counts are 0 and mean
    nothing), `refused` tells that it did say something of such a side, `clamped` that a part was larger than its
    whole, `reasoning_beside` that reasoning stands outside the count that a cap on the answer limits.
    As it is billed: `estimated` tells that a side is our own count, `refused` that a count of the vendor was not
    believed, `above_bound` that the vendor counted more prompt than a request of this size can have.
    """

    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0
    images: int = 0
    estimated: bool = False
    clamped: bool = False
    unknown: tuple[Side, ...] = ()
    refused: bool = False
    reasoning_beside: bool = False
    above_bound: bool = False

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


def count_of(value: object) -> int | None:
    """A whole number from 0 to the largest that any answer can have; None for everything else."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None
