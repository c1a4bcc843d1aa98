"""gemini: the adapter for vendors that speak Google's generateContent format.

Owns: build (one POST models/…:generateContent, or streamGenerateContent), decode of whole and streamed answers, its
faults, its embeddings; the rules of api.md section 5 for this format; the pure half of the signature memory.
Does not own: HTTP, retries, the memory itself, money.
Invariants: every call in the history has exactly one result, in the order of the calls; a signature goes back on the
kind of part it came with; an answer without a finish reason is never taken for a complete one.
Speaks to: core only.
"""

from collections.abc import Mapping
from typing import Final

from gwd.core.errors import Fault
from gwd.core.events import Event
from gwd.core.request import Embed, Family, FilePart, ImagePart, Request
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.base import Signatures
from gwd.vendors.faults import fault_of
from gwd.vendors.gemini import embeddings, signatures
from gwd.vendors.gemini.build import build
from gwd.vendors.gemini.content import FORMAT, Contents
from gwd.vendors.gemini.decode import GeminiDecoder, decode
from gwd.vendors.proofs import without_proofs


class Gemini:
    """Stateless; one instance serves every endpoint of this format. No client speaks it, so there is no family."""

    name = "gemini"
    family: Family | None = None
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
        return without_proofs(request, FORMAT)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        return fault_of(status, headers, body)


ADAPTER: Final = Gemini()
