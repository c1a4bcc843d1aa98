"""What recent calls say about endpoints: cooldowns, outages, medians of speed. Memory only; a restart forgets it.

Times are the monotonic clock's seconds, given by the caller.
"""

import random
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import Final

from gwd.core.clock import Clock, SystemClock
from gwd.core.counters import Counters
from gwd.core.errors import Fault
from gwd.core.target import Target
from gwd.pipeline.credential_trouble import CredentialTrouble

OUTAGE_WINDOW_S: Final = 30.0
OUTAGE_SAMPLES: Final = 3
OUTAGE_SHARE: Final = 0.3
SPEED_WINDOW_S: Final = 300.0
MAX_SAMPLES: Final = 500
NETWORK_COOLDOWN_AFTER: Final = 3
NETWORK_COOLDOWN_S: Final = 30.0
OVERLOADED_COOLDOWN_S: Final = 10.0
QUOTA_COOLDOWN_S: Final = 900.0
MAX_HINT_S: Final = 300.0
MAX_BACKOFF_S: Final = 60.0
FOREVER_S: Final = 10 * 365 * 86_400.0


class EndpointHealth:
    """Samples of one endpoint."""

    def __init__(self) -> None:
        self.attempts: deque[tuple[float, bool]] = deque(maxlen=MAX_SAMPLES)
        self.speeds: deque[tuple[float, float, float]] = deque(maxlen=MAX_SAMPLES)
        self.network_faults = 0


class Cooldown:
    """Why and until when an endpoint with a credential, or a credential anywhere, is left alone."""

    def __init__(self, until_s: float, reason: str, throttles: int = 0) -> None:
        self.until_s = until_s
        self.reason = reason
        self.throttles = throttles


class Health:
    """All endpoints of the node."""

    def __init__(
        self,
        rng: random.Random | None = None,
        counters: Counters | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._counters = counters or Counters()
        self.trouble = CredentialTrouble(clock or SystemClock())
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._endpoints: dict[str, EndpointHealth] = {}
        self._pairs: dict[tuple[str, str], Cooldown] = {}
        self._credentials: dict[str, Cooldown] = {}

    def succeeded(
        self, target: Target, now_s: float, *, ttft_s: float, tokens: int, generation_s: float
    ) -> None:
        """An attempt produced an answer."""
        self._counters.attempts[target.adapter, "ok"] += 1
        self.trouble.served(target.credential)
        health = self._endpoint(target.endpoint_id)
        health.attempts.append((now_s, True))
        health.network_faults = 0
        throughput = tokens / generation_s if generation_s > 0.05 and tokens else 0.0
        health.speeds.append((now_s, ttft_s, throughput))
        if self._pairs:
            self._pairs.pop((target.endpoint_id, target.credential.id), None)

    def failed(self, target: Target, fault: Fault, now_s: float) -> None:
        """An attempt failed for a reason that is not the caller's (api.md 6.4)."""
        self._counters.attempts[target.adapter, fault.reason] += 1
        self.trouble.failed(target.credential, fault)
        if fault.reason == "bad_request":
            return
        health = self._endpoint(target.endpoint_id)
        health.attempts.append((now_s, False))
        pair = (target.endpoint_id, target.credential.id)
        match fault.reason:
            case "rate_limited":
                previous = self._pairs.get(pair)
                throttles = previous.throttles + 1 if previous else 1
                wait_s = self._throttle_wait(fault.retry_after_s, throttles)
                self._pairs[pair] = Cooldown(now_s + wait_s, fault.reason, throttles)
            case "overloaded":
                self._pairs[pair] = Cooldown(now_s + OVERLOADED_COOLDOWN_S, fault.reason)
            case "timeout":
                self._pairs[pair] = Cooldown(now_s + NETWORK_COOLDOWN_S, fault.reason)
            case "network":
                health.network_faults += 1
                if health.network_faults >= NETWORK_COOLDOWN_AFTER:
                    self._pairs[pair] = Cooldown(now_s + NETWORK_COOLDOWN_S, fault.reason)
            case "model_access_denied":
                self._pairs[pair] = Cooldown(now_s + QUOTA_COOLDOWN_S, fault.reason)
            case "quota_exhausted":
                self._credentials[target.credential.id] = Cooldown(
                    now_s + QUOTA_COOLDOWN_S, fault.reason
                )
            case "auth_invalid":
                self._credentials[target.credential.id] = Cooldown(now_s + FOREVER_S, fault.reason)
            case "upstream_error":
                pass

    def cooling(self, endpoint_id: str, credential_id: str, now_s: float) -> float | None:
        """Seconds until this endpoint may be tried with this credential again; None when it may now."""
        until_s = 0.0
        if self._pairs:
            pair = self._pairs.get((endpoint_id, credential_id))
            until_s = pair.until_s if pair else 0.0
        if self._credentials:
            own = self._credentials.get(credential_id)
            until_s = max(until_s, own.until_s if own else 0.0)
        return until_s - now_s if until_s > now_s else None

    def cooling_reason(self, endpoint_id: str, credential_id: str) -> str | None:
        """What the cooldown is for."""
        pair, own = (
            self._pairs.get((endpoint_id, credential_id)),
            self._credentials.get(credential_id),
        )
        if pair is None or (own is not None and own.until_s > pair.until_s):
            pair = own
        return pair.reason if pair else None

    def forget_credentials(self, edited: Iterable[str] | None = None) -> None:
        """The catalog changed: the edited credentials (None: all of them) get a new chance, as does what hung on it."""
        if edited is None:
            self._credentials.clear()
        for credential_id in edited or ():
            self._credentials.pop(credential_id, None)
        self._pairs = {
            pair: cooldown
            for pair, cooldown in self._pairs.items()
            if cooldown.reason in ("rate_limited", "overloaded")
        }

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

    def _median(self, endpoint_id: str, now_s: float, column: int) -> float | None:
        health = self._endpoints.get(endpoint_id)
        if health is None:
            return None
        values = [
            s[column] for s in health.speeds if s[0] >= now_s - SPEED_WINDOW_S and s[column] > 0
        ]
        return median(values) if values else None

    def _throttle_wait(self, hint_s: float | None, throttles: int) -> float:
        if hint_s is not None and hint_s > 0:
            return min(hint_s, MAX_HINT_S)
        backoff: float = min(2.0 ** (throttles - 1), MAX_BACKOFF_S)
        return backoff * (0.9 + 0.2 * self._rng.random())

    def _endpoint(self, endpoint_id: str) -> EndpointHealth:
        health = self._endpoints.get(endpoint_id)
        if health is None:
            health = self._endpoints[endpoint_id] = EndpointHealth()
        return health
