"""What every adapter offers the pipeline."""

from collections.abc import Mapping
from typing import Protocol

from gwd.core.errors import Fault
from gwd.core.events import Event
from gwd.core.request import Family, Request
from gwd.core.sse import Frame
from gwd.core.target import Target, UpstreamCall
from gwd.core.usage import Usage


class UndecodableError(ValueError):
    """A vendor's answer of status 200 that is not what its format says; the attempt is an `upstream_error`."""


class StreamDecoder(Protocol):
    """Decodes one streamed answer, frame by frame, into events that follow the grammar."""

    @property
    def usage(self) -> Usage | None:
        """What the vendor has reported so far: the bill of a stream that breaks off or whose client leaves."""
        ...

    def feed(self, frame: Frame) -> list[Event]:
        """Events that this frame completes. An error frame becomes `Failed`; after it nothing more is decoded.

        Raises UndecodableError for data that is not JSON or not of the format.
        """
        ...

    def close(self) -> list[Event]:
        """The upstream ended. Open parts are closed and `Finished` emitted if the answer was complete in substance
        (a finish reason arrived, or text and a usage); otherwise `Failed` with reason `upstream_error`.
        Nothing is emitted twice: after a terminal event this returns an empty list."""
        ...


class Adapter(Protocol):
    """One upstream API shape."""

    name: str
    family: Family | None

    def build(self, request: Request, target: Target) -> UpstreamCall:
        """The call for this target; it streams exactly if the client streams. Raises InvalidRequest for content that
        this format cannot carry at all (the pipeline then skips the target, or refuses if none is left).
        `UpstreamCall.dropped` names the parameters left out."""
        ...

    def decode(self, body: bytes, request: Request, target: Target) -> list[Event]:
        """A whole answer of status 200 as events. Raises UndecodableError."""
        ...

    def decoder(self, request: Request, target: Target) -> StreamDecoder:
        """A fresh decoder for one streamed answer."""
        ...

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        """Why an answer of another status than 200 failed. Header names are lower case."""
        ...
