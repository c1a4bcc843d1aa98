"""Which endpoints and credentials rest after a failure: why, until when, and whether they may be tried all the same.

A rest only orders: what rests is tried last, soonest end first. It closes in two cases alone: a vendor that turned a
credential away (until the credential changes), and the time that a throttling vendor named itself. So no request of
one caller takes a model from the others. Times are the monotonic clock's seconds, given by the caller; used from the
event loop only.
"""

import random
from collections.abc import Iterable
from math import inf, isinf
from typing import Final

from gwd.core.clock import US_PER_S
from gwd.core.errors import Fault, FaultReason
from gwd.core.target import Target
from gwd.health.kept import KeptRest
from gwd.health.trials import Key

NETWORK_S: Final = 30.0
OVERLOADED_S: Final = 10.0
DOUBT_S: Final = 60.0
CERTAIN_S: Final = 900.0
QUOTA_S: Final = 900.0
MAX_HINT_S: Final = 300.0
MAX_BACKOFF_S: Final = 60.0
MEMORY_S: Final = 900.0
"""How long a rest that ended without a success is remembered: until then one call at a time is tried."""


class Rest:
    """One rest. `until_s` is infinite where only an edited credential ends it.

    `throttles` counts throttles without a hint in a row; `alike` and `asked` tell whether several different requests
    were refused in the same way.
    """

    def __init__(
        self,
        fault: Fault,
        now_s: float,
        length_s: float,
        *,
        is_closed: bool = False,
        throttles: int = 0,
        asked: frozenset[int] = frozenset(),
    ) -> None:
        self.reason: FaultReason = fault.reason
        self.status = fault.status
        self.message = fault.message
        self.began_s = now_s
        self.until_s = now_s + length_s
        self.is_closed = is_closed
        self.throttles = throttles
        self.alike = _alike(fault)
        self.asked = asked

    @property
    def is_doubt(self) -> bool:
        """Whether one request alone was refused so: it may have asked for what is not sold."""
        return len(self.asked) == 1


class Rests:
    """All of the node; an entry that has ended stays as a memory until its target serves again."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._pairs: dict[tuple[str, str], Rest] = {}
        self._credentials: dict[str, Rest] = {}

    def of(self, endpoint_id: str, credential_id: str, now_s: float) -> Rest | None:
        """The rest that decides for this endpoint with this credential now; None when it does not rest."""
        if not self._pairs and not self._credentials:
            return None
        pair = self._pairs.get((endpoint_id, credential_id))
        own = self._credentials.get(credential_id)
        running = [rest for rest in (pair, own) if rest is not None and rest.until_s > now_s]
        return max(running, key=lambda rest: (rest.is_closed, rest.until_s), default=None)

    def on_record(self, endpoint_id: str, credential_id: str, now_s: float) -> tuple[Key, ...]:
        """The keys under which something rests or has rested and not served since."""
        if not self._pairs and not self._credentials:
            return ()
        keys: list[Key] = []
        pair = endpoint_id, credential_id
        if (rest := self._pairs.get(pair)) is not None:
            if rest.until_s + MEMORY_S > now_s:
                keys.append(pair)
            else:
                del self._pairs[pair]
        if (rest := self._credentials.get(credential_id)) is not None:
            if rest.until_s + MEMORY_S > now_s:
                keys.append(("", credential_id))
            else:
                del self._credentials[credential_id]
        return tuple(keys)

    def credentials_at(self, endpoint_id: str) -> list[str]:
        """With which credentials the endpoint itself rests, or has rested lately."""
        return [credential for endpoint, credential in self._pairs if endpoint == endpoint_id]

    def begin(
        self, target: Target, fault: Fault, now_s: float, *, asked: int, network_faults: int
    ) -> Rest | None:
        """The rest that this fault asks for; None if it asks for none. `asked` stands for the request's content."""
        pair = target.endpoint_id, target.credential.id
        match fault.reason:
            case "rate_limited":
                return self._of_pair(pair, self._throttled(pair, fault, now_s), now_s)
            case "overloaded":
                return self._of_pair(pair, Rest(fault, now_s, OVERLOADED_S), now_s)
            case "timeout":
                return self._of_pair(pair, Rest(fault, now_s, NETWORK_S), now_s)
            case "network" | "upstream_error" if fault.detail in ("certificate", "redirect"):
                # Time does not help: the address or the certificate has to be corrected.
                return self._of_pair(pair, Rest(fault, now_s, CERTAIN_S), now_s)
            case "upstream_error" if fault.detail in ("address", "other_format"):
                return self._of_pair(pair, Rest(fault, now_s, DOUBT_S), now_s)
            case "network" if network_faults >= 3:
                return self._of_pair(pair, Rest(fault, now_s, NETWORK_S), now_s)
            case "model_access_denied":
                rest = _doubted(self._pairs.get(pair), fault, now_s, asked)
                return self._of_pair(pair, rest, now_s)
            case "auth_invalid" if fault.detail == "by_words":
                # Words under another status may be about a key that the request brought along for somebody else.
                rest = _doubted(self._credentials.get(pair[1]), fault, now_s, asked)
                return self._of_credential(pair[1], rest, now_s)
            case "auth_invalid":
                rest = Rest(fault, now_s, inf, is_closed=True)
                return self._of_credential(pair[1], rest, now_s)
            case "quota_exhausted":
                rest = Rest(fault, now_s, fault.retry_after_s or QUOTA_S)
                return self._of_credential(pair[1], rest, now_s)
            case "network" | "upstream_error" | "bad_request":
                return None

    def end(self, target: Target, began_s: float) -> list[Rest]:
        """The target served a call that began then: what had begun before is over. Returns what was."""
        pair, credential_id = (target.endpoint_id, target.credential.id), target.credential.id
        ended = []
        if (rest := self._pairs.get(pair)) is not None and rest.began_s <= began_s:
            ended.append(self._pairs.pop(pair))
        if (rest := self._credentials.get(credential_id)) is not None and rest.began_s <= began_s:
            ended.append(self._credentials.pop(credential_id))
        return ended

    def kept(self, now_us: int, now_s: float) -> list[KeptRest]:
        """All that rest, or have rested lately and not served since."""
        own = {("", credential_id): rest for credential_id, rest in self._credentials.items()}
        return [
            _kept(key, rest, now_us, now_s)
            for key, rest in (self._pairs | own).items()
            if rest.until_s + MEMORY_S > now_s
        ]

    def restore(self, kept: Iterable[KeptRest], now_us: int, now_s: float) -> None:
        """What was kept, by this process's clock. A clock that was set back lengthens no rest.

        A refused key that is read from outside may be another one by now: one call may try it.
        """
        for each in kept:
            rest = _restored(each, now_us, now_s)
            if rest.until_s + MEMORY_S <= now_s:
                continue
            if each.endpoint_id:
                self._pairs[each.endpoint_id, each.credential_id] = rest
            else:
                self._credentials[each.credential_id] = rest

    def forget(self, edited: Iterable[str] | None = None) -> bool:
        """The catalog changed: the edited credentials (None: all of them) get a new chance, as does what hung on it.

        Returns whether there was anything to forget.
        """
        before = len(self._pairs) + len(self._credentials)
        if edited is None:
            self._credentials.clear()
        for credential_id in edited or ():
            self._credentials.pop(credential_id, None)
        self._pairs = {
            pair: rest
            for pair, rest in self._pairs.items()
            if rest.reason in ("rate_limited", "overloaded")
        }
        return len(self._pairs) + len(self._credentials) < before

    def forget_credentials(self, edited: Iterable[str]) -> bool:
        """These credentials alone get a new chance, with every endpoint; whether any of them had a rest."""
        found = False
        for credential_id in edited:
            found |= self._credentials.pop(credential_id, None) is not None
            for pair in [pair for pair in self._pairs if pair[1] == credential_id]:
                del self._pairs[pair]
                found = True
        return found

    def _of_pair(self, pair: tuple[str, str], rest: Rest, now_s: float) -> Rest:
        self._pairs[pair] = _stronger(self._pairs.get(pair), rest, now_s)
        return rest

    def _of_credential(self, credential_id: str, rest: Rest, now_s: float) -> Rest:
        self._credentials[credential_id] = _stronger(
            self._credentials.get(credential_id), rest, now_s
        )
        return rest

    def _throttled(self, pair: tuple[str, str], fault: Fault, now_s: float) -> Rest:
        if fault.retry_after_s is not None and fault.retry_after_s > 0:
            return Rest(fault, now_s, min(fault.retry_after_s, MAX_HINT_S), is_closed=True)
        previous = self._pairs.get(pair)
        throttles = previous.throttles + 1 if previous is not None else 1
        backoff_s: float = min(2.0 ** min(throttles - 1, 10), MAX_BACKOFF_S)
        jitter = 0.9 + 0.1 * self._rng.random()
        return Rest(fault, now_s, backoff_s * jitter, throttles=throttles)


def _kept(key: Key, rest: Rest, now_us: int, now_s: float) -> KeptRest:
    _, status, code = rest.alike
    return KeptRest(
        endpoint_id=key[0],
        credential_id=key[1],
        reason=rest.reason,
        status=status,
        code=code,
        message=rest.message,
        began_us=wall_us(rest.began_s, now_us, now_s),
        until_us=None if isinf(rest.until_s) else wall_us(rest.until_s, now_us, now_s),
        is_closed=rest.is_closed,
        throttles=rest.throttles,
        asked=tuple(sorted(rest.asked)),
    )


def _restored(kept: KeptRest, now_us: int, now_s: float) -> Rest:
    fault = Fault(reason=kept.reason, message=kept.message, status=kept.status, code=kept.code)
    began_s = min(now_s, run_s(kept.began_us, now_us, now_s))
    rest = Rest(
        fault,
        began_s,
        inf if kept.until_us is None else (kept.until_us - kept.began_us) / US_PER_S,
        is_closed=kept.is_closed,
        throttles=kept.throttles,
        asked=frozenset(kept.asked),
    )
    if kept.until_us is None and kept.is_referenced:
        rest.until_s, rest.is_closed = now_s, False
    return rest


def wall_us(at_s: float, now_us: int, now_s: float) -> int:
    """A moment of the monotonic clock by the wall clock."""
    return now_us + round((at_s - now_s) * US_PER_S)


def run_s(at_us: int, now_us: int, now_s: float) -> float:
    """A moment of the wall clock by the monotonic one."""
    return now_s + (at_us - now_us) / US_PER_S


def _doubted(previous: Rest | None, fault: Fault, now_s: float, asked: int) -> Rest:
    """A minute; longer only once two different requests were refused alike: one may have asked for what is not sold."""
    seen = frozenset((asked,))
    if (
        previous is not None
        and previous.alike == _alike(fault)
        and now_s - previous.began_s <= CERTAIN_S
    ):
        seen |= previous.asked
    length_s = CERTAIN_S if len(seen) > 1 else DOUBT_S
    return Rest(fault, now_s, length_s, asked=frozenset(sorted(seen)[:2]))


def _stronger(previous: Rest | None, rest: Rest, now_s: float) -> Rest:
    """A call that was under way must not open what another has closed, nor shorten what it knew better."""
    if previous is None or previous.until_s <= now_s:
        return rest
    if previous.is_closed != rest.is_closed:
        return previous if previous.is_closed else rest
    if previous.reason == rest.reason:
        return rest
    return max(previous, rest, key=lambda each: each.until_s)


def _alike(fault: Fault) -> tuple[str, int | None, str | None]:
    return fault.reason, fault.status, fault.code


def opens_again_s(fault: Fault, rest: Rest | None, now_s: float) -> float | None:
    """When it is worth asking again: what the vendor said, else how long a throttled endpoint rests."""
    if fault.retry_after_s is not None:
        return now_s + fault.retry_after_s
    return rest.until_s if rest is not None and rest.reason == "rate_limited" else None
