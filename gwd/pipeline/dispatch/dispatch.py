"""Attempts, one after the other, until one gives output: build, send, decode, and what to do when it fails.

One path for streamed and whole answers: both decode into the same events. Until the first output of an attempt has
gone to the sink, a failure leads to the next target (api.md 6.4); afterwards it ends the generation.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from gwd.core.clock import Clock
from gwd.core.errors import Fault, InvalidRequest
from gwd.core.events import Failed
from gwd.core.request import Request
from gwd.core.sse import SseSplitter
from gwd.core.target import Target, UpstreamCall
from gwd.pipeline.dispatch.attempt import Outcome, output_tokens
from gwd.pipeline.dispatch.beside import Beside
from gwd.pipeline.dispatch.failures import final_error, in_band_error
from gwd.pipeline.dispatch.incoming import (
    SLICE_BYTES,
    UNDECODABLE,
    Broken,
    Incoming,
    Sink,
    decoded_frames,
    has_end,
    slices,
)
from gwd.pipeline.dispatch.lessons import SECOND_TRY, Lessons, for_second_try
from gwd.pipeline.dispatch.sale import build
from gwd.pipeline.dispatch.secrecy import body_without_secrets, without_secrets
from gwd.pipeline.dispatch.unseen import prepared
from gwd.pipeline.plan.health import Health
from gwd.pipeline.plan.rests import opens_again_s
from gwd.pipeline.plan.routing import Planned
from gwd.pricing.hold import measure
from gwd.upstream.base import Timeouts, Upstream, UpstreamFault, UpstreamReply
from gwd.upstream.unpacking import unpacked
from gwd.vendors.base import Adapter, Signatures, StreamDecoder

MAX_ATTEMPTS: Final = 6
MAX_ERROR_BYTES: Final = 256 * 1024
"""Of an error no more is read: a longer one says nothing more."""

_EVENT_STREAM: Final = "text/event-stream"
_TOOK_TOO_LONG: Final = Fault(
    reason="timeout", message="the answer took longer than the total deadline"
)


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
        beside: Beside,
    ) -> None:
        self._adapters = adapters
        self._beside = beside
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
                sent, call = await self._beside.run(
                    request.body_bytes, prepared, adapter, request, planned.target
                )
            except InvalidRequest as error:
                unbuildable = error
                continue
            outcome.demand = (
                None
                if sent is request
                else await self._beside.run(request.body_bytes, measure, sent)
            )
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
            async with asyncio.timeout(limit_s):
                reply = await self._upstream.send(adapter.build(request, target), limit_s)
                body = await unpacked(reply).read_all(limit_s)
            if reply.status != 200:
                body = body_without_secrets(body[:MAX_ERROR_BYTES], target)
                return adapter.fault(reply.status, reply.headers, body)
            for event in adapter.decode(body, request, target):
                if isinstance(event, Failed):
                    return event.fault
        except UpstreamFault as broken:
            return broken.fault
        except TimeoutError:
            return Fault(reason="timeout", message="the vendor did not answer in time")
        except UNDECODABLE as error:
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
        try:
            changed = await self._beside.run(
                request.body_bytes, for_second_try, request, fault, adapter
            )
            call = await self._beside.run(
                request.body_bytes, build, adapter, changed, planned.target
            )
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
        """One call. None when it ended well; the fault otherwise (and `outcome.error` if output had gone out).

        Whatever it waits for, a place among the calls, the vendor or its client, it ends at the total deadline.
        """
        began_s = self._clock.monotonic_s()
        if outcome.first_call_s is None:
            outcome.first_call_s = began_s
        outcome.attempts += 1
        outcome.trying = planned
        outcome.reported = outcome.given = None
        outcome.output_cap = call.output_cap
        outcome.texts, outcome.reasonings = [], []
        attempt = Incoming(
            request, planned, self._adapters[planned.target.adapter], outcome, sink, self._clock
        )
        reply: UpstreamReply | None = None
        try:
            first_event_s = planned.target.flags.first_event_s or self._timeouts.first_event_s
            remaining_s = deadline_s - began_s
            async with asyncio.timeout(remaining_s):
                reply = await self._upstream.send(
                    call, min(first_event_s, remaining_s) if call.stream else remaining_s
                )
                await self._receive(reply, call, attempt, first_event_s, deadline_s)
        except UpstreamFault as broken:
            return self._failed(planned, call, broken.fault, began_s, outcome)
        except TimeoutError:
            return self._failed(planned, call, _TOOK_TOO_LONG, began_s, outcome)
        except Broken as broken:
            return self._failed(planned, call, broken.fault, began_s, outcome)
        except UNDECODABLE as error:
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
        attempt: Incoming,
        first_event_s: float,
        deadline_s: float,
    ) -> None:
        now_s = self._clock.monotonic_s
        reply = unpacked(reply)
        if reply.status != 200:
            body = await reply.read_all(min(30.0, max(1.0, deadline_s - now_s())))
            body = body_without_secrets(body[:MAX_ERROR_BYTES], attempt.planned.target)
            raise Broken(attempt.adapter.fault(reply.status, reply.headers, body))
        kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not call.stream or kind != _EVENT_STREAM:
            body = await reply.read_all(max(1.0, deadline_s - now_s()))
            attempt.check_kind(kind)
            await attempt.take_whole(
                await self._beside.run(len(body), attempt.decoded, body), len(body)
            )
            return
        await self._receive_stream(reply, attempt, first_event_s)

    async def _receive_stream(
        self,
        reply: UpstreamReply,
        attempt: Incoming,
        first_event_s: float,
    ) -> None:
        now_s = self._clock.monotonic_s
        decoder = attempt.adapter.decoder(attempt.request, attempt.planned.target)
        splitter = SseSplitter()
        idle_s = self._timeouts.idle_s
        first_deadline_s = now_s() + first_event_s
        while True:
            waiting_s = idle_s if attempt.has_output else max(0.05, first_deadline_s - now_s())
            try:
                data = await reply.read(waiting_s)
            except UpstreamFault as cut:
                # Some vendors cut the connection behind their last word: what is complete is complete.
                events, _ = decoded_frames(decoder, splitter.close(), is_last=True)
                if cut.fault.reason != "network" or not has_end(events):
                    raise
                await attempt.take(events, decoder)
                return
            for piece in slices(data):
                await self._take(piece, splitter, decoder, attempt)
                if attempt.ended:
                    return
            if not data:
                raise Broken(
                    Fault(
                        reason="upstream_error",
                        message="the vendor's stream ended without an answer",
                    )
                )
            if not attempt.has_output and now_s() >= first_deadline_s:
                # Comments keep a connection alive, but they are no answer.
                raise UpstreamFault("timeout", "the vendor sent no event of its answer in time")

    async def _take(
        self, piece: bytes, splitter: SseSplitter, decoder: StreamDecoder, attempt: Incoming
    ) -> None:
        """A piece of the stream, b"" for its end: what it completes is decoded and passed on."""
        frames = splitter.feed(piece) if piece else splitter.close()
        # An event larger than a piece began in an earlier one: it is the first that this one completes.
        size = len(frames[0].data) if frames else 0
        events, broken = await self._beside.run(
            size, decoded_frames, decoder, frames, is_last=not piece
        )
        await attempt.take(events, decoder)
        if broken is not None and not attempt.ended:
            raise broken
        if len(piece) == SLICE_BYTES:
            await asyncio.sleep(0)

    def _failed(
        self, planned: Planned, call: UpstreamCall, fault: Fault, began_s: float, outcome: Outcome
    ) -> Fault:
        now_s = self._clock.monotonic_s()
        fault = without_secrets(fault, planned.target)
        rest = None
        if not (
            outcome.client_is_behind and fault.reason == "timeout"
        ):  # that is its client's doing
            rest = self._health.failed(planned.target, fault, now_s, asked=hash(call.body))
        if outcome.serving is not None:
            outcome.error = in_band_error(fault)
        else:
            opens_s = opens_again_s(fault, rest, now_s)
            outcome.note_failure(planned, fault, duration_s=now_s - began_s, opens_s=opens_s)
        return fault
