"""What recent calls say about endpoints: rests, outages, medians of speed. Memory only; a restart forgets it.

"No data" is None and never zero: an endpoint that was not measured is not one that measured nothing.

Times are the monotonic clock's seconds, given by the caller.
"""

import logging
import random
from collections import deque
from collections.abc import Iterable
from math import isinf
from statistics import median
from typing import Final, Literal

from gwd.core.clock import US_PER_S, Clock, SystemClock, iso
from gwd.core.counters import Counters
from gwd.core.errors import Fault
from gwd.core.target import Target
from gwd.health.credential_trouble import TROUBLE, CredentialTrouble
from gwd.health.rests import Rest, Rests

OUTAGE_WINDOW_S: Final = 30.0
OUTAGE_SAMPLES: Final = 3
OUTAGE_SHARE: Final = 0.3
SPEED_WINDOW_S: Final = 300.0
MAX_SAMPLES: Final = 500
OF_THE_ACCOUNT: Final = TROUBLE | {"rate_limited"}
# Faster than any vendor generates: the answer came in one piece, so its whole duration is measured.
MAX_TOKENS_A_S: Final = 5_000.0

log = logging.getLogger(__name__)


class EndpointHealth:
    """Samples of one endpoint."""

    def __init__(self) -> None:
        self.attempts: deque[tuple[float, bool]] = deque(maxlen=MAX_SAMPLES)
        self.speeds: deque[tuple[float, float, float | None]] = deque(maxlen=MAX_SAMPLES)
        self.network_faults = 0


class Health:
    """All endpoints of the node."""

    def __init__(
        self,
        rng: random.Random | None = None,
        counters: Counters | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._counters = counters or Counters()
        self._clock = clock or SystemClock()
        self.trouble = CredentialTrouble(self._clock)
        self._rests = Rests(rng)
        self._endpoints: dict[str, EndpointHealth] = {}

    def succeeded(
        self,
        target: Target,
        now_s: float,
        *,
        began_s: float,
        first_s: float | None,
        last_s: float | None,
        tokens: int | None,
        ended_in_error: bool = False,
    ) -> None:
        """An attempt that began then produced an answer; `tokens` is its output, None where nobody counted.

        The vendor itself may have ended the answer with an error: the attempt is counted as that.
        """
        first_s = now_s if first_s is None else first_s
        last_s = now_s if last_s is None else last_s
        how = "error_finish" if ended_in_error else "ok"
        self._counters.attempts[target.adapter, how] += 1
        self.trouble.served(target, began_s)
        health = self._endpoint(target.endpoint_id)
        health.attempts.append((now_s, True))
        health.network_faults = 0
        throughput = _tokens_a_s(tokens, last_s - first_s, last_s - began_s)
        health.speeds.append((now_s, max(0.0, first_s - began_s), throughput))
        for rest in self._rests.end(target, began_s):
            log.info("%s serves again after %s", _name(target), rest.reason)

    def failed(self, target: Target, fault: Fault, now_s: float, *, asked: int) -> Rest | None:
        """An attempt failed; `asked` stands for what it asked. Returns the rest that follows, if one does.

        What is the caller's own fault, or holds for this one request alone, says nothing about the endpoint; nor does
        what a vendor has against an organization's own key.
        """
        self._counters.attempts[target.adapter, fault.reason] += 1
        if fault.reason == "bad_request" or fault.detail == "this_request":
            return None
        health = self._endpoint(target.endpoint_id)
        if not (target.credential.byok and fault.reason in OF_THE_ACCOUNT):
            health.attempts.append((now_s, False))
        if fault.reason == "network":
            health.network_faults += 1
        before = self.rest(target.endpoint_id, target.credential.id, now_s)
        rest = self._rests.begin(
            target, fault, now_s, asked=asked, network_faults=health.network_faults
        )
        is_certain = rest is None or not rest.is_doubt
        self.trouble.failed(target, fault, now_s, is_certain=is_certain)
        if rest is not None and (before is None or before.reason != rest.reason):
            until = self._until(target, rest, now_s)
            log.warning("%s rests %s: %s", _name(target), until, _why(rest))
        return rest

    def rest(self, endpoint_id: str, credential_id: str, now_s: float) -> Rest | None:
        """The rest of this endpoint with this credential; None when it does not rest."""
        return self._rests.of(endpoint_id, credential_id, now_s)

    def forget_credentials(self, edited: Iterable[str] | None = None) -> None:
        """The catalog changed: the edited credentials (None: all of them) get a new chance, as does what hung on it."""
        self._rests.forget(edited)

    def forget_own_keys(self, edited: Iterable[str]) -> None:
        """An organization changed its own keys: these get a new chance. Nothing that others have is touched."""
        self._rests.forget_credentials(edited)

    def _until(self, target: Target, rest: Rest, now_s: float) -> str:
        if isinf(rest.until_s):
            changed = "key" if target.credential.record_id else "provider"
            return f"until its {changed} is changed"
        moment = iso(self._clock.now_us() + int((rest.until_s - now_s) * US_PER_S))
        return f"until {moment}{'' if rest.is_closed else ' or its next success'}"

    def has_outage(self, endpoint_id: str, now_s: float) -> bool:
        """Three or more samples and 30 % or more failed in the last 30 s."""
        health = self._endpoints.get(endpoint_id)
        if (
            health is None
            or not health.attempts
            or health.attempts[-1][0] < now_s - OUTAGE_WINDOW_S
        ):
            return False
        recent = [ok for at_s, ok in health.attempts if at_s >= now_s - OUTAGE_WINDOW_S]
        failed = recent.count(False)
        return len(recent) >= OUTAGE_SAMPLES and failed >= OUTAGE_SHARE * len(recent)

    def attempts(self, endpoint_id: str, now_s: float) -> tuple[int, int]:
        """(attempts, failed ones) of the last five minutes, as far as they are remembered."""
        health = self._endpoints.get(endpoint_id)
        if health is None:
            return 0, 0
        recent = [ok for at_s, ok in health.attempts if at_s >= now_s - SPEED_WINDOW_S]
        return len(recent), recent.count(False)

    def median_ttft_s(self, endpoint_id: str, now_s: float) -> float | None:
        """Time to first token, median of the last five minutes."""
        return self._median(endpoint_id, now_s, 1)

    def median_throughput(self, endpoint_id: str, now_s: float) -> float | None:
        """Output tokens a second, median of the last five minutes."""
        return self._median(endpoint_id, now_s, 2)

    def _median(self, endpoint_id: str, now_s: float, column: Literal[1, 2]) -> float | None:
        health = self._endpoints.get(endpoint_id)
        if health is None:
            return None
        recent = (sample for sample in health.speeds if sample[0] >= now_s - SPEED_WINDOW_S)
        values = [value for sample in recent if (value := sample[column]) is not None]
        return median(values) if values else None

    def _endpoint(self, endpoint_id: str) -> EndpointHealth:
        health = self._endpoints.get(endpoint_id)
        if health is None:
            health = self._endpoints[endpoint_id] = EndpointHealth()
        return health


def _tokens_a_s(tokens: int | None, generation_s: float, whole_s: float) -> float | None:
    """Output tokens a second between the first and the last; of an answer that came at once, over its whole time."""
    if not tokens:
        return None
    if generation_s > 0 and tokens / generation_s <= MAX_TOKENS_A_S:
        return tokens / generation_s
    return tokens / max(whole_s, 0.001)


def _name(target: Target) -> str:
    credential_id = target.credential.record_id
    key = f"credential {credential_id}" if credential_id else "without a key"
    return f"{target.model} at {target.tag} ({key})"


def _why(rest: Rest) -> str:
    status = "" if rest.status is None else f" (status {rest.status})"
    return f"{rest.reason}{status}: {rest.message}"
