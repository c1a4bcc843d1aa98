"""What recent calls say about endpoints: rests, outages, medians of speed, last failures.

It is decided from memory alone. What outlives a restart is asked for now and then (`news`) and given back (`restore`).

"No data" is None and never zero: an endpoint that was not measured is not one that measured nothing.

Times are the monotonic clock's seconds, given by the caller.
"""

import logging
import random
from collections import deque
from collections.abc import Container, Iterable
from math import isinf
from statistics import median
from typing import Final, Literal

import msgspec

from gwd.core.clock import US_PER_S, Clock, SystemClock, iso
from gwd.core.counters import Counters
from gwd.core.errors import Fault, FaultReason
from gwd.core.secret_patterns import hide_credentials
from gwd.core.target import Target
from gwd.health.credential_trouble import TROUBLE, CredentialTrouble
from gwd.health.kept import Kept, KeptEndpoint, KeptFault
from gwd.health.rests import Rest, Rests, run_s, wall_us
from gwd.health.trials import Key, Trials

OUTAGE_WINDOW_S: Final = 30.0
OUTAGE_SAMPLES: Final = 3
OUTAGE_SHARE: Final = 0.3
SPEED_WINDOW_S: Final = 300.0
MAX_SAMPLES: Final = 500
OF_THE_ACCOUNT: Final = TROUBLE | {"rate_limited"}
KEPT_SAMPLES: Final = 60
"""Of each kind and endpoint, the newest ones, over a restart."""
LAST_FAULTS: Final = 10
FAULTS_WINDOW_S: Final = 86_400.0
MAX_MESSAGE: Final = 300
# Faster than any vendor generates: the answer came in one piece, so its whole duration is measured.
MAX_TOKENS_A_S: Final = 5_000.0

Circuit = Literal["closed", "open", "half_open"]

log = logging.getLogger(__name__)


class LastFault(msgspec.Struct, frozen=True):
    """A call that failed: when, with which credential, why, and what the vendor said, cut to a sentence."""

    at_s: float
    credential_id: str
    reason: FaultReason
    status: int | None
    message: str


class EndpointHealth:
    """Samples of one endpoint."""

    def __init__(self) -> None:
        self.attempts: deque[tuple[float, bool]] = deque(maxlen=MAX_SAMPLES)
        self.speeds: deque[tuple[float, float, float | None]] = deque(maxlen=MAX_SAMPLES)
        self.failures: deque[LastFault] = deque(maxlen=LAST_FAULTS)
        self.network_faults = 0
        self.in_flight = 0


class Visit:
    """A request's stay at a target, from the choice of it to the end of its calls there. Whoever has it ends it.

    `is_trial`: the endpoint or the credential rests, and this call shows whether that is over.
    """

    __slots__ = ("_endpoint", "_health", "is_trial", "keys", "target")

    def __init__(
        self, health: "Health", target: Target, endpoint: EndpointHealth, keys: tuple[Key, ...]
    ) -> None:
        self.target = target
        self.keys = keys
        self.is_trial = bool(keys)
        self._health = health
        self._endpoint = endpoint
        endpoint.in_flight += 1

    def answered(self, began_s: float) -> None:
        """The vendor has begun to answer the call that began then: the rest is over, and the others may go."""
        self.is_trial = False
        self._health.serves(self.target, began_s)
        self._health.trial_ended(self)

    def end(self) -> None:
        """The stay is over: well, badly, or because the client left. To be called once."""
        self._endpoint.in_flight -= 1
        if self.keys:
            self._health.trial_ended(self)


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
        self._trials = Trials()
        self._endpoints: dict[str, EndpointHealth] = {}
        self._changed: set[str] = set()
        self._rests_changed = False
        self.is_urgent = False
        """A key was refused, or serves again: worth to be kept at once."""

        self.dates: dict[str, tuple[str, int]] = {}
        """Provider: the `date` of its last answer, as it was sent, and when that came by this node's clock."""

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
        self._changed.add(target.endpoint_id)
        health.attempts.append((now_s, True))
        health.network_faults = 0
        throughput = _tokens_a_s(tokens, last_s - first_s, last_s - began_s)
        health.speeds.append((now_s, max(0.0, first_s - began_s), throughput))
        self.serves(target, began_s)

    def serves(self, target: Target, began_s: float) -> None:
        """The vendor answers a call that began then: what had rested before it is over."""
        for rest in self._rests.end(target, began_s):
            self._rests_changed = True
            self.is_urgent |= isinf(rest.until_s)
            log.info("%s serves again after %s", _name(target), rest.reason)

    def visit(self, target: Target, now_s: float, *, waits: bool) -> Visit | Rest | None:
        """Leave to call the target now; the rest that closes it; None while another call is on trial there.

        With `waits` False that other call has been waited for long enough, and the trial is this visit's.
        """
        endpoint_id, credential_id = target.endpoint_id, target.credential.id
        keys = self._rests.on_record(endpoint_id, credential_id, now_s)
        if keys:
            rest = self._rests.of(endpoint_id, credential_id, now_s)
            if rest is not None and rest.is_closed:
                return rest
            if waits and self._trials.is_any_held(*keys):
                return None
        visit = Visit(self, target, self._endpoint(endpoint_id), keys)
        if keys:
            self._trials.take(keys, visit)
        return visit

    def trial_ended(self, visit: Visit) -> None:
        """Somebody else may be on trial there, or everybody may go."""
        target, now_s = visit.target, self._clock.monotonic_s()
        on_record = self._rests.on_record(target.endpoint_id, target.credential.id, now_s)
        self._trials.release(visit.keys, visit, is_over=not on_record)

    def circuit(self, endpoint_id: str, credential_id: str, now_s: float) -> Circuit:
        """Closed: nothing rests. Open: it rests. Half open: the next call, or the one on trial, decides."""
        if not self._rests.on_record(endpoint_id, credential_id, now_s):
            return "closed"
        if self.is_on_trial(endpoint_id, credential_id):
            return "half_open"
        return "open" if self.rest(endpoint_id, credential_id, now_s) else "half_open"

    def in_flight(self, endpoint_id: str) -> int:
        """How many requests are at the endpoint now."""
        health = self._endpoints.get(endpoint_id)
        return 0 if health is None else health.in_flight

    def last_faults(self, endpoint_id: str) -> list[LastFault]:
        """The last failed calls to the endpoint, the newest first."""
        health = self._endpoints.get(endpoint_id)
        return [] if health is None else list(reversed(health.failures))

    def resting_credentials(self, endpoint_id: str) -> list[str]:
        """The ids of the credentials with which the endpoint rests, or has rested lately."""
        return self._rests.credentials_at(endpoint_id)

    def is_on_trial(self, endpoint_id: str, credential_id: str) -> bool:
        """Whether a call is under way that decides whether this endpoint with this credential serves again."""
        return self._trials.are_any and self._trials.is_any_held(
            (endpoint_id, credential_id), ("", credential_id)
        )

    async def wait_for_trials(self, targets: Iterable[Target], limit_s: float) -> None:
        """Until a trial at one of the targets has ended, or the time (seconds) is over."""
        pairs = [(target.endpoint_id, target.credential.id) for target in targets]
        keys = {key for pair in pairs for key in (pair, ("", pair[1]))}
        await self._trials.wait(keys, limit_s)

    def failed(self, target: Target, fault: Fault, now_s: float, *, asked: int) -> Rest | None:
        """An attempt failed; `asked` stands for what it asked. Returns the rest that follows, if one does.

        What is the caller's own fault, our own limit, or holds for this one request alone, says nothing about the
        endpoint; nor does what a vendor has against an organization's own key.
        """
        self._counters.attempts[target.adapter, fault.reason] += 1
        if fault.reason == "bad_request" or fault.detail in ("this_request", "our_limit"):
            return None
        health = self._endpoint(target.endpoint_id)
        if not (target.credential.byok and fault.reason in OF_THE_ACCOUNT):
            self._changed.add(target.endpoint_id)
            health.attempts.append((now_s, False))
            message = hide_credentials(fault.message)[:MAX_MESSAGE]
            health.failures.append(
                LastFault(now_s, target.credential.id, fault.reason, fault.status, message)
            )
        if fault.reason == "network":
            health.network_faults += 1
        before = self.rest(target.endpoint_id, target.credential.id, now_s)
        rest = self._rests.begin(
            target, fault, now_s, asked=asked, network_faults=health.network_faults
        )
        if rest is not None:
            self._rests_changed = True
            self.is_urgent |= isinf(rest.until_s)
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
        if self._rests.forget(edited):
            self._rests_changed = self.is_urgent = True

    def forget_endpoints(self, known: Container[str]) -> None:
        """The catalog changed: nothing is remembered of an endpoint that is gone."""
        for endpoint_id in [each for each in self._endpoints if each not in known]:
            del self._endpoints[endpoint_id]
            self._changed.discard(endpoint_id)

    def news(self, now_us: int, now_s: float) -> Kept | None:
        """What has changed since it was last asked for and should outlive a restart; None for nothing."""
        if not self._changed and not self._rests_changed:
            return None
        kept = Kept(
            rests=self._rests.kept(now_us, now_s) if self._rests_changed else None,
            endpoints=[self._kept(endpoint_id, now_us, now_s) for endpoint_id in self._changed],
        )
        self._changed, self._rests_changed, self.is_urgent = set(), False, False
        return kept

    def unkept(self, kept: Kept) -> None:
        """What was asked for could not be written: it is news still."""
        self._changed.update(each.id for each in kept.endpoints)
        self._rests_changed |= kept.rests is not None

    def restore(self, kept: Kept, now_us: int, now_s: float) -> None:
        """What an earlier process knew; what is too old to count is left out."""
        self._rests.restore(kept.rests or (), now_us, now_s)
        for each in kept.endpoints:
            health = self._endpoint(each.id)
            health.network_faults = each.network_faults
            for at_us, ok in each.attempts:
                at_s = run_s(at_us, now_us, now_s)
                if now_s - SPEED_WINDOW_S <= at_s <= now_s:
                    health.attempts.append((at_s, ok))
            for at_us, ttft_s, throughput in each.speeds:
                at_s = run_s(at_us, now_us, now_s)
                if now_s - SPEED_WINDOW_S <= at_s <= now_s:
                    health.speeds.append((at_s, ttft_s, throughput))
            for failure in each.failures:
                at_s = min(now_s, run_s(failure.at_us, now_us, now_s))
                if at_s >= now_s - FAULTS_WINDOW_S:
                    said = (failure.credential_id, failure.reason, failure.status, failure.message)
                    health.failures.append(LastFault(at_s, *said))

    def _kept(self, endpoint_id: str, now_us: int, now_s: float) -> KeptEndpoint:
        health = self._endpoint(endpoint_id)
        attempts = list(health.attempts)[-KEPT_SAMPLES:]
        speeds = list(health.speeds)[-KEPT_SAMPLES:]
        return KeptEndpoint(
            id=endpoint_id,
            network_faults=health.network_faults,
            attempts=tuple((wall_us(at_s, now_us, now_s), ok) for at_s, ok in attempts),
            speeds=tuple(
                (
                    wall_us(at_s, now_us, now_s),
                    round(ttft_s, 4),
                    None if throughput is None else round(throughput, 2),
                )
                for at_s, ttft_s, throughput in speeds
            ),
            failures=tuple(
                KeptFault(
                    wall_us(each.at_s, now_us, now_s),
                    each.credential_id,
                    each.reason,
                    each.status,
                    each.message,
                )
                for each in health.failures
            ),
        )

    def forget_own_keys(self, edited: Iterable[str]) -> None:
        """An organization changed its own keys: these get a new chance. Nothing that others have is touched."""
        if self._rests.forget_credentials(edited):
            self._rests_changed = self.is_urgent = True

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
