"""outbound: calls to addresses that users typed: webhooks, chat channels, payment hooks.

Owns: which addresses may be called at all, the client that calls them.
Does not own: what is sent, how often it is tried, the calls to model vendors (upstream).
Invariants: a host is resolved once for each call, every answer is judged, and the connection goes to a judged address;
no redirects, no proxy, no cookies; of an answer only status and delay are used.
Speaks to: core. httpx is imported here alone, when it is first needed.
"""

from gwd.outbound.client import OutboundClient, OutboundReply
from gwd.outbound.guard import AddressRefused, Rules, check_url

__all__ = ["AddressRefused", "OutboundClient", "OutboundReply", "Rules", "check_url"]
