"""One upstream call: send, receive, decode, and what its end says of the health of its target."""

import asyncio
from collections.abc import Mapping
from typing import Final
from zlib import crc32

import msgspec

from gwd.core.clock import Clock
from gwd.core.errors import Fault
from gwd.core.request import Request
from gwd.core.sse import SseSplitter
from gwd.core.target import UpstreamCall
from gwd.health.health import Health, Visit
from gwd.health.rests import opens_again_s
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
from gwd.pipeline.dispatch.offload import Offload
from gwd.pipeline.dispatch.outcome import FailedAttempt, Received
from gwd.pipeline.dispatch.redaction import body_without_secrets, without_secrets
from gwd.pipeline.plan.routing import Planned
from gwd.pricing.hold import LARGE_BYTES
from gwd.upstream.base import Timeouts, Upstream, UpstreamFault, UpstreamReply
from gwd.upstream.decompression import decompressed
from gwd.vendors.base import Adapter, StreamDecoder
from gwd.vendors.foreign_answer import MAX_LOOK, named

MAX_ERROR_BYTES: Final = 256 * 1024
"""Of an error no more is read: a longer one says nothing more."""

_EVENT_STREAM: Final = "text/event-stream"
_TOOK_TOO_LONG: Final = Fault(
    reason="timeout", message="the answer took longer than the total deadline"
)


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What calls to vendors need of the node."""

    adapters: Mapping[str, Adapter]
    upstream: Upstream
    health: Health
    timeouts: Timeouts
    clock: Clock
    offload: Offload


class Attempt:
    """One call to one target; what comes of it is written to `received` and goes to the sink."""

    def __init__(
        self,
        resources: Resources,
        request: Request,
        planned: Planned,
        call: UpstreamCall,
        received: Received,
        sink: Sink,
        visit: Visit,
    ) -> None:
        self.began_s = resources.clock.monotonic_s()
        self._resources = resources
        self._request = request
        self._planned = planned
        self._call = call
        self._received = received
        self._sink = sink
        self._adapter = resources.adapters[planned.target.adapter]
        self._beginning = b""
        self._incoming = Incoming(request, planned, self._adapter, received, sink, resources.clock)
        if visit.is_trial:
            self._incoming.on_first_event = lambda: visit.answered(self.began_s)

    async def run(self, deadline_s: float) -> FailedAttempt | None:
        """None when it ended well. Whatever it waits for, the vendor or its client, it ends at the total deadline."""
        resources = self._resources
        try:
            if self._request.stream:
                # Its client is waited for as well, however the vendor answers, and the vendor each time anew.
                async with asyncio.timeout(deadline_s - self.began_s):
                    await self._exchange(deadline_s)
            else:
                await self._exchange(deadline_s)
        except UpstreamFault as broken:
            return self._failed(broken.fault)
        except TimeoutError:
            return self._failed(_TOOK_TOO_LONG)
        except Broken as broken:
            return self._failed(self._named(broken.fault))
        except UNDECODABLE as error:
            return self._failed(self._named(undecodable(error)))
        received = self._received
        resources.health.succeeded(
            self._planned.target,
            resources.clock.monotonic_s(),
            began_s=self.began_s,
            first_s=received.first_output_s,
            last_s=received.last_output_s,
            tokens=received.output_tokens,
            ended_in_error=received.finished is not None and received.finished.reason == "error",
        )
        return None

    async def _exchange(self, deadline_s: float) -> None:
        """Send the call and receive its answer. Each wait for the vendor ends at the deadline at the latest."""
        resources, call = self._resources, self._call
        first_event_s = self._planned.target.flags.first_event_s or resources.timeouts.first_event_s
        remaining_s = deadline_s - self.began_s
        reply = await resources.upstream.send(
            call, min(first_event_s, remaining_s) if call.stream else remaining_s
        )
        date = reply.headers.get("date")
        if date is not None:
            resources.health.dates[self._planned.target.provider] = date, resources.clock.now_us()
        try:
            await self._receive(reply, first_event_s, deadline_s)
        finally:
            reply.close()

    async def _receive(self, reply: UpstreamReply, first_event_s: float, deadline_s: float) -> None:
        now_s, incoming = self._resources.clock.monotonic_s, self._incoming
        reply = decompressed(reply)
        if reply.status != 200:
            body = await reply.read_all(min(30.0, max(1.0, deadline_s - now_s())))
            body = body_without_secrets(body[:MAX_ERROR_BYTES], self._planned.target)
            raise Broken(self._adapter.fault(reply.status, reply.headers, body))
        kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not self._call.stream or kind != _EVENT_STREAM:
            body = self._beginning = await reply.read_all(max(1.0, deadline_s - now_s()))
            self._received.answered_s = now_s()
            incoming.check_kind(kind)
            size = len(body)
            events = (
                await self._resources.offload.run(size, incoming.decoded, body)
                if size > LARGE_BYTES
                else incoming.decoded(body)
            )
            await incoming.take_whole(events, size)
            return
        await self._receive_stream(reply, first_event_s)

    async def _receive_stream(self, reply: UpstreamReply, first_event_s: float) -> None:
        now_s, incoming = self._resources.clock.monotonic_s, self._incoming
        decoder = self._adapter.decoder(self._request, self._planned.target)
        splitter = SseSplitter()
        idle_s = self._resources.timeouts.idle_s
        first_deadline_s = now_s() + first_event_s
        while True:
            waiting_s = idle_s if incoming.has_output else max(0.05, first_deadline_s - now_s())
            try:
                data = await reply.read(waiting_s)
            except UpstreamFault as cut:
                # Some vendors cut the connection after a complete answer, which counts as complete.
                events, _ = decoded_frames(decoder, splitter.close(), is_last=True)
                if cut.fault.reason != "network" or not has_end(events):
                    raise
                await incoming.take(events, decoder)
                return
            if not incoming.has_output and len(self._beginning) < MAX_LOOK:
                self._beginning += data
            for piece in slices(data):
                await self._take(piece, splitter, decoder)
                if incoming.ended:
                    return
            if not data:
                raise Broken(
                    Fault(
                        reason="upstream_error",
                        message="the vendor's stream ended without an answer",
                    )
                )
            if not incoming.has_output and now_s() >= first_deadline_s:
                # Comments keep a connection alive, but they are no answer.
                raise UpstreamFault("timeout", "the vendor sent no event of its answer in time")

    async def _take(self, piece: bytes, splitter: SseSplitter, decoder: StreamDecoder) -> None:
        """A piece of the stream, b"" for its end: what it completes is decoded and passed on."""
        frames = splitter.feed(piece) if piece else splitter.close()
        # An event larger than a piece began in an earlier one: it is the first that this one completes.
        size = len(frames[0].data) if frames else 0
        events, broken = (
            await self._resources.offload.run(
                size, decoded_frames, decoder, frames, is_last=not piece
            )
            if size > LARGE_BYTES
            else decoded_frames(decoder, frames, is_last=not piece)
        )
        await self._incoming.take(events, decoder)
        if broken is not None and not self._incoming.ended:
            raise broken
        if len(piece) == SLICE_BYTES:
            await asyncio.sleep(0)

    def _named(self, fault: Fault) -> Fault:
        """What answered instead, where an answer of status 200 gave no output of its format."""
        if self._incoming.has_output:
            return fault
        return named(fault, self._beginning, self._planned.target.adapter)

    def _failed(self, fault: Fault) -> FailedAttempt:
        now_s, target = self._resources.clock.monotonic_s(), self._planned.target
        fault = without_secrets(fault, target)
        rest = None
        if not (self._sink.was_behind and fault.reason == "timeout"):  # its client was slow
            rest = self._resources.health.failed(target, fault, now_s, asked=crc32(self._call.body))
        return FailedAttempt(
            planned=self._planned,
            fault=fault,
            began_s=self.began_s,
            duration_s=now_s - self.began_s,
            opens_s=opens_again_s(fault, rest, now_s),
        )


def undecodable(error: Exception) -> Fault:
    """The fault of an answer that is none of the vendor's format."""
    return Fault(
        reason="upstream_error", message=f"the vendor's answer was not of its format: {error}"
    )
