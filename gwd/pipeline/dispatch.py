"""Attempts, one after the other, until one gives output: build, send, decode, and what to do when it fails.

One path for streamed and whole answers: both decode into the same events. Until the first output of an attempt has
gone to the sink, a failure leads to the next target (api.md 6.4); afterwards it ends the generation.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from gwd.core.clock import Clock
from gwd.core.errors import Fault, InvalidRequest
from gwd.core.events import (
    OUTPUT_EVENTS,
    Event,
    Failed,
    Finished,
    PartDelta,
    PartStarted,
    Started,
)
from gwd.core.odd_json import UNREADABLE
from gwd.core.request import Request
from gwd.core.sse import Frame, SseError, SseSplitter
from gwd.core.target import Target, UpstreamCall
from gwd.pipeline.attempt import Outcome, output_tokens
from gwd.pipeline.failures import final_error, in_band_error
from gwd.pipeline.health import Health
from gwd.pipeline.lessons import SECOND_TRY, Lessons, for_second_try
from gwd.pipeline.rests import opens_again_s
from gwd.pipeline.routing import Planned
from gwd.pipeline.sale import build
from gwd.pipeline.secrecy import body_without_secrets, without_secrets
from gwd.pipeline.unpacking import unpacked
from gwd.pipeline.unseen import prepared
from gwd.pipeline.upstream import Timeouts, Upstream, UpstreamFault, UpstreamReply
from gwd.pricing.hold import measure
from gwd.vendors.base import Adapter, Signatures, StreamDecoder, UndecodableError

MAX_ATTEMPTS: Final = 6
_EVENT_STREAM: Final = "text/event-stream"
_UNDECODABLE: Final = (UndecodableError, SseError, *UNREADABLE)


class Sink(Protocol):
    """Where events go: the conductor, which renders them."""

    def begin(self, planned: Planned) -> None:
        """The first output of this target is there."""
        ...

    async def emit(self, events: list[Event]) -> None:
        """Events of the begun target, `Started` first."""
        ...


class _Broken(Exception):
    """The attempt failed; the fault says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Dispatcher:
    """What every dispatch needs; one for the node."""

    def __init__(
        self,
        *,
        adapters: Mapping[str, Adapter],
        upstream: Upstream,
        health: Health,
        timeouts: Timeouts,
        clock: Clock,
    ) -> None:
        self._adapters = adapters
        self._upstream = upstream
        self._health = health
        self._timeouts = timeouts
        self._clock = clock

    async def run(
        self, request: Request, targets: Iterable[Planned], outcome: Outcome, sink: Sink
    ) -> None:
        """Try the targets; `outcome` is kept current throughout, also when this is cancelled."""
        deadline_s = self._clock.monotonic_s() + self._timeouts.total_s
        lessons = Lessons()
        unbuildable: InvalidRequest | None = None
        for planned in targets:
            if outcome.attempts >= MAX_ATTEMPTS or self._clock.monotonic_s() >= deadline_s:
                break
            if lessons.rule_out(planned):
                continue
            try:
                adapter = self._adapters[planned.target.adapter]
                sent, call = prepared(adapter, request, planned.target)
            except InvalidRequest as error:
                unbuildable = error
                continue
            outcome.demand = None if sent is request else measure(sent)
            fault = await self._attempt(sent, planned, call, outcome, sink, deadline_s)
            if fault is not None and fault.detail in SECOND_TRY:
                fault = await self._once_more(sent, planned, call, fault, outcome, sink, deadline_s)
            if fault is None or outcome.serving is not None:
                return
            if lessons.is_final(planned, fault):
                break
        if not outcome.failures and unbuildable is not None:
            outcome.error = unbuildable
        else:
            allows_fallbacks = request.preferences.allow_fallbacks
            outcome.error = final_error(
                outcome, allows_fallbacks=allows_fallbacks, now_s=self._clock.monotonic_s()
            )

    async def probe(self, request: Request, target: Target, *, limit_s: float) -> Fault | None:
        """One whole call outside any generation; None when the vendor answered in its format. Health is not told."""
        fault = await self._probe(request, target, limit_s)
        return None if fault is None else without_secrets(fault, target)

    async def _probe(self, request: Request, target: Target, limit_s: float) -> Fault | None:
        adapter = self._adapters[target.adapter]
        reply: UpstreamReply | None = None
        try:
            reply = await self._upstream.send(adapter.build(request, target), limit_s)
            body = await unpacked(reply).read_all(limit_s)
            if reply.status != 200:
                body = body_without_secrets(body, target)
                return adapter.fault(reply.status, reply.headers, body)
            for event in adapter.decode(body, request, target):
                if isinstance(event, Failed):
                    return event.fault
        except UpstreamFault as broken:
            return broken.fault
        except _UNDECODABLE as error:
            return Fault(
                reason="upstream_error",
                message=f"the vendor's answer was not of its format: {error}",
            )
        finally:
            if reply is not None:
                reply.close()
        return None

    def signatures_of(self, targets: Iterable[Planned]) -> list[Signatures]:
        """The memories of signed reasoning that these targets' formats have."""
        names = dict.fromkeys(planned.target.adapter for planned in targets)
        found = [self._adapters[name].signatures for name in names if name in self._adapters]
        return [signatures for signatures in found if signatures is not None]

    async def _once_more(
        self,
        request: Request,
        planned: Planned,
        refused: UpstreamCall,
        fault: Fault,
        outcome: Outcome,
        sink: Sink,
        deadline_s: float,
    ) -> Fault | None:
        """The same endpoint once more, with the reasoning of earlier turns sent as the vendor's refusal asks.

        Not if the call would be the same, or if nothing is left of the request without it.
        """
        if outcome.serving is not None:
            return fault
        adapter = self._adapters[planned.target.adapter]
        changed = for_second_try(request, fault, adapter)
        try:
            call = build(adapter, changed, planned.target)
        except InvalidRequest:
            return fault
        if call.body == refused.body:
            return fault
        return await self._attempt(changed, planned, call, outcome, sink, deadline_s)

    async def _attempt(
        self,
        request: Request,
        planned: Planned,
        call: UpstreamCall,
        outcome: Outcome,
        sink: Sink,
        deadline_s: float,
    ) -> Fault | None:
        """One call. None when it ended well; the fault otherwise (and `outcome.error` if output had gone out)."""
        began_s = self._clock.monotonic_s()
        if outcome.first_call_s is None:
            outcome.first_call_s = began_s
        outcome.attempts += 1
        outcome.trying = planned
        outcome.reported = outcome.given = None
        outcome.output_cap = call.output_cap
        outcome.texts, outcome.reasonings = [], []
        attempt = _Attempt(
            request, planned, self._adapters[planned.target.adapter], outcome, sink, self._clock
        )
        reply: UpstreamReply | None = None
        try:
            first_event_s = planned.target.flags.first_event_s or self._timeouts.first_event_s
            remaining_s = deadline_s - began_s
            reply = await self._upstream.send(
                call, min(first_event_s, remaining_s) if call.stream else remaining_s
            )
            await self._receive(reply, call, attempt, first_event_s, deadline_s)
        except UpstreamFault as broken:
            return self._failed(planned, call, broken.fault, began_s, outcome)
        except _Broken as broken:
            return self._failed(planned, call, broken.fault, began_s, outcome)
        except _UNDECODABLE as error:
            fault = Fault(
                reason="upstream_error",
                message=f"the vendor's answer was not of its format: {error}",
            )
            return self._failed(planned, call, fault, began_s, outcome)
        finally:
            if reply is not None:
                reply.close()
        outcome.dropped = call.dropped
        self._health.succeeded(
            planned.target,
            self._clock.monotonic_s(),
            began_s=began_s,
            first_s=outcome.first_output_s,
            last_s=outcome.last_output_s,
            tokens=output_tokens(outcome),
            ended_in_error=outcome.finished is not None and outcome.finished.reason == "error",
        )
        return None

    async def _receive(
        self,
        reply: UpstreamReply,
        call: UpstreamCall,
        attempt: "_Attempt",
        first_event_s: float,
        deadline_s: float,
    ) -> None:
        now_s = self._clock.monotonic_s
        reply = unpacked(reply)
        if reply.status != 200:
            body = await reply.read_all(min(30.0, max(1.0, deadline_s - now_s())))
            body = body_without_secrets(body, attempt.planned.target)
            raise _Broken(attempt.adapter.fault(reply.status, reply.headers, body))
        kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not call.stream or kind != _EVENT_STREAM:
            await attempt.whole(await reply.read_all(max(1.0, deadline_s - now_s())), kind)
            return
        await self._receive_stream(reply, attempt, first_event_s, deadline_s)

    async def _receive_stream(
        self,
        reply: UpstreamReply,
        attempt: "_Attempt",
        first_event_s: float,
        deadline_s: float,
    ) -> None:
        now_s = self._clock.monotonic_s
        decoder = attempt.adapter.decoder(attempt.request, attempt.planned.target)
        splitter = SseSplitter()
        idle_s = self._timeouts.idle_s
        first_deadline_s = now_s() + first_event_s
        while True:
            waiting_s = idle_s if attempt.has_output else max(0.05, first_deadline_s - now_s())
            try:
                data = await reply.read(min(waiting_s, max(0.05, deadline_s - now_s())))
            except UpstreamFault as cut:
                # Some vendors cut the connection behind their last word: what is complete is complete.
                events, _ = _decoded(decoder, splitter.close(), is_last=True)
                if cut.fault.reason != "network" or not isinstance(
                    events[-1] if events else None, Finished
                ):
                    raise
                await attempt.take(events, decoder)
                return
            frames = splitter.feed(data) if data else splitter.close()
            events, broken = _decoded(decoder, frames, is_last=not data)
            await attempt.take(events, decoder)
            if attempt.ended:
                return
            if broken is not None:
                raise broken
            if not data:
                raise _Broken(
                    Fault(
                        reason="upstream_error",
                        message="the vendor's stream ended without an answer",
                    )
                )
            if now_s() >= deadline_s:
                raise UpstreamFault("timeout", "the answer took longer than the total deadline")
            if not attempt.has_output and now_s() >= first_deadline_s:
                # Comments keep a connection alive, but they are no answer.
                raise UpstreamFault("timeout", "the vendor sent no event of its answer in time")

    def _failed(
        self, planned: Planned, call: UpstreamCall, fault: Fault, began_s: float, outcome: Outcome
    ) -> Fault:
        now_s = self._clock.monotonic_s()
        fault = without_secrets(fault, planned.target)
        rest = self._health.failed(planned.target, fault, now_s, asked=hash(call.body))
        if outcome.serving is not None:
            outcome.error = in_band_error(fault)
        else:
            opens_s = opens_again_s(fault, rest, now_s)
            outcome.note_failure(planned, fault, duration_s=now_s - began_s, opens_s=opens_s)
        return fault


class _Attempt:
    """The events of one attempt on their way to the sink."""

    def __init__(
        self,
        request: Request,
        planned: Planned,
        adapter: Adapter,
        outcome: Outcome,
        sink: Sink,
        clock: Clock,
    ) -> None:
        self.request = request
        self.planned = planned
        self.adapter = adapter
        self.has_output = False
        self.ended = False
        self._outcome = outcome
        self._sink = sink
        self._clock = clock
        self._held: list[Event] = []
        self._is_reasoning = False

    async def whole(self, body: bytes, content_type: str) -> None:
        """A whole answer, in JSON or (some servers stream whatever was asked) in SSE."""
        if content_type == "text/html":
            raise UndecodableError("it is a web page")
        await self.take(self.adapter.decode(body, self.request, self.planned.target), None)
        if not self.ended:
            raise UndecodableError("it has no end")

    async def take(self, events: list[Event], decoder: StreamDecoder | None) -> None:
        """Note what the events say and pass them on; the first output opens the sink.

        Raises _Broken for a `Failed`: what came before it has been passed on if output had begun.
        """
        if not events:
            return
        failed = self._note(events)
        if failed is not None and decoder is None:
            raise _Broken(failed.fault)  # a whole answer that failed gave the client nothing
        if decoder is not None and decoder.usage is not None:
            self._outcome.reported = decoder.usage
        if decoder is not None and decoder.given is not None:
            self._outcome.given = decoder.given
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
            self._outcome.last_output_s = self._clock.monotonic_s()
            await self._sink.emit(events)
        if failed is not None:
            raise _Broken(failed.fault)

    def _begin(self) -> None:
        self.has_output = True
        self._outcome.serving = self.planned
        self._outcome.first_output_s = self._clock.monotonic_s()
        self._sink.begin(self.planned)

    def _note(self, events: list[Event]) -> Failed | None:
        outcome = self._outcome
        for event in events:
            if type(event) is PartDelta:
                (outcome.reasonings if self._is_reasoning else outcome.texts).append(event.text)
            elif type(event) is PartStarted:
                self._is_reasoning = event.kind == "reasoning"
                if event.name:
                    outcome.texts.append(event.name)
            elif type(event) is Started:
                outcome.upstream_id = event.upstream_id
            elif type(event) is Finished:
                outcome.finished = event
                if event.usage is not None:
                    outcome.reported = event.usage
                if event.given is not None:
                    outcome.given = event.given
                self.ended = True
            elif type(event) is Failed:
                return event
        return None


def _decoded(
    decoder: StreamDecoder, frames: list[Frame], *, is_last: bool
) -> tuple[list[Event], Exception | None]:
    """The events of the frames up to one that cannot be decoded, and what was wrong with that.

    What came before it counts, however the network has cut the stream into pieces.
    """
    events: list[Event] = []
    try:
        for frame in frames:
            events += decoder.feed(frame)
        if is_last:
            events += decoder.close()
    except _UNDECODABLE as error:
        return events, error
    return events, None
