"""The adapter object of the messages format."""

from collections.abc import Mapping
from typing import Final

from gwd.core.errors import Fault
from gwd.core.events import Event
from gwd.core.request import FilePart, ImagePart, Request
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.anthropic_messages import signatures
from gwd.vendors.anthropic_messages.build import build, takes
from gwd.vendors.anthropic_messages.decode import MessagesDecoder, decode
from gwd.vendors.anthropic_messages.format import FORMAT, SIGNATURE_FORMAT
from gwd.vendors.base import Adapter, Signatures, StreamDecoder
from gwd.vendors.faults import fault_of
from gwd.vendors.signatures import without_signatures


class AnthropicMessages:
    """The adapter; stateless."""

    format = FORMAT
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
        return without_signatures(request, SIGNATURE_FORMAT)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        return fault_of(status, headers, body)


ADAPTER: Final[Adapter] = AnthropicMessages()
