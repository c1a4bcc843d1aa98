"""The adapter object of the embeddings format."""

from collections.abc import Mapping
from typing import Final

from gwd.core.errors import Fault
from gwd.core.events import Event
from gwd.core.request import FilePart, ImagePart, Request
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.base import Adapter, Signatures
from gwd.vendors.faults import fault_of
from gwd.vendors.openai_embeddings.build import build
from gwd.vendors.openai_embeddings.decode import NoStream, decode
from gwd.vendors.openai_embeddings.format import FORMAT


class OpenaiEmbeddings:
    """Stateless; one instance serves every endpoint of this format."""

    format = FORMAT
    signatures: Signatures | None = None

    def build(self, request: Request, target: Target) -> UpstreamCall:
        return build(request, target)

    def takes(self, part: ImagePart | FilePart, request: Request, target: Target) -> bool:
        return False

    def decode(self, body: bytes, request: Request, target: Target) -> list[Event]:
        return decode(body, request)

    def decoder(self, request: Request, target: Target) -> NoStream:
        return NoStream()

    def without_signatures(self, request: Request) -> Request:
        return request

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        return fault_of(status, headers, body)


ADAPTER: Final[Adapter] = OpenaiEmbeddings()
