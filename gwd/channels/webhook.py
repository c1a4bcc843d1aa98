"""The signed webhook: the alert as JSON, signed over the exact bytes that are sent."""

import msgspec

from gwd.alerts.queue import Message, Outcome
from gwd.channels.answers import outcome_of
from gwd.outbound import OutboundClient
from gwd.outbound.signature import headers


async def send(
    client: OutboundClient, url: str, message: Message, secret: str, before: str, *, now_s: int
) -> Outcome:
    """One attempt; `before` is the secret that still counts beside the new one, or empty."""
    [alert] = message.alerts
    body = msgspec.json.encode(alert)
    signed = headers(alert.type, message.delivery_ids[0], secret, now_s, body, before=before)
    return outcome_of(await client.post(url, body=body, headers=signed))
