"""What the node counts of itself: plain integers, read by whoever shows them; no locks, no names of callers.

Each number has one writing thread (the event loop's, or the store's writer for `WriterCounters`), so adding is safe;
a reader may see one of two numbers a moment earlier than the other.
"""

from bisect import bisect_left
from collections import defaultdict
from typing import Final

import msgspec

DURATIONS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
WAITS_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 120.0)
SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
MINUTE_S: Final = 60


class Histogram:
    """How often values fell at or below each bound; the last count is of those above all bounds."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Pace(msgspec.Struct):
    """What ended in a stretch of time: requests sent to vendors with their errors, refusals, tokens, charges."""

    requests: int = 0
    errors: int = 0
    refusals: int = 0
    tokens_prompt: int = 0
    tokens_completion: int = 0
    charged_nano: int = 0


class LastMinute:
    """The pace of each second of the monotonic clock, for a minute."""

    __slots__ = ("_seconds",)

    def __init__(self) -> None:
        self._seconds: dict[int, Pace] = {}

    def at(self, now_s: float) -> Pace:
        """Where to count what ends now."""
        second = int(now_s)
        if second not in self._seconds:
            self._forget(second)
            self._seconds[second] = Pace()
        return self._seconds[second]

    def pace(self, now_s: float) -> Pace:
        """Of the minute that ends now, the second under way included."""
        self._forget(int(now_s))
        seconds = self._seconds.values()
        return Pace(
            *(sum(getattr(one, name) for one in seconds) for name in Pace.__struct_fields__)
        )

    def _forget(self, second: int) -> None:
        for old in [each for each in self._seconds if each <= second - MINUTE_S]:
            del self._seconds[old]


class WriterCounters:
    """The store's writer: each batch's size and time, and the functions that found an invariant broken."""

    __slots__ = ("batch", "commit", "invariant_failures")

    def __init__(self) -> None:
        self.batch = Histogram(SIZES)
        self.commit = Histogram(DURATIONS_S)
        self.invariant_failures = 0


class Counters:
    """Everything counted on the event loop; one for the node.

    requests          (method, route, first digit of the status) → answers
    refusals          code → inference requests that were refused before an upstream was called
    auth_failures     code → requests whose credential was missing, wrong, spent or of the wrong kind
    attempts          (adapter, reason) → upstream calls; the reason of a good one is `ok`, of one whose answer
                      the vendor ended with an error `error_finish`
    prompts_above_bound  provider → answers whose vendor counted more prompt than the request can have
    last_minute       how much ended in the last sixty seconds
    tokens            `input` or `output` → tokens of bills, the vendor's count or ours
    spans             `sent`, `queue_full` or `export_failed` → spans for the collector of [otel]; its thread adds to
                      the first and the last
    heads_refused     reason → requests that were no strict HTTP
    content_log       outcome → requests of organizations that have theirs stored
    connections       open ones
    connections_cut   reason → connections that were refused or ended for being too many or too slow
    arriving_bytes    of bodies that are not all here
    shed              cause → inference requests that were refused because the node had too much to do
    """

    __slots__ = (
        "arriving_bytes",
        "attempts",
        "auth_failures",
        "connections",
        "connections_cut",
        "content_log",
        "estimates_exceeded",
        "first_token",
        "heads_refused",
        "hosted_tools_dropped",
        "last_minute",
        "overhead",
        "prompts_above_bound",
        "refusals",
        "requests",
        "settlement",
        "shed",
        "spans",
        "statement_mismatches",
        "tokens",
        "unpriced_extras",
        "usage_estimated",
        "usage_rejected",
    )

    def __init__(self) -> None:
        self.requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self.refusals: defaultdict[str, int] = defaultdict(int)
        self.auth_failures: defaultdict[str, int] = defaultdict(int)
        self.attempts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.heads_refused: defaultdict[str, int] = defaultdict(int)
        self.connections_cut: defaultdict[str, int] = defaultdict(int)
        self.tokens: defaultdict[str, int] = defaultdict(int)
        self.spans: defaultdict[str, int] = defaultdict(int)
        self.prompts_above_bound: defaultdict[str, int] = defaultdict(int)
        self.shed: defaultdict[str, int] = defaultdict(int)
        self.last_minute = LastMinute()
        self.content_log: defaultdict[str, int] = defaultdict(int)
        self.first_token = Histogram(WAITS_S)
        self.settlement = Histogram(DURATIONS_S)
        self.overhead = Histogram(DURATIONS_S)
        self.connections = 0
        self.arriving_bytes = 0
        self.unpriced_extras = 0
        self.usage_estimated = 0
        self.usage_rejected = 0
        self.estimates_exceeded = 0
        self.hosted_tools_dropped = 0
        self.statement_mismatches = 0

    def refuse(self, code: str, now_s: float) -> None:
        """Count a request of inference for which no upstream was called."""
        self.refusals[code] += 1
        self.last_minute.at(now_s).refusals += 1
