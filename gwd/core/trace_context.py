"""The trace that a request belongs to, as the header `traceparent` of W3C says it: the client's, or one begun here."""

import re
import secrets
from typing import Final

import msgspec

_HEADER: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SPAN_IDS: Final = 2**64 - 1
_SHARES: Final = 2**56
"""By the lower bits of its id a trace is chosen, so that whoever chooses by it chooses the same."""


class TraceContext(msgspec.Struct, frozen=True, kw_only=True):
    """One request's place in its trace. `is_sent` says that vendors are told of it."""

    trace_id: int
    span_id: int
    parent_id: int | None
    is_sampled: bool
    is_sent: bool

    def attempt_id(self, number: int) -> int:
        """The id of its call of that number: it follows from its own, so nobody has to keep it."""
        return (self.span_id + number) % _SPAN_IDS + 1

    def header(self, number: int) -> str:
        """What a vendor is told in the call of that number."""
        sampled = int(self.is_sampled)
        return f"00-{self.trace_id:032x}-{self.attempt_id(number):016x}-{sampled:02x}"


class Tracing(msgspec.Struct, frozen=True, kw_only=True):
    """How traces begin: which share of them is kept, and whether vendors are told."""

    sample_ratio: float
    is_sent: bool

    def begin(self, header: str | None) -> TraceContext:
        """The place of a request that came with this header; a client's trace is kept where the client keeps it."""
        taken = _taken(header) if header else None
        if taken is not None:
            trace_id, parent_id, is_sampled = taken
        else:
            trace_id, parent_id = secrets.randbits(128) or 1, None
            is_sampled = trace_id % _SHARES < self.sample_ratio * _SHARES
        return TraceContext(
            trace_id=trace_id,
            span_id=secrets.randbelow(_SPAN_IDS) + 1,
            parent_id=parent_id,
            is_sampled=is_sampled,
            is_sent=self.is_sent,
        )


def _taken(header: str) -> tuple[int, int, bool] | None:
    """Trace, span and whether it is kept; None for a header that is none, which counts as not sent."""
    found = _HEADER.fullmatch(header)
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if (
        version == "ff"
        or (version == "00" and more)
        or not int(trace_id, 16)
        or not int(span_id, 16)
    ):
        return None
    return int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & 1)
