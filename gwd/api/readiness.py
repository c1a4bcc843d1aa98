"""Whether the node should be given requests: GET /readyz, and the check before new inference."""

from typing import Final

from gwd.api.node import Node
from gwd.core.errors import Draining, StorageUnavailable
from gwd.core.vitals import WRITER_SILENCE_S
from gwd.ledger import quarantine

MAX_QUEUED: Final = 1_000


def unready(node: Node) -> str | None:
    """Why a load balancer should look elsewhere; None when it need not."""
    if node.status.draining:
        return "draining"
    if node.status.quarantine is not None:
        return "quarantine"
    if node.clock.monotonic_s() - node.vitals.writer_seen_s > WRITER_SILENCE_S:
        return "the store's writer does not answer"
    if node.store.queued > MAX_QUEUED:
        return "too many writes are waiting"
    if not node.vitals.has_room:
        return "the disk is almost full"
    return None


def require_serving(node: Node) -> None:
    """Raises the 503 that fits when no new inference may begin."""
    if node.status.draining and not node.status.is_followed:
        raise Draining("the gateway is stopping; try again in a moment", retry_after_s=5)
    if node.status.quarantine is not None:
        raise quarantine.refusal()
    if not node.vitals.has_room:
        raise StorageUnavailable(
            "the gateway's disk is almost full, so nothing is served; the operator has to free space",
            retry_after_s=30,
        )
