"""Signed reasoning of tool turns, put back for clients that drop it and kept for their next turn."""

from collections.abc import Sequence

from gwd.core.clock import Clock
from gwd.core.events import Event, collect
from gwd.core.request import Request
from gwd.replay import signatures
from gwd.store import Store
from gwd.vendors.base import Signatures


async def with_kept_signatures(
    store: Store,
    memories: Sequence[Signatures],
    request: Request,
    organization_id: str,
    clock: Clock,
) -> Request:
    """The request with the reasoning of earlier tool turns that this client did not send along."""
    wanted = [call_id for each in memories for call_id in each.missing(request)]
    if not wanted:
        return request
    found = await store.read(signatures.load, organization_id, wanted, now_us=clock.now_us())
    for each in memories:
        request = each.reattach(request, found)
    return request


def remember(
    store: Store,
    memories: Sequence[Signatures],
    events: Sequence[Event],
    organization_id: str,
    clock: Clock,
) -> None:
    """Keep what the answer's tool calls were signed with; nobody waits for it."""
    parts = collect(events).parts
    blobs = {name: blob for each in memories for name, blob in each.remember(parts).items()}
    if blobs:
        store.submit(signatures.save, organization_id, blobs, now_us=clock.now_us())
