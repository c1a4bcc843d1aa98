"""What every adapter offers the pipeline."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final, Protocol

from gwd.core.errors import Fault
from gwd.core.events import Event
from gwd.core.extras import Given
from gwd.core.request import FilePart, ImagePart, Part, Request
from gwd.core.sse import Frame
from gwd.core.target import Target, UpstreamCall
from gwd.core.usage import Usage
from gwd.core.vendor_format import VendorFormat

MAX_CALLS: Final = 512
MAX_PARTS: Final = 20_000
MANY_PIECES: Final = 1_000


class UndecodableError(ValueError):
    """A vendor's answer of status 200 that is not what its format says; the attempt is an `upstream_error`."""


def together(
    pending: list[tuple[str, dict[str, Any] | None]],
) -> list[tuple[str, dict[str, Any] | None]]:
    """Pieces of a part that waited for its turn; very many go out as few, since all of them go out at once."""
    if len(pending) <= MANY_PIECES:
        return pending
    joined: list[tuple[str, dict[str, Any] | None]] = []
    for has_extras, run in groupby(pending, key=lambda piece: piece[1] is not None):
        if has_extras:
            joined += run
        else:
            joined.append(("".join(text for text, _ in run), None))
    return joined


class PartCount:
    """How many parts an answer has; beyond what any model says it is none of its format."""

    __slots__ = ("_calls", "_parts")

    def __init__(self) -> None:
        self._parts = self._calls = 0

    def add(self, *, is_call: bool) -> None:
        """One more part. Raises UndecodableError."""
        self._parts += 1
        self._calls += is_call
        if self._calls > MAX_CALLS:
            raise UndecodableError(f"it has more than {MAX_CALLS} tool calls")
        if self._parts > MAX_PARTS:
            raise UndecodableError(f"it has more than {MAX_PARTS} parts")


class StreamDecoder(Protocol):
    """Decodes one streamed answer, frame by frame, into events that follow the grammar."""

    @property
    def usage(self) -> Usage | None:
        """What the vendor has reported so far: the bill of a stream that breaks off or whose client leaves."""
        ...

    @property
    def given(self) -> Given | None:
        """What the vendor has said so far of the priced extras; None when it has said nothing of them."""
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


class Signatures(Protocol):
    """How a format's signed reasoning is kept over turns for clients that do not send it back.

    A blob is remembered under the id of the tool call it belongs to and means something to this format only.
    """

    def remember(self, parts: Iterable[Part]) -> dict[str, bytes]:
        """Blob by tool call id for one finished answer; empty if there is nothing to keep."""
        ...

    def missing(self, request: Request) -> tuple[str, ...]:
        """The call ids whose blobs the request would need."""
        ...

    def reattach(self, request: Request, memory: Mapping[str, bytes]) -> Request:
        """The request with what is remembered put back."""
        ...


class Adapter(Protocol):
    """One upstream API shape: a folder beside this file, named as its format, that gives its `ADAPTER`.

    `format` is what the other rooms have to know of it. `signatures` is None where nothing has to be remembered
    between turns.
    """

    format: VendorFormat
    signatures: Signatures | None

    def build(self, request: Request, target: Target) -> UpstreamCall:
        """The call for this target; it streams exactly if the client streams. Raises InvalidRequest for content that
        this format cannot carry at all (the pipeline then skips the target, or refuses if none is left).
        `UpstreamCall.dropped` names the parameters left out."""
        ...

    def takes(self, part: ImagePart | FilePart, request: Request, target: Target) -> bool:
        """Whether this format can carry a picture or file of the request. May raise InvalidRequest for: no."""
        ...

    def decode(self, body: bytes, request: Request, target: Target) -> list[Event]:
        """A whole answer of status 200 as events. Raises UndecodableError."""
        ...

    def decoder(self, request: Request, target: Target) -> StreamDecoder:
        """A fresh decoder for one streamed answer."""
        ...

    def without_signatures(self, request: Request) -> Request:
        """The request for the one retry after the vendor refused a signature of earlier reasoning: without any."""
        ...

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        """Why an answer of another status than 200 failed. Header names are lower case."""
        ...
