"""What dispatch found out: the attempts of a generation and what became of the last one, as values."""

import msgspec

from gwd.core.errors import Fault, GatewayError
from gwd.core.events import Finished
from gwd.core.usage import Usage
from gwd.pipeline.routing import Planned


class FailedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One upstream call that gave nothing to the client."""

    planned: Planned
    fault: Fault
    duration_s: float


class Outcome(msgspec.Struct, kw_only=True):
    """The state of a generation while it is dispatched, and its end.

    Times are the monotonic clock's seconds. `serving` is the target whose output is (or will be) the client's, set when
    its first output arrives. Exactly one of `finished` and `error` is set at the end, or neither when the client left.
    `texts` and `reasonings` hold what was decoded so far; `reported` is the vendor's own usage so far; `output_cap` is
    the limit on the answer that the vendor was sent.
    """

    started_s: float
    first_call_s: float | None = None
    first_output_s: float | None = None
    last_output_s: float | None = None
    serving: Planned | None = None
    trying: Planned | None = None
    attempts: int = 0
    failures: list[FailedAttempt] = msgspec.field(default_factory=list)
    dropped: tuple[str, ...] = ()
    texts: list[str] = msgspec.field(default_factory=list)
    reasonings: list[str] = msgspec.field(default_factory=list)
    reported: Usage | None = None
    output_cap: int | None = None
    upstream_id: str | None = None
    finished: Finished | None = None
    error: GatewayError | None = None
    client_left: bool = False
    reached_client: bool = False

    def break_off(self, error: GatewayError) -> None:
        """Whatever the vendor said, the client does not get it whole."""
        self.finished, self.error = None, error
