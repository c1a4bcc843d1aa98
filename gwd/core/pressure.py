"""A measured value that is too high for a while: judged by two marks and two times, so that it does not flap."""


class Pressure:
    """High once all that was measured for `begins_s` was above `above`; low again once it was at most `below` for
    `ends_s`. Seconds are those of the monotonic clock.
    """

    __slots__ = ("_since_s", "above", "begins_s", "below", "ends_s", "is_high", "value")

    def __init__(self, *, above: float, below: float, begins_s: float, ends_s: float) -> None:
        self.above = above
        self.below = below
        self.begins_s = begins_s
        self.ends_s = ends_s
        self.is_high = False
        self.value = 0.0
        self._since_s: float | None = None

    def note(self, value: float, now_s: float) -> bool:
        """Judge by one more value. Whether that changed the verdict."""
        self.value = value
        speaks_for_change = value <= self.below if self.is_high else value > self.above
        if not speaks_for_change:
            self._since_s = None
            return False
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s < (self.ends_s if self.is_high else self.begins_s):
            return False
        self.is_high, self._since_s = not self.is_high, None
        return True
