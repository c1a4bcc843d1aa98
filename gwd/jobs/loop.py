"""One loop for every job: at fixed gaps, for ever, whatever a single run raises."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


async def every(gap_s: float, job: Callable[[], Awaitable[None]], *, name: str) -> None:
    """Run `job` with `gap_s` between the end of one run and the start of the next."""
    while True:
        await asyncio.sleep(gap_s)
        try:
            await job()
        except Exception:
            log.exception("job %s failed", name)
