"""The node's vital signs: when the writer last answered, what is left of disk and memory, how late the loop is."""

from collections import deque
from typing import Final

from gwd.core.counters import DURATIONS_S, Histogram
from gwd.core.pressure import Pressure

WRITER_SILENCE_S: Final = 10.0  # longer means that it is stuck
LAGS_A_MINUTE: Final = 240
GIB: Final = 1024**3
LITTLE_BYTES: Final = GIB  # worth an alert
TOO_LITTLE_BYTES: Final = GIB // 4  # below it no new inference begins
LAG_BEGINS_S: Final = 3.0
LAG_ENDS_S: Final = 2.0
MUCH_MEMORY: Final = 0.85  # of what the node may use; above it no new inference begins
ENOUGH_MEMORY: Final = 0.80  # down to which it has to come again


class Vitals:
    """Written by the jobs that look, read by whoever decides; one for the node.

    `writer_seen_s` is on the monotonic clock, as are the ends of the last runs in `jobs_ran_s`. `disk_free_bytes` is
    what this process may still use. `last_lags_s` are those of the last minute. `lag` and `memory` say whether the
    event loop is too late and whether too much of `memory_max_bytes` is in use; the value of `memory` is the share.
    """

    __slots__ = (
        "disk_free_bytes",
        "jobs_ran_s",
        "lag",
        "last_lags_s",
        "loop_lag",
        "memory",
        "memory_max_bytes",
        "writer_seen_s",
    )

    def __init__(self, *, writer_seen_s: float, lag_s: float, memory_max_bytes: int) -> None:
        self.writer_seen_s = writer_seen_s
        self.disk_free_bytes = LITTLE_BYTES
        self.loop_lag = Histogram(DURATIONS_S)
        self.lag = Pressure(above=lag_s, below=lag_s / 2, begins_s=LAG_BEGINS_S, ends_s=LAG_ENDS_S)
        self.memory_max_bytes = memory_max_bytes
        self.memory = Pressure(above=MUCH_MEMORY, below=ENOUGH_MEMORY, begins_s=0.0, ends_s=0.0)
        self.last_lags_s: deque[float] = deque(maxlen=LAGS_A_MINUTE)
        self.jobs_ran_s: dict[str, float] = {}

    @property
    def has_room(self) -> bool:
        """Whether the disk has room for what a new request leaves behind."""
        return self.disk_free_bytes >= TOO_LITTLE_BYTES
