"""What is kept for a while only: replies of keyed requests, signed reasoning, tags where an organization says so."""

from gwd.activity import service as activity
from gwd.core.clock import US_PER_DAY, Clock
from gwd.orgs import settings
from gwd.replay import idempotency, signatures
from gwd.store import Store

CHUNK = 500


async def forget(store: Store, clock: Clock) -> None:
    """Drop what has had its time, in chunks that never hold the writer up."""
    now_us = clock.now_us()
    await store.write(idempotency.forget_old, now_us=now_us)
    await store.write(signatures.forget_old, now_us=now_us)
    for organization_id, days in await store.read(settings.retentions):
        before_us = now_us - days * US_PER_DAY
        changed = CHUNK
        while changed == CHUNK:
            changed = await store.write(
                activity.forget_tags, organization_id, before_us=before_us, at_most=CHUNK
            )
