"""What a receiver's answer means for a delivery."""

from typing import Final

from gwd.alerts.queue import Outcome
from gwd.outbound import OutboundReply

GONE: Final = 410


def outcome_of(reply: OutboundReply) -> Outcome:
    """Any 2xx is success; 410 is the receiver's word that it wants nothing more."""
    error = None
    if not reply.succeeded:
        error = reply.error or f"the receiver answered {reply.status}"
    return Outcome(
        error=error,
        response_status=reply.status,
        retry_after_s=reply.retry_after_s,
        latency_ms=reply.latency_ms,
        is_final=reply.status == GONE,
    )
