"""How late the event loop is: it sleeps a short while and looks at what that took."""

import asyncio
from time import perf_counter
from typing import Final

from gwd.core.counters import Histogram

GAP_S: Final = 0.25


async def measure_lag(lag: Histogram) -> None:
    """For ever, four times a second."""
    while True:
        began_s = perf_counter()
        await asyncio.sleep(GAP_S)
        lag.observe(max(0.0, perf_counter() - began_s - GAP_S))
