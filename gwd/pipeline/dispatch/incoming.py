"""The events of one attempt on their way from the decoder to the sink, a slice at a time.

What one read or one whole answer holds may be a great deal: other requests have their turn between its slices.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from gwd.core.clock import Clock
from gwd.core.errors import Fault
from gwd.core.events import (
    OUTPUT_EVENTS,
    Event,
    Failed,
    Finished,
    PartDelta,
    PartStarted,
    Started,
)
from gwd.core.lenient_json import UNREADABLE
from gwd.core.request import Embed, Request
from gwd.core.sse import Frame, SseError
from gwd.pipeline.dispatch.outcome import Received
from gwd.pipeline.plan.routing import Planned
from gwd.vendors.base import Adapter, StreamDecoder, UndecodableError
from gwd.vendors.structure import check_structure

SLICE_BYTES: Final = 64 * 1024
SLICE_EVENTS: Final = 2_000
UNDECODABLE: Final = (UndecodableError, SseError, *UNREADABLE)


class Sink(Protocol):
    """Where events go: the client's side. `was_behind` tells that the vendor had to wait for the client."""

    was_behind: bool

    def begin(self, planned: Planned, received: Received) -> None:
        """The first output of this target is there; `received` goes on telling what came of it."""
        ...

    async def emit(self, events: list[Event]) -> None:
        """Events of the begun target, `Started` first."""
        ...


class Broken(Exception):
    """The attempt failed; the fault says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Incoming:
    """The events of one attempt on their way to the sink.

    `on_first_event` is called once, when a stream has begun with anything but its failure.
    """

    def __init__(
        self,
        request: Request,
        planned: Planned,
        adapter: Adapter,
        received: Received,
        sink: Sink,
        clock: Clock,
    ) -> None:
        self.has_output = False
        self.ended = False
        self.on_first_event: Callable[[], None] | None = None
        self._received = received
        self._sink = sink
        self._clock = clock
        self._request = request
        self._planned = planned
        self._adapter = adapter
        self._held: list[Event] = []
        self._is_reasoning = False

    def check_kind(self, content_type: str) -> None:
        """A whole answer comes in JSON or (some servers stream whatever was asked) in SSE."""
        if content_type == "text/html":
            raise UndecodableError("it is a web page")

    def decoded(self, body: bytes) -> list[Event]:
        """The events of a whole answer. Raises UndecodableError, also for more structure than a client may send."""
        check_structure(body, has_vectors=isinstance(self._request.body, Embed))
        return self._adapter.decode(body, self._request, self._planned.target)

    async def take_whole(self, events: list[Event], size: int) -> None:
        """The events of a whole answer of `size` bytes. One that failed gives the client nothing."""
        self._received.size = size
        failed = self._note(events)
        if failed is not None:
            raise Broken(failed.fault)
        if any(type(event) in OUTPUT_EVENTS for event in events):
            self._begin()
            self._received.last_output_s = self._received.first_output_s
            await self._emit(events)
        if not self.ended:
            raise UndecodableError("it has no end")

    async def take(self, events: list[Event], decoder: StreamDecoder) -> None:
        """Note what the events say and pass them on; the first output opens the sink.

        Raises Broken for a `Failed`: what came before it has been passed on if output had begun.
        """
        if not events:
            return
        failed = self._note(events)
        if self.on_first_event is not None and failed is None:
            self.on_first_event()
            self.on_first_event = None
        if (usage := decoder.usage) is not None:
            self._received.reported = usage
        if decoder.given is not None:
            self._received.given = decoder.given
        if failed is not None:
            events = [event for event in events if not isinstance(event, Failed)]
        if not self.has_output:
            self._held += events
            if not any(isinstance(event, OUTPUT_EVENTS) for event in events):
                events = []
            else:
                self._begin()
                events, self._held = self._held, []
        if events:
            self._received.last_output_s = self._clock.monotonic_s()
            await self._emit(events)
        if failed is not None:
            raise Broken(failed.fault)

    async def _emit(self, events: list[Event]) -> None:
        if len(events) <= SLICE_EVENTS:
            await self._sink.emit(events)
            return
        for start in range(0, len(events), SLICE_EVENTS):
            await self._sink.emit(events[start : start + SLICE_EVENTS])
            await asyncio.sleep(0)

    def _begin(self) -> None:
        self.has_output = True
        self._received.first_output_s = self._clock.monotonic_s()
        self._sink.begin(self._planned, self._received)

    def _note(self, events: list[Event]) -> Failed | None:
        received = self._received
        texts = received.reasonings if self._is_reasoning else received.texts
        for event in events:
            if type(event) is PartDelta:
                texts.append(event.text)
            elif type(event) is PartStarted:
                self._is_reasoning = event.kind == "reasoning"
                texts = received.reasonings if self._is_reasoning else received.texts
                if event.name:
                    received.texts.append(event.name)
            elif type(event) is Started:
                received.upstream_id = event.upstream_id
            elif type(event) is Finished:
                received.finished = event
                if event.usage is not None:
                    received.reported = event.usage
                if event.given is not None:
                    received.given = event.given
                self.ended = True
            elif type(event) is Failed:
                return event
        return None


def decoded_frames(
    decoder: StreamDecoder, frames: list[Frame], *, is_last: bool
) -> tuple[list[Event], Exception | None]:
    """The events of the frames up to one that cannot be decoded, and what was wrong with that.

    What came before it counts, however the network has cut the stream into pieces.
    """
    events: list[Event] = []
    try:
        if frames:
            check_structure(frames[0].data)
        feed = decoder.feed
        for frame in frames:
            events += feed(frame)
        if is_last:
            events += decoder.close()
    except UNDECODABLE as error:
        return events, error
    return events, None


def slices(data: bytes) -> Iterator[bytes]:
    """A read in pieces; the empty one that ends a stream is a piece too."""
    if len(data) <= SLICE_BYTES:
        yield data
        return
    for start in range(0, len(data), SLICE_BYTES):
        yield data[start : start + SLICE_BYTES]


def has_end(events: list[Event]) -> bool:
    return any(isinstance(event, Finished) for event in events)
