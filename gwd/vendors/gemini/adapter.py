"""The adapter object of Google's generateContent format."""

from collections.abc import Mapping
from typing import Final

from gwd.core.errors import Fault
from gwd.core.events import Event
from gwd.core.request import Embed, FilePart, ImagePart, Request
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.base import Adapter, Signatures
from gwd.vendors.faults import fault_of
from gwd.vendors.gemini import embeddings, signatures
from gwd.vendors.gemini.build import build
from gwd.vendors.gemini.content import Contents
from gwd.vendors.gemini.decode import GeminiDecoder, decode
from gwd.vendors.gemini.format import FORMAT, SIGNATURE_FORMAT
from gwd.vendors.signatures import without_signatures


class Gemini:
    """Stateless; one instance serves every endpoint of this format."""

    format = FORMAT
    signatures: Signatures | None = signatures

    def build(self, request: Request, target: Target) -> UpstreamCall:
        return build(request, target)

    def takes(self, part: ImagePart | FilePart, request: Request, target: Target) -> bool:
        return bool(Contents(request, target).part(part))

    def decode(self, body: bytes, request: Request, target: Target) -> list[Event]:
        if isinstance(request.body, Embed):
            return embeddings.decode(body, request.body)
        return decode(body, request)

    def decoder(self, request: Request, target: Target) -> GeminiDecoder:
        return GeminiDecoder(request)

    def without_signatures(self, request: Request) -> Request:
        return without_signatures(request, SIGNATURE_FORMAT)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        return fault_of(status, headers, body)


ADAPTER: Final[Adapter] = Gemini()
