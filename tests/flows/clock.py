"""A clock that runs like the machine's until a test moves it: the wall alone, or both hands."""

from datetime import datetime

from gwd.core.clock import US_PER_S, Clock, SystemClock


class MovableClock:
    """`set` and `jump` move the wall alone, as whoever sets a clock does; `pass_by` and `wait_until` let time go by."""

    def __init__(self, start: datetime | None = None) -> None:
        self._system: Clock = SystemClock()
        self._wall_us = 0
        self._monotonic_s = 0.0
        if start is not None:
            self.set(start)

    def now_us(self) -> int:
        return self._system.now_us() + self._wall_us

    def monotonic_s(self) -> float:
        return self._system.monotonic_s() + self._monotonic_s

    def stop(self) -> None:
        """From now on time goes by where the test says so, however long the machine takes."""
        self._system = _Stopped(self._system.now_us(), self._system.monotonic_s())

    def set(self, moment: datetime) -> None:
        """Set the wall clock."""
        wanted = int(moment.timestamp()) * US_PER_S
        self._wall_us = wanted - self._system.now_us()

    def wait_until(self, moment: datetime) -> None:
        """Let time go by until it is this moment; a moment that is over is set."""
        before_us = self.now_us()
        self.set(moment)
        self._monotonic_s += max(0, self.now_us() - before_us) / US_PER_S

    def jump(self, seconds: float) -> None:
        self._wall_us += int(seconds * US_PER_S)

    def pass_by(self, seconds: float) -> None:
        self.jump(seconds)
        self._monotonic_s += seconds


class _Stopped:
    def __init__(self, at_us: int, at_s: float) -> None:
        self._at_us = at_us
        self._at_s = at_s

    def now_us(self) -> int:
        return self._at_us

    def monotonic_s(self) -> float:
        return self._at_s
