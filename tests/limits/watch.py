"""A clock that a test sets; between two settings it runs. Set forward, time has gone by on both its hands."""

from gwd.core.clock import US_PER_S, SystemClock, us_from_iso


class Watch:
    """Both the ledger's and the node's clock, so that days and months end when a test says so."""

    def __init__(self, moment: str) -> None:
        self._system = SystemClock()
        self._ahead_us = 0
        self._gone_by_s = 0.0
        self.set(moment)

    def now_us(self) -> int:
        return self._system.now_us() + self._ahead_us

    def monotonic_s(self) -> float:
        return self._system.monotonic_s() + self._gone_by_s

    def set(self, moment: str) -> None:
        """It is this moment now."""
        before_us = self.now_us()
        self._ahead_us = us_from_iso(moment) - self._system.now_us()
        self._gone_by_s += max(0, self.now_us() - before_us) / US_PER_S

    def pass_by(self, seconds: float) -> None:
        self._ahead_us += int(seconds * US_PER_S)
        self._gone_by_s += seconds
