"""Attempts, one after the other, until one gives output: build, call, and what to do when it fails.

One path for streamed and whole answers: both decode into the same events. Until the first output of an attempt has
gone to the sink, a failure leads to the next target; afterwards it ends the generation.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gwd.core.clock import Clock
from gwd.core.errors import Fault, GatewayError, InvalidRequest
from gwd.core.events import Failed
from gwd.core.request import Request
from gwd.core.target import Service, Target, UpstreamCall
from gwd.core.trace_context import TraceContext
from gwd.health.health import Health, Visit
from gwd.pipeline.dispatch.attempt import MAX_ERROR_BYTES, Attempt, Resources, undecodable
from gwd.pipeline.dispatch.choice import Choice
from gwd.pipeline.dispatch.failover_rules import SECOND_TRY, FailoverRules, for_second_try
from gwd.pipeline.dispatch.failures import final_error, in_band_error
from gwd.pipeline.dispatch.incoming import UNDECODABLE, Sink
from gwd.pipeline.dispatch.model_list import FoundModels, find_models
from gwd.pipeline.dispatch.offload import Offload
from gwd.pipeline.dispatch.outcome import FailedAttempt, Outcome, Received
from gwd.pipeline.dispatch.priced_extras import build
from gwd.pipeline.dispatch.redaction import body_without_secrets, without_secrets
from gwd.pipeline.dispatch.unsupported_media import prepared
from gwd.pipeline.plan.routing import Planned
from gwd.pricing.hold import LARGE_BYTES, Demand, measure
from gwd.upstream.base import Timeouts, Upstream, UpstreamFault, UpstreamReply
from gwd.upstream.decompression import decompressed
from gwd.vendors.base import Adapter, Signatures
from gwd.vendors.foreign_answer import named

MAX_ATTEMPTS: Final = 6


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a request at a target: parameters left out, media replaced, or why it is passed over."""

    dropped: tuple[str, ...] = ()
    replaces_media: bool = False
    refusal: InvalidRequest | None = None


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
        offload: Offload,
    ) -> None:
        self._resources = Resources(
            adapters=adapters,
            upstream=upstream,
            health=health,
            timeouts=timeouts,
            clock=clock,
            offload=offload,
        )

    def dispatch(
        self,
        request: Request,
        targets: Iterable[Planned],
        sink: Sink,
        *,
        demand: Demand,
        opens_s: float | None,
        trace: TraceContext | None,
    ) -> "Dispatch":
        """The attempts of a request, none made yet.

        `opens_s` is when a target that the plan left out opens, `trace` what vendors are told of the request's place.
        """
        return Dispatch(
            self._resources, request, targets, sink, demand=demand, opens_s=opens_s, trace=trace
        )

    def preview(self, request: Request, target: Target) -> Preview:
        """Build the call as an attempt does, and send nothing."""
        try:
            sent, call = prepared(self._resources.adapters[target.adapter], request, target)
        except InvalidRequest as error:
            return Preview(refusal=error)
        return Preview(dropped=call.dropped, replaces_media=sent is not request)

    async def probe(self, request: Request, target: Target, *, limit_s: float) -> Fault | None:
        """One whole call outside any generation; None when the vendor answered in its format. Health is not told."""
        fault = await self._probe(request, target, limit_s)
        return None if fault is None else without_secrets(fault, target)

    async def _probe(self, request: Request, target: Target, limit_s: float) -> Fault | None:
        adapter = self._resources.adapters[target.adapter]
        reply: UpstreamReply | None = None
        body = b""
        try:
            async with asyncio.timeout(limit_s):
                reply = await self._resources.upstream.send(adapter.build(request, target), limit_s)
                body = await decompressed(reply).read_all(limit_s)
            if reply.status != 200:
                body = body_without_secrets(body[:MAX_ERROR_BYTES], target)
                return adapter.fault(reply.status, reply.headers, body)
            for event in adapter.decode(body, request, target):
                if isinstance(event, Failed):
                    return named(event.fault, body, target.adapter)
        except UpstreamFault as broken:
            return broken.fault
        except TimeoutError:
            return Fault(reason="timeout", message="the vendor did not answer in time")
        except UNDECODABLE as error:
            return named(undecodable(error), body, target.adapter)
        finally:
            if reply is not None:
                reply.close()
        return None

    async def models_of(self, service: Service, *, limit_s: float) -> FoundModels | Fault:
        """The models that a provider lists, or why that could not be read."""
        return await find_models(self._resources, service, limit_s=limit_s)

    def signatures_of(self, targets: Iterable[Planned]) -> list[Signatures]:
        """The memories of signed reasoning that these targets' formats have."""
        adapters = self._resources.adapters
        names = dict.fromkeys(planned.target.adapter for planned in targets)
        found = [adapters[name].signatures for name in names if name in adapters]
        return [signatures for signatures in found if signatures is not None]


Ready = tuple[Request, UpstreamCall, Demand]


class Dispatch:
    """The attempts of one generation. `outcome` may be asked for after `run`, also when that was cancelled.

    `trying` is the target of the last attempt, `received` what has come of that so far.
    """

    def __init__(
        self,
        resources: Resources,
        request: Request,
        targets: Iterable[Planned],
        sink: Sink,
        *,
        demand: Demand,
        opens_s: float | None,
        trace: TraceContext | None,
    ) -> None:
        self.attempts = 0
        self.trying: Planned | None = None
        self.received = Received(demand=demand)
        self._resources = resources
        self._request = request
        self._targets = targets
        self._sink = sink
        self._demand = demand
        self._opens_s = opens_s
        self._trace = trace
        self._deadline_s = 0.0
        self._first_call_s: float | None = None
        self._asked_s: float | None = None  # when the attempt began that has not failed
        self._failures: list[FailedAttempt] = []
        self._dropped: tuple[str, ...] = ()
        self._error: GatewayError | None = None

    async def run(self) -> None:
        """Try the targets until one serves."""
        resources, request = self._resources, self._request
        self._deadline_s = resources.clock.monotonic_s() + resources.timeouts.total_s
        rules = FailoverRules()
        choice = Choice(
            self._targets, rules, resources.health, resources.clock, opens_s=self._opens_s
        )
        unbuildable: InvalidRequest | None = None
        while self.attempts < MAX_ATTEMPTS:
            now_s = resources.clock.monotonic_s()
            if now_s >= self._deadline_s:
                break
            chosen = choice.next(now_s) or await choice.next_aside(self._deadline_s - now_s)
            if chosen is None:
                break
            planned, visit = chosen
            try:
                sent, call, demand = (
                    self._prepared(planned)
                    if request.body_bytes <= LARGE_BYTES
                    else await self._prepared_beside(planned)
                )
                fault = await self._attempt(sent, planned, call, demand, visit)
                if fault is not None and fault.detail in SECOND_TRY and self.serving is None:
                    fault = await self._once_more(sent, planned, call, demand, fault, visit)
            except InvalidRequest as error:
                unbuildable = error
                continue
            finally:
                visit.end()
            if fault is None or self.serving is not None:
                return
            if rules.is_final(planned, fault):
                break
        if not self._failures and unbuildable is not None:
            self._error = unbuildable
        else:
            self._error = final_error(
                self._failures,
                closed_for=choice.closed_for,
                opens_s=choice.opens_s,
                allows_fallbacks=request.preferences.allow_fallbacks,
                now_s=resources.clock.monotonic_s(),
            )

    def _prepared(self, planned: Planned) -> Ready:
        """What is sent to the target, how, and its bounds. Raises InvalidRequest where it takes no such request."""
        adapter = self._resources.adapters[planned.target.adapter]
        sent, call = prepared(adapter, self._request, planned.target)
        return sent, call, self._demand if sent is self._request else measure(sent)

    async def _prepared_beside(self, planned: Planned) -> Ready:
        """The same of a large request."""
        return await self._resources.offload.run(self._request.body_bytes, self._prepared, planned)

    def outcome(self, begun: Outcome, *, client_left: bool) -> Outcome:
        """What became of it, to what was known when it `begun`."""
        received = self.received
        return msgspec.structs.replace(
            begun,
            first_call_s=self._first_call_s,
            asked_s=self._asked_s,
            first_output_s=received.first_output_s,
            last_output_s=received.last_output_s,
            serving=self.serving,
            trying=self.trying,
            attempts=self.attempts,
            failures=tuple(self._failures),
            demand=received.demand,
            dropped=self._dropped,
            texts=received.texts,
            reasonings=received.reasonings,
            reported=received.reported,
            output_cap=received.output_cap,
            given=received.given,
            upstream_id=received.upstream_id,
            finished=received.finished,
            size=received.size,
            error=self._error,
            client_left=client_left,
            reached_client=self._request.stream and self.serving is not None,
        )

    @property
    def serving(self) -> Planned | None:
        """The target of the last attempt, if its output has gone to the sink."""
        return self.trying if self.received.first_output_s is not None else None

    @property
    def waited_s(self) -> float:
        """How long vendors were waited for until a whole answer was there, or the first output of a stream."""
        waited_s = sum(failed.duration_s for failed in self._failures)
        if self._asked_s is None:
            return waited_s
        received = self.received
        until_s = received.answered_s or received.first_output_s
        if until_s is None:
            until_s = self._resources.clock.monotonic_s()
        return waited_s + until_s - self._asked_s

    async def _attempt(
        self, request: Request, planned: Planned, call: UpstreamCall, demand: Demand, visit: Visit
    ) -> Fault | None:
        """One call. None when it ended well."""
        self.trying = planned
        self.attempts += 1
        if self._trace is not None:
            told = {**call.headers, "traceparent": self._trace.header(self.attempts)}
            call = msgspec.structs.replace(call, headers=told)
        self.received = Received(
            demand=demand, output_cap=call.output_cap, upstream_id=self.received.upstream_id
        )
        attempt = Attempt(self._resources, request, planned, call, self.received, self._sink, visit)
        self._asked_s = attempt.began_s
        if self._first_call_s is None:
            self._first_call_s = attempt.began_s
        failed = await attempt.run(self._deadline_s)
        if failed is None:
            self._dropped = call.dropped
            return None
        if self.serving is not None:
            self._error = in_band_error(failed.fault)
        else:
            self._failures.append(failed)
            self._asked_s = None
        return failed.fault

    async def _once_more(
        self,
        request: Request,
        planned: Planned,
        refused: UpstreamCall,
        demand: Demand,
        fault: Fault,
        visit: Visit,
    ) -> Fault | None:
        """The same endpoint once more, with the reasoning of earlier turns sent as the vendor's refusal asks.

        Not if the call would be the same, or if nothing is left of the request without it.
        """
        resources, size = self._resources, request.body_bytes
        adapter = resources.adapters[planned.target.adapter]
        try:
            changed = await resources.offload.run(size, for_second_try, request, fault, adapter)
            call = await resources.offload.run(size, build, adapter, changed, planned.target)
        except InvalidRequest:
            return fault
        if call.body == refused.body:
            return fault
        return await self._attempt(changed, planned, call, demand, visit)
