"""What can be asked about generations: each metric's names, meaning, format, and how it follows from sums.

Sums are those that the day sums keep (`gwd.activity.day_sums.SUMS`), so a metric that follows from them alone can be
read from either. Places among the ordered times of each group need the records.
"""

import re
from typing import Final, Literal

import msgspec

from gwd.activity.day_sums import LIST_PRICE, SUMS

Format = Literal["count", "tokens", "usd", "share", "milliseconds", "tokens_per_second"]
Measured = Literal["latency", "ttft"]

MEASURED: Final[dict[Measured, str]] = {
    "latency": "CASE WHEN status <> 'refused' THEN latency_ms END",
    "ttft": "ttft_ms",
}
"""Times of single generations, as SQL of a record."""

RECORD_SUMS: Final[dict[str, str]] = {**SUMS, "byok_nano": f"({LIST_PRICE}) * byok"}
"""What a record adds to each sum, as SQL."""
DAY_SUMS: Final[dict[str, str]] = {
    **{name: name for name in SUMS},
    "byok_nano": f"({LIST_PRICE}) * byok",
}
"""What a row of the day sums adds to each sum, as SQL."""

_PROMPT: Final = "tokens_input + tokens_cache_read + tokens_cache_write"
_COMPLETION: Final = "tokens_output + tokens_reasoning"
_WORD: Final = re.compile(r"[a-z_]+")


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """`sql` gives its value from the sums of a group; or it is the time at `percent` of the group's `measured` ones.

    Amounts are nano-USD in SQL and USD in answers.
    """

    name: str
    label: str
    about: str
    format: Format
    sql: str = ""
    aliases: tuple[str, ...] = ()
    measured: Measured | None = None
    percent: int = 0

    @property
    def is_rate(self) -> bool:
        """Whether the values of two groups do not add up to that of both together."""
        return self.format in ("share", "milliseconds", "tokens_per_second")

    @property
    def sums(self) -> list[str]:
        """The sums that `sql` names."""
        return [word for word in _WORD.findall(self.sql) if word in RECORD_SUMS]


def _count(name: str, label: str, about: str, sql: str, *aliases: str) -> Metric:
    return Metric(name=name, label=label, about=about, format="count", sql=sql, aliases=aliases)


def _tokens(name: str, label: str, about: str, sql: str) -> Metric:
    return Metric(name=name, label=label, about=about, format="tokens", sql=sql)


def _usd(name: str, label: str, about: str, sql: str, *aliases: str) -> Metric:
    return Metric(name=name, label=label, about=about, format="usd", sql=sql, aliases=aliases)


def _share(name: str, label: str, about: str, part: str, whole: str) -> Metric:
    sql = f"1.0 * ({part}) / NULLIF({whole}, 0)"
    return Metric(name=name, label=label, about=about, format="share", sql=sql)


def _mean(name: str, label: str, about: str, ms: str, times: str) -> Metric:
    sql = f"1.0 * {ms} / NULLIF({times}, 0)"
    return Metric(name=name, label=label, about=about, format="milliseconds", sql=sql)


def _place(measured: Measured, percent: int, label: str, what: str) -> Metric:
    return Metric(
        name=f"p{percent}_{measured}",
        label=label,
        about=f"{percent} of 100 requests took no longer {what}.",
        format="milliseconds",
        measured=measured,
        percent=percent,
    )


_TO_THE_END: Final = "to the end of their answer"
_TO_THE_FIRST: Final = "to their first token"

_ALL: Final = (
    _count(
        "requests",
        "Requests",
        "Requests that were dispatched; refusals are counted apart.",
        "requests",
        "request_count",
    ),
    _usd("cost", "Cost", "What was charged.", "charged_nano", "total_usage"),
    _tokens(
        "tokens_prompt",
        "Prompt tokens",
        "Prompt tokens, those read from and written to a cache included.",
        _PROMPT,
    ),
    _tokens(
        "tokens_completion", "Output tokens", "Output tokens, reasoning included.", _COMPLETION
    ),
    _tokens(
        "tokens_total", "Tokens", "Prompt and output tokens together.", f"{_PROMPT} + {_COMPLETION}"
    ),
    _tokens(
        "reasoning_tokens",
        "Reasoning tokens",
        "Output tokens that were reasoning.",
        "tokens_reasoning",
    ),
    _tokens(
        "cached_tokens",
        "Cached tokens",
        "Prompt tokens that were read from the vendor's cache.",
        "tokens_cache_read",
    ),
    _tokens(
        "cache_write_tokens",
        "Tokens written to a cache",
        "Prompt tokens that were written to the vendor's cache.",
        "tokens_cache_write",
    ),
    _share(
        "cache_hit_rate",
        "Cache hit rate",
        "Cached tokens as a part of the prompt tokens, 0 to 1; null without prompt tokens.",
        "tokens_cache_read",
        _PROMPT,
    ),
    _usd(
        "cache_discount",
        "Saved by caches",
        "What prompts would have cost more if the vendors had no caches; below 0 where more was written than read.",
        "cache_discount_nano",
    ),
    _count("errors", "Errors", "Dispatched requests that ended failed or incomplete.", "errors"),
    _share(
        "error_rate",
        "Error rate",
        "Errors as a part of the requests, 0 to 1; null without requests.",
        "errors",
        "requests",
    ),
    _count(
        "fallbacks",
        "Fallbacks",
        "How often a request went on to another endpoint after one had failed.",
        "fallbacks",
    ),
    _count(
        "insured_requests",
        "Insured requests",
        "Requests that were not charged because there was no output.",
        "insured",
    ),
    _count(
        "refusals",
        "Refusals",
        "Requests that the gateway refused itself, each repetition counted.",
        "refusals",
    ),
    _mean(
        "avg_latency",
        "Mean time",
        "From the arrival of a dispatched request to the end of its answer, on average.",
        "latency_ms",
        "latencies",
    ),
    _place("latency", 50, "Time, median", _TO_THE_END),
    _place("latency", 90, "Time, 90 %", _TO_THE_END),
    _place("latency", 99, "Time, 99 %", _TO_THE_END),
    _mean(
        "avg_ttft",
        "Mean time to first token",
        "From the arrival to the first token, on average over requests that had output.",
        "ttft_ms",
        "ttfts",
    ),
    _place("ttft", 50, "Time to first token, median", _TO_THE_FIRST),
    _place("ttft", 90, "Time to first token, 90 %", _TO_THE_FIRST),
    Metric(
        name="avg_throughput",
        label="Output tokens per second",
        about="Output tokens by the seconds from first to last token, of requests whose output took a time.",
        format="tokens_per_second",
        sql="1000.0 * timed_tokens / NULLIF(generation_ms, 0)",
    ),
    _usd(
        "byok_cost",
        "List price on own keys",
        "The list price of what own vendor keys served; the vendor bills it, not the gateway.",
        "byok_nano",
        "byok_usage",
    ),
    _usd("cost_prompt", "Cost of prompts", "As receipts have it.", "cost_prompt_nano"),
    _usd("cost_completion", "Cost of output", "As receipts have it.", "cost_completion_nano"),
    _usd("cost_cache_read", "Cost of cache reads", "As receipts have it.", "cost_cache_read_nano"),
    _usd(
        "cost_cache_write", "Cost of cache writes", "As receipts have it.", "cost_cache_write_nano"
    ),
    _usd("cost_reasoning", "Cost of reasoning", "As receipts have it.", "cost_reasoning_nano"),
    _usd("cost_request_fee", "Prices per request", "As receipts have it.", "cost_request_fee_nano"),
    _usd("cost_web_search", "Cost of web searches", "As receipts have it.", "cost_web_search_nano"),
    _usd(
        "cost_platform_fee",
        "Fees for own keys",
        "What was charged of requests that own vendor keys served.",
        "cost_platform_fee_nano",
    ),
)

METRICS: Final[dict[str, Metric]] = {metric.name: metric for metric in _ALL}
BY_ANY_NAME: Final[dict[str, Metric]] = {
    name: metric for metric in _ALL for name in (metric.name, *metric.aliases)
}
