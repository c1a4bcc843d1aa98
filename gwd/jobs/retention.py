"""What is kept for a while only: replies of keyed requests, signed reasoning, alerts and their deliveries, marks of
periods long past, sessions of browsers, who and what asked where an organization says so.

A reader finds what is past its retention, however long the history is; the writer deletes it in short lists.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from gwd import spend
from gwd.activity import service as activity
from gwd.alerts import history, marks
from gwd.core.clock import US_PER_DAY
from gwd.core.node_clock import NodeClock
from gwd.management import sessions
from gwd.orgs import settings
from gwd.replay import idempotency, signatures
from gwd.store import Store

CHUNK: Final = 200
AT_MOST: Final = 100_000
"""Of each kind in one round; the next round goes on."""


async def forget(store: Store, clock: NodeClock, clean_before: dict[str, int]) -> None:
    """Delete what is past its retention; nothing is deleted while the machine's clock is in doubt.

    `clean_before` is where the round before stopped among each organization's generations, and is moved on: empty at
    start, so that the first round looks through all of them.
    """
    now_us = clock.due_us()
    for kind in (idempotency, signatures, marks, sessions):
        found = await store.read(kind.old, now_us=now_us, at_most=AT_MOST)
        await _in_chunks(store, partial(kind.forget, now_us=now_us), found)
    for find, drop in (
        (history.old_deliveries, history.forget_deliveries),
        (history.old_alerts, history.forget_alerts),  # after their deliveries, which name them
    ):
        await _in_chunks(store, drop, await store.read(find, now_us=now_us, at_most=AT_MOST))
    for organization_id, days in await store.read(settings.retentions):
        before_us = now_us - days * US_PER_DAY
        old = await store.read(
            activity.old_senders,
            organization_id,
            clean_before=clean_before.get(organization_id, 1),
            before_us=before_us,
            at_most=AT_MOST,
        )
        await _in_chunks(store, activity.forget_senders, old.generation_ids)
        clean_before[organization_id] = old.clean_before
        counters = await store.read(
            spend.old_names, organization_id, before_us=before_us, at_most=AT_MOST
        )
        await _in_chunks(store, spend.forget_names, counters)


async def _in_chunks(store: Store, forget: Callable[..., None], found: Sequence[Any]) -> None:
    for start in range(0, len(found), CHUNK):
        await store.write(forget, found[start : start + CHUNK])
