"""What became of a generation's attempts: the result of dispatch, and what has come of an attempt so far."""

from collections.abc import Sequence

import msgspec

from gwd.core.errors import Fault, GatewayError
from gwd.core.events import Finished
from gwd.core.extras import Given
from gwd.core.target import Target
from gwd.core.usage import Usage
from gwd.pipeline.plan.routing import Planned
from gwd.pricing.hold import Demand
from gwd.pricing.tokens import estimate_text


class FailedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One upstream call that gave nothing to the client. `opens_s` is when its vendor wants to be asked again."""

    planned: Planned
    fault: Fault
    began_s: float
    duration_s: float
    opens_s: float | None = None


class Received(msgspec.Struct, kw_only=True):
    """What has come of one attempt so far. Its events write it as they pass, a checkpoint may read it at any moment.

    `demand` measures the request as it was sent: something may have been left out of it for this target. `output_cap`
    is the limit on the answer that was sent. `texts` and `reasonings` hold what was decoded, `reported` is the vendor's
    own usage, `given` what it says it gave of the priced extras, `size` the bytes of a whole answer, `answered_s` when
    all of them were there.
    Times are the monotonic clock's seconds.
    """

    demand: Demand
    output_cap: int | None = None
    texts: list[str] = msgspec.field(default_factory=list)
    reasonings: list[str] = msgspec.field(default_factory=list)
    reported: Usage | None = None
    given: Given | None = None
    upstream_id: str | None = None
    finished: Finished | None = None
    size: int = 0
    answered_s: float | None = None
    first_output_s: float | None = None
    last_output_s: float | None = None

    @property
    def output_tokens(self) -> int | None:
        """What the answer's output came to, by the vendor's count or our estimate; None where there was none."""
        if self.reported is not None and self.reported.output_total > 0:
            return self.reported.output_total
        texts = "".join(self.texts + self.reasonings)
        return estimate_text(texts) if texts else None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a generation ended, or how it stands before its first attempt.

    `passed_over` are the names of the request's models that lead to none now. `trying` is the target of the last
    attempt, `serving` the same if its output is the client's. `finished` is the vendor's end of the answer, `error`
    what the client is told instead; neither is set when the client left. The other fields are those of the last attempt
    (see `Received`), `asked_s` is when that began unless it failed. `reached_client` tells that output went out before
    the end was known.
    """

    started_s: float
    passed_over: tuple[str, ...] = ()
    first_call_s: float | None = None
    asked_s: float | None = None
    first_output_s: float | None = None
    last_output_s: float | None = None
    serving: Planned | None = None
    trying: Planned | None = None
    attempts: int = 0
    failures: tuple[FailedAttempt, ...] = ()
    demand: Demand | None = None
    dropped: tuple[str, ...] = ()
    texts: Sequence[str] = ()
    reasonings: Sequence[str] = ()
    reported: Usage | None = None
    output_cap: int | None = None
    given: Given | None = None
    upstream_id: str | None = None
    finished: Finished | None = None
    size: int = 0
    error: GatewayError | None = None
    client_left: bool = False
    reached_client: bool = False

    @property
    def target(self) -> Target | None:
        """Where the answer comes from, or the last attempt went."""
        planned = self.serving or self.trying
        return None if planned is None else planned.target

    def broken_off(self, error: GatewayError) -> "Outcome":
        """Whatever the vendor said, the client does not get it whole."""
        return msgspec.structs.replace(self, finished=None, error=error)

    def with_error(self, error: GatewayError) -> "Outcome":
        """The same, told as this error if it is not an error already."""
        return self if self.error is not None else msgspec.structs.replace(self, error=error)
