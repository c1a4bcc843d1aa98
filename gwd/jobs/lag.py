"""Event loop lag: how much longer a short sleep takes than it should."""

import asyncio
from time import perf_counter
from typing import Final

from gwd.core.vitals import LAGS_A_MINUTE, Vitals

GAP_S: Final = 60 / LAGS_A_MINUTE


async def measure_lag(vitals: Vitals) -> None:
    """Measure four times a second until cancelled."""
    while True:
        began_s = perf_counter()
        await asyncio.sleep(GAP_S)
        late_s = max(0.0, perf_counter() - began_s - GAP_S)
        vitals.loop_lag.observe(late_s)
        vitals.last_lags_s.append(late_s)
