"""What is told of a generation to whoever watches from outside, once it has ended: the log of requests, traces."""

import logging
from collections.abc import Callable

import msgspec

from gwd.activity.row import GenerationRow
from gwd.pipeline.dispatch.outcome import Outcome

log = logging.getLogger(__name__)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A generation's record, and what became of its attempts; a refusal before the line has none."""

    row: GenerationRow
    outcome: Outcome | None = None


Observer = Callable[[Ended], None]


def tell(observer: Observer, ended: Ended) -> None:
    """Whatever goes wrong there is no matter of the request."""
    try:
        observer(ended)
    except Exception:
        log.exception("a generation could not be observed", extra={"generation_id": ended.row.id})
