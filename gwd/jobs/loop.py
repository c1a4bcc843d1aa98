"""The loop that runs a job at fixed gaps until it is cancelled; a run that raises is logged, and the next one comes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


async def every(
    gap_s: float,
    job: Callable[[], Awaitable[None]],
    *,
    name: str,
    ran: Callable[[str], None] | None = None,
) -> None:
    """Run `job` with `gap_s` between the end of one run and the start of the next; `ran` hears of what went well."""
    while True:
        await asyncio.sleep(gap_s)
        try:
            await job()
            if ran is not None:
                ran(name)
        except Exception:
            log.exception("job %s failed", name)
