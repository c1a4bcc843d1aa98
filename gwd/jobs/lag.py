"""Event loop lag: how much longer a short sleep takes than it should, and whether that is too much for long."""

import asyncio
import logging
from time import perf_counter
from typing import Final

from gwd.core.vitals import LAGS_A_MINUTE, Vitals

GAP_S: Final = 60 / LAGS_A_MINUTE

log = logging.getLogger(__name__)


async def measure_lag(vitals: Vitals) -> None:
    """Measure four times a second until cancelled; each change of the verdict is one line of the log."""
    lag = vitals.lag
    while True:
        began_s = perf_counter()
        await asyncio.sleep(GAP_S)
        now_s = perf_counter()
        late_s = max(0.0, now_s - began_s - GAP_S)
        vitals.loop_lag.observe(late_s)
        vitals.last_lags_s.append(late_s)
        if not lag.note(late_s, now_s):
            continue
        if lag.is_high:
            log.error("the event loop is %.2f s late: new inference is refused", late_s)
        else:
            log.warning("the event loop is in time again: inference is served")
