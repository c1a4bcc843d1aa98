"""The adapter object of the responses format."""

from collections.abc import Mapping
from typing import Final

from gwd.core.errors import Fault
from gwd.core.events import Event
from gwd.core.request import FilePart, ImagePart, Request
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.base import Adapter, Signatures
from gwd.vendors.faults import fault_of
from gwd.vendors.openai_responses.build import build
from gwd.vendors.openai_responses.content import Contents
from gwd.vendors.openai_responses.decode import ResponsesStreamDecoder, decode
from gwd.vendors.openai_responses.format import FORMAT, SIGNATURE_FORMAT
from gwd.vendors.signatures import without_signatures


class OpenaiResponses:
    """Stateless; one instance serves every endpoint of this format."""

    format = FORMAT
    signatures: Signatures | None = None

    def build(self, request: Request, target: Target) -> UpstreamCall:
        return build(request, target)

    def takes(self, part: ImagePart | FilePart, request: Request, target: Target) -> bool:
        return bool(Contents(request, target.flags).inputs([part]))

    def decode(self, body: bytes, request: Request, target: Target) -> list[Event]:
        return decode(body, request, target)

    def decoder(self, request: Request, target: Target) -> ResponsesStreamDecoder:
        return ResponsesStreamDecoder(request, target)

    def without_signatures(self, request: Request) -> Request:
        return without_signatures(request, SIGNATURE_FORMAT)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        return fault_of(status, headers, body)


ADAPTER: Final[Adapter] = OpenaiResponses()
