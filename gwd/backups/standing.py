"""How the copies stand: what the last look at their directory found, and what became of the last try."""

from collections.abc import Sequence
from typing import Final

from gwd.backups.directory import Copy
from gwd.backups.rhythm import AHEAD_US

OVERDUE: Final = 2
"""A copy is overdue when the newest is older than this many times `every`."""


class Standing:
    """One for the node that makes copies by the clock; written by its job, read by whoever asks.

    `failure` is why the last try left no copy; empty when it did.
    """

    def __init__(self, *, directory: str, every_us: int, began_us: int) -> None:
        self.directory = directory
        self.every_us = every_us
        self.newest: Copy | None = None
        self.count = 0
        self.size_bytes = 0
        self.failure = ""
        self._began_us = began_us

    def take(self, copies: Sequence[Copy], now_us: int) -> None:
        """What a look has found, the oldest first. A copy dated into the future says nothing about now."""
        past = [copy for copy in copies if copy.made_us <= now_us + AHEAD_US]
        self.newest = past[-1] if past else None
        self.count = len(copies)
        self.size_bytes = sum(copy.size_bytes for copy in copies)

    def age_us(self, now_us: int) -> int | None:
        """How old the newest proved copy is; None without one."""
        return None if self.newest is None else max(0, now_us - self.newest.made_us)

    @property
    def is_well(self) -> bool:
        """Whether there is a copy, and the last try left one."""
        return self.newest is not None and not self.failure

    def is_overdue(self, now_us: int) -> bool:
        """Whether there should long have been a newer copy. A node that was off is given time for its first try."""
        late_us = OVERDUE * self.every_us
        age_us = self.age_us(now_us)
        if age_us is not None and age_us <= late_us:
            return False
        return bool(self.failure) or now_us - self._began_us > late_us
