"""Event loop lag: how much longer a short sleep takes than it should."""

import asyncio
from time import perf_counter
from typing import Final

from gwd.core.counters import Histogram

GAP_S: Final = 0.25


async def measure_lag(lag: Histogram) -> None:
    """Measure four times a second until cancelled."""
    while True:
        began_s = perf_counter()
        await asyncio.sleep(GAP_S)
        lag.observe(max(0.0, perf_counter() - began_s - GAP_S))
