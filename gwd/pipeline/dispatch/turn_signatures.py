"""Signed reasoning of tool turns, put back for clients that drop it and kept for their next turn.

What a model thought is part of its answer, so it is kept sealed; what does not open is as if it had not been kept.
"""

from collections.abc import Sequence

from gwd.core.clock import Clock
from gwd.core.events import Event, collect
from gwd.core.request import Request
from gwd.credentials.vault import Binding, Vault
from gwd.replay import signatures
from gwd.store import Store
from gwd.vendors.base import Signatures


async def with_kept_signatures(
    store: Store,
    memories: Sequence[Signatures],
    request: Request,
    organization_id: str,
    vault: Vault,
    clock: Clock,
) -> Request:
    """The request with the reasoning of earlier tool turns that this client did not send along."""
    wanted = [call_id for each in memories for call_id in each.missing(request)]
    if not wanted:
        return request
    found = await store.read(signatures.load, organization_id, wanted, now_us=clock.now_us())
    memory = {
        call_id: blob
        for call_id, sealed in found.items()
        if (blob := vault.open_for_a_while(sealed, _binding(organization_id, call_id))) is not None
    }
    for each in memories:
        request = each.reattach(request, memory)
    return request


def remember(
    store: Store,
    memories: Sequence[Signatures],
    events: Sequence[Event],
    organization_id: str,
    vault: Vault,
    clock: Clock,
) -> None:
    """Keep what the answer's tool calls were signed with; nobody waits for it."""
    parts = collect(events).parts
    blobs = {
        call_id: vault.seal_for_a_while(blob, _binding(organization_id, call_id))
        for each in memories
        for call_id, blob in each.remember(parts).items()
    }
    if blobs:
        store.submit(signatures.save, organization_id, blobs, now_us=clock.now_us())


def _binding(organization_id: str, call_id: str) -> Binding:
    return Binding(purpose="signature", organization_id=organization_id, row_id=call_id, origin="")
