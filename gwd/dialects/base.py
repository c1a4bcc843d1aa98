"""What every dialect offers the pipeline and the API."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from gwd.core.errors import GatewayError
from gwd.core.events import Completion, Event, Settled
from gwd.core.request import DialectName, Request
from gwd.core.sse import COMMENT
from gwd.core.usage import Usage


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the pipeline knows about the answer when its first output arrives.

    `model` and `vendor` are the slug and the vendor's display name that serve; `prompt` holds the input counts for
    dialects that state them before the answer. `id_suffix` is shared by gen-, msg_ and resp_ ids.
    `request_id` is the value of the x-request-id header, for errors told inside the stream.
    """

    generation_id: str
    created_s: int
    model: str
    vendor: str
    prompt: Usage = Usage()
    request_id: str = ""

    @property
    def id_suffix(self) -> str:
        return self.generation_id.removeprefix("gen-")


class Framing(NamedTuple):
    """How a stream is written: its content type, and what keeps its connection alive before there is a renderer."""

    content_type: str
    idle: bytes


EVENT_STREAM: Final = Framing("text/event-stream; charset=utf-8", COMMENT)


class Renderer(Protocol):
    """Turns the events of one generation into the client's bytes. It holds its closing frames until `Settled`.

    Events follow the grammar of core/events; a `Failed` carries `error`, what the client is told.
    """

    def feed(self, events: Sequence[Event]) -> bytes:
        """Frames for these events, joined; empty when there is nothing to say yet. `core.sse.safe` is the caller's."""
        ...

    def idle(self) -> bytes:
        """What keeps a silent connection alive at this point of the stream: a comment or a ping."""
        ...

    def whole(self, completion: Completion, settled: Settled) -> bytes:
        """The whole answer as one JSON body. Raises GatewayError for one that this API shape cannot tell."""
        ...


class Dialect(Protocol):
    """One API shape."""

    name: DialectName
    path: str
    framing: Framing

    def parse(self, body: bytes, headers: Mapping[str, str]) -> Request:
        """The client's body (UTF-8 JSON) and lower-case headers to a Request.

        Raises InvalidRequest (its subclasses) with `param` naming the field. `models`, `provider`, `usage`,
        `session_id`, `user` and the X-GW headers are read by `dialects.extensions` in the same way for all.
        """
        ...

    def renderer(self, request: Request, reply: Reply) -> Renderer:
        """A renderer for one generation."""
        ...

    def error(self, error: GatewayError, request_id: str) -> bytes:
        """The JSON body of an HTTP error in this dialect's envelope; status and headers are the API's."""
        ...
