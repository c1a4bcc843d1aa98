"""anthropic_messages: the adapter for vendors that speak Anthropic's messages format.

Owns: build (one POST /v1/messages), decode of whole and streamed answers, its faults; the rules of api.md section 5
for this format; the pure half of the signature memory (signatures.py).
Does not own: HTTP, retries, the memory itself, money.
Invariants: what a client of the same family sent in fields we do not know goes out unchanged; every call in the
history has its result right behind it; thinking never goes out in a combination the vendor refuses.
Speaks to: core only.
"""

from collections.abc import Mapping
from typing import Final

from gwd.core.errors import Fault
from gwd.core.events import Event
from gwd.core.request import Family, FilePart, ImagePart, Request
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.anthropic_messages import signatures
from gwd.vendors.anthropic_messages.build import build, takes
from gwd.vendors.anthropic_messages.content import OWN_FORMAT
from gwd.vendors.anthropic_messages.decode import MessagesDecoder, decode
from gwd.vendors.base import Signatures, StreamDecoder
from gwd.vendors.faults import fault_of
from gwd.vendors.proofs import without_proofs


class AnthropicMessages:
    """The adapter; stateless."""

    name = "anthropic_messages"
    family: Family | None = "anthropic_messages"
    signatures: Signatures | None = signatures

    def build(self, request: Request, target: Target) -> UpstreamCall:
        return build(request, target)

    def takes(self, part: ImagePart | FilePart, request: Request, target: Target) -> bool:
        return takes(part, request)

    def decode(self, body: bytes, request: Request, target: Target) -> list[Event]:
        return decode(body, request, target)

    def decoder(self, request: Request, target: Target) -> StreamDecoder:
        return MessagesDecoder(request, target)

    def without_signatures(self, request: Request) -> Request:
        return without_proofs(request, OWN_FORMAT)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        return fault_of(status, headers, body)


ADAPTER: Final = AnthropicMessages()
