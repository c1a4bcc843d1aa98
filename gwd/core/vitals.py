"""The node's vital signs: when the writer last answered, how much disk is free, how late the event loop is."""

from collections import deque
from typing import Final

from gwd.core.counters import DURATIONS_S, Histogram

WRITER_SILENCE_S: Final = 10.0  # longer means that it is stuck
LAGS_A_MINUTE: Final = 240
GIB: Final = 1024**3
LITTLE_BYTES: Final = GIB  # worth an alert
TOO_LITTLE_BYTES: Final = GIB // 4  # below it no new inference begins


class Vitals:
    """Written by the jobs that look, read by whoever decides; one for the node.

    `writer_seen_s` is on the monotonic clock, as are the ends of the last runs in `jobs_ran_s`. `disk_free_bytes` is
    what this process may still use. `last_lags_s` are those of the last minute.
    """

    __slots__ = ("disk_free_bytes", "jobs_ran_s", "last_lags_s", "loop_lag", "writer_seen_s")

    def __init__(self, *, writer_seen_s: float) -> None:
        self.writer_seen_s = writer_seen_s
        self.disk_free_bytes = LITTLE_BYTES
        self.loop_lag = Histogram(DURATIONS_S)
        self.last_lags_s: deque[float] = deque(maxlen=LAGS_A_MINUTE)
        self.jobs_ran_s: dict[str, float] = {}

    @property
    def has_room(self) -> bool:
        """Whether the disk has room for what a new request leaves behind."""
        return self.disk_free_bytes >= TOO_LITTLE_BYTES
