"""What the client of one generation is given: its head once, then frames, and signs of life while there are none."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from gwd.core import sse
from gwd.core.clock import US_PER_S, Clock
from gwd.core.errors import Fault, GatewayError
from gwd.core.events import Event, Failed, collect
from gwd.core.request import Request
from gwd.core.usage import Usage
from gwd.dialects.base import Dialect, Renderer, Reply
from gwd.pipeline.admit.identity import GenerationIdentity
from gwd.pipeline.client.frame_queue import PIECE_BYTES, FrameQueue
from gwd.pipeline.client.head import Head
from gwd.pipeline.dispatch.offload import Offload
from gwd.pipeline.dispatch.outcome import Outcome, Received
from gwd.pipeline.plan.routing import Planned
from gwd.pipeline.settle.bill import opening_usage
from gwd.pipeline.settle.final_record import FinalRecord, show
from gwd.pricing.hold import LARGE_BYTES, Demand

STREAM_COMMIT_S: Final = 25.0
KEEPALIVE_S: Final = 10.0


class ClientSide:
    """The sink of dispatch: a stream's events are rendered as they come, a whole answer's are kept until its end.

    `head` resolves once; `frame_queue` then carries the stream's frames. `left` tells that nobody waits any more,
    `was_behind` that the vendor had to wait for the client. `events` are those that were kept.
    """

    def __init__(
        self,
        request: Request,
        dialect: Dialect,
        identity: GenerationIdentity,
        *,
        clock: Clock,
        offload: Offload,
    ) -> None:
        self.head: asyncio.Future[Head] = asyncio.get_running_loop().create_future()
        self.frame_queue = FrameQueue()
        self.left = False
        self.was_behind = False
        self.events: list[Event] = []
        self._request = request
        self._dialect = dialect
        self._identity = identity
        self._clock = clock
        self._offload = offload
        self._keeps_events = not request.stream
        self._received: Received | None = None
        self._renderer: Renderer | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_push_s = 0.0

    def leave(self) -> None:
        """The client has left; frames that it has not read are dropped."""
        self.left = True
        self.frame_queue.abandon()

    def keep_events(self) -> None:
        """Keep the events of a stream, too: somebody wants to see them at its end."""
        self._keeps_events = True

    def wait_for_output(self, served: Callable[[], Planned]) -> None:
        """Without output in 25 s a stream's connection needs a sign of life, while failover goes on behind it."""
        if not self._request.stream:
            return

        def commit_late() -> None:
            self._commit(served())
            self._push(self._dialect.framing.idle)

        self._timer = asyncio.get_running_loop().call_later(STREAM_COMMIT_S, commit_late)

    # --- the sink of dispatch

    def begin(self, planned: Planned, received: Received) -> None:
        """The first output is there: a stream's head can go out."""
        if self._request.stream:
            self._received = received
            self._renderer = self._renderer_for(planned, received.reported, received.demand)
            self._commit(planned)

    async def emit(self, events: list[Event]) -> None:
        """Keep the events or render and hand them over; wait while the client is far behind."""
        if self._keeps_events:
            self.events += events
        if self._renderer is None or self._received is None:
            return
        await self._render(self._renderer, events, self._received.size)
        if not self.frame_queue.has_room:
            self.was_behind = True
            await self.frame_queue.room()

    # --- the end

    async def whole(self, outcome: Outcome, final_record: FinalRecord) -> bytes:
        """A whole answer as one body. Raises GatewayError for one that its dialect cannot tell."""
        assert outcome.serving is not None
        renderer = self._renderer_for(outcome.serving, outcome.reported, outcome.demand)

        def body() -> bytes:
            return renderer.whole(collect(self.events), final_record.settled)

        return await self._offload.run(outcome.size, body) if outcome.size > LARGE_BYTES else body()

    async def close(
        self, outcome: Outcome, final_record: FinalRecord, body: bytes | None, *, primary: Planned
    ) -> None:
        """Render the last event, if the client is still there. `primary` is named where no target was tried."""
        if self.left:
            return
        error = outcome.error
        show(final_record.settled.receipt, error, outcome)
        if error is not None and not self.head.done():
            self._answer(Head(served=outcome.target, error=error))
            return
        if not self._request.stream:
            self._answer(Head(served=outcome.target, body=body))
            return
        if self._renderer is None:
            shown = outcome.trying or primary
            self._renderer = self._renderer_for(shown, outcome.reported, outcome.demand)
        said = 0
        if self._dialect.name == "responses":  # it says everything once more at the end
            said = sum(map(len, outcome.texts)) + sum(map(len, outcome.reasonings))
        await self._render(self._renderer, _last_events(final_record, error), said)

    def end(self, head: Head) -> None:
        """Nothing more goes to the client; one that was told nothing yet is told `head`."""
        self._end_timer()
        self._answer(head)
        self.frame_queue.close()

    # --- small steps

    async def _render(self, renderer: Renderer, events: list[Event], size: int) -> None:
        """Hand over the frames of events, which may hold `size` bytes."""
        if size <= LARGE_BYTES:
            self._push(sse.safe(renderer.feed(events)))
            return
        # One after the other, in pieces: what is made of all would be one long call.
        for event in events:
            for frames in await self._offload.run(size, _large_frames, renderer, event):
                self._push(frames)

    def _renderer_for(
        self, planned: Planned, reported: Usage | None, demand: Demand | None
    ) -> Renderer:
        reply = Reply(
            generation_id=self._identity.generation_id,
            created_s=self._identity.created_us // US_PER_S,
            model=planned.target.model,
            vendor=planned.target.vendor,
            request_id=self._identity.request_id,
        )
        if self._dialect.name == "messages" and demand is not None:
            # Only this one states input tokens before the answer has ended.
            prompt = opening_usage(reported, demand, planned.target)
            reply = msgspec.structs.replace(reply, prompt=prompt)
        return self._dialect.renderer(self._request, reply)

    def _answer(self, head: Head) -> None:
        if not self.head.done():
            self.head.set_result(head)

    def _commit(self, planned: Planned) -> None:
        self._end_timer()
        self._answer(Head(served=planned.target))
        self._timer = asyncio.get_running_loop().call_later(KEEPALIVE_S, self._keep_alive)

    def _keep_alive(self) -> None:
        if self._clock.monotonic_s() - self._last_push_s >= KEEPALIVE_S - 0.5:
            idle = self._dialect.framing.idle
            self._push(self._renderer.idle() if self._renderer is not None else idle)
        self._timer = asyncio.get_running_loop().call_later(KEEPALIVE_S, self._keep_alive)

    def _push(self, frames: bytes) -> None:
        if frames:
            self._last_push_s = self._clock.monotonic_s()
            self.frame_queue.push(frames)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _large_frames(renderer: Renderer, event: Event) -> list[bytes]:
    """The frames of one large event, cut as the queue takes them."""
    frames = sse.safe(renderer.feed([event]))
    return [frames[start : start + PIECE_BYTES] for start in range(0, len(frames), PIECE_BYTES)]


def _last_events(final_record: FinalRecord, error: GatewayError | None) -> list[Event]:
    if error is None:
        return [final_record.settled]
    fault = Fault(reason="upstream_error", message=error.message)
    return [Failed(fault, error), final_record.settled]
