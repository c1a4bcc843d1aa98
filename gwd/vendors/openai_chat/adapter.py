"""The adapter object of the chat completions format."""

from collections.abc import Mapping
from typing import Final

from gwd.core.errors import Fault
from gwd.core.events import Event
from gwd.core.request import FilePart, ImagePart, Request
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.base import Adapter, Signatures
from gwd.vendors.faults import fault_of
from gwd.vendors.openai_chat import signatures
from gwd.vendors.openai_chat.build import build
from gwd.vendors.openai_chat.content import ContentBuilder
from gwd.vendors.openai_chat.decode import ChatStreamDecoder, decode
from gwd.vendors.openai_chat.foreign_signatures import without_signatures
from gwd.vendors.openai_chat.format import FORMAT


class OpenaiChat:
    """Stateless; one instance serves every endpoint of this format."""

    format = FORMAT
    signatures: Signatures | None = signatures

    def build(self, request: Request, target: Target) -> UpstreamCall:
        return build(request, target)

    def takes(self, part: ImagePart | FilePart, request: Request, target: Target) -> bool:
        return bool(ContentBuilder(request, target).build([part]))

    def decode(self, body: bytes, request: Request, target: Target) -> list[Event]:
        return decode(body, request, target)

    def decoder(self, request: Request, target: Target) -> ChatStreamDecoder:
        return ChatStreamDecoder(request, target)

    def without_signatures(self, request: Request) -> Request:
        return without_signatures(request)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        return fault_of(status, headers, body)


ADAPTER: Final[Adapter] = OpenaiChat()
