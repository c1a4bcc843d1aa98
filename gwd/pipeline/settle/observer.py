"""What is told of a generation to whoever watches from outside, once it has ended: the log of requests, traces."""

import logging
from collections.abc import Callable, Sequence

import msgspec

from gwd.activity.row import GenerationRow
from gwd.core.trace_context import TraceContext
from gwd.pipeline.dispatch.outcome import Outcome

log = logging.getLogger(__name__)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A generation's record, and what became of its attempts; a refusal before the line has none.

    `now_us` and `now_s` are one moment, the end, by the node's and by the monotonic clock.
    """

    row: GenerationRow
    outcome: Outcome | None = None
    trace: TraceContext | None
    now_us: int
    now_s: float


Observer = Callable[[Ended], None]


def all_of(observers: Sequence[Observer]) -> Observer | None:
    """One for all of them; None for none."""
    if len(observers) < 2:
        return observers[0] if observers else None

    def each(ended: Ended) -> None:
        for observer in observers:
            tell(observer, ended)

    return each


def tell(observer: Observer, ended: Ended) -> None:
    """Whatever goes wrong there is no matter of the request."""
    try:
        observer(ended)
    except Exception:
        log.exception("a generation could not be observed", extra={"generation_id": ended.row.id})
