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
from gwd.store import Connection, Store

CHUNK: Final = 200
AT_MOST: Final = 100_000
"""Of each kind in one round; the next round goes on."""
_CLEAN_BEFORE: Final = "clean_before:"


async def forget(store: Store, clock: NodeClock) -> None:
    """Delete what is past its retention; nothing is deleted while the machine's clock is in doubt.

    Where a round stopped among an organization's generations is kept: the next one goes on there, also after a restart.
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
        clean_before = await store.read(_clean_before, organization_id)
        old = await store.read(
            activity.old_senders,
            organization_id,
            clean_before=clean_before,
            before_us=before_us,
            at_most=AT_MOST,
        )
        await _in_chunks(store, activity.forget_senders, old.generation_ids)
        if old.clean_before != clean_before:
            await store.write(_keep, organization_id, old.clean_before)
        counters = await store.read(
            spend.old_names, organization_id, before_us=before_us, at_most=AT_MOST
        )
        await _in_chunks(store, spend.forget_names, counters)


def _clean_before(connection: Connection, organization_id: str) -> int:
    row = connection.row(
        "SELECT value FROM node_fact WHERE name = ?", (_CLEAN_BEFORE + organization_id,)
    )
    return 1 if row is None else int(bytes(row[0]))


def _keep(connection: Connection, organization_id: str, clean_before: int) -> None:
    connection.execute(
        "INSERT INTO node_fact (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_CLEAN_BEFORE + organization_id, str(clean_before).encode()),
    )


async def _in_chunks(store: Store, forget: Callable[..., None], found: Sequence[Any]) -> None:
    for start in range(0, len(found), CHUNK):
        await store.write(forget, found[start : start + CHUNK])
