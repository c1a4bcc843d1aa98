"""What dispatch found out: the attempts of a generation and what became of the last one, as values."""

import msgspec

from gwd.core.errors import Fault, GatewayError
from gwd.core.events import Finished
from gwd.core.extras import Given
from gwd.core.usage import Usage
from gwd.pipeline.plan.routing import Planned
from gwd.pricing.hold import Demand
from gwd.pricing.tokens import estimate_text


class FailedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One upstream call that gave nothing to the client. `opens_s` is when its vendor wants to be asked again."""

    planned: Planned
    fault: Fault
    duration_s: float
    opens_s: float | None = None


class Outcome(msgspec.Struct, kw_only=True):
    """The state of a generation while it is dispatched, and its end.

    Times are the monotonic clock's seconds. `serving` is the target whose output is (or will be) the client's, set when
    its first output arrives. Exactly one of `finished` and `error` is set at the end, or neither when the client left.
    `texts` and `reasonings` hold what was decoded so far; `reported` is the vendor's own usage so far, `output_cap` the
    limit on the answer that it was sent, `given` what it says it gave of the priced extras.
    `received_bytes` is the size of a whole answer.
    `opens_s` and `passed_over` are the plan's: when something closed opens, and the names that nobody knows.
    `demand` measures the request as it was sent, where something had to be left out of it for the target being tried.
    `client_is_behind` tells that the vendor had to wait for the client.
    """

    started_s: float
    opens_s: float | None = None
    passed_over: tuple[str, ...] = ()
    first_call_s: float | None = None
    first_output_s: float | None = None
    last_output_s: float | None = None
    serving: Planned | None = None
    trying: Planned | None = None
    attempts: int = 0
    failures: list[FailedAttempt] = msgspec.field(default_factory=list)
    demand: Demand | None = None
    dropped: tuple[str, ...] = ()
    texts: list[str] = msgspec.field(default_factory=list)
    reasonings: list[str] = msgspec.field(default_factory=list)
    reported: Usage | None = None
    output_cap: int | None = None
    given: Given | None = None
    upstream_id: str | None = None
    finished: Finished | None = None
    error: GatewayError | None = None
    received_bytes: int = 0
    client_left: bool = False
    client_is_behind: bool = False
    reached_client: bool = False

    def note_failure(
        self, planned: Planned, fault: Fault, *, duration_s: float, opens_s: float | None
    ) -> None:
        """An attempt gave nothing to the client."""
        self.failures.append(
            FailedAttempt(planned=planned, fault=fault, duration_s=duration_s, opens_s=opens_s)
        )

    def break_off(self, error: GatewayError) -> None:
        """Whatever the vendor said, the client does not get it whole."""
        self.finished, self.error = None, error


def output_tokens(outcome: Outcome) -> int | None:
    """What the answer's output came to, by the vendor's count or our estimate; None where there was none."""
    if outcome.reported is not None and outcome.reported.output_total > 0:
        return outcome.reported.output_total
    texts = "".join(outcome.texts + outcome.reasonings)
    return estimate_text(texts) if texts else None
