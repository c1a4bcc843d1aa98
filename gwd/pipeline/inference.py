"""The conductor: one generation from plan to its last frame, in a task of its own (design section 3).

    1 plan · 2 admit · 3 dispatch · 4 settle · 5 Settled

The handler that serves the client only consumes `head` and `outlet`. A client that leaves stops the upstream call,
never the settlement; the generation's exit always settles or releases its hold, once.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import msgspec

from gwd.core import sse
from gwd.core.clock import US_PER_S
from gwd.core.counters import Counters
from gwd.core.errors import (
    Draining,
    Fault,
    GatewayError,
    Unavailable,
)
from gwd.core.events import Event, Failed, collect
from gwd.core.node_clock import NodeClock
from gwd.core.request import Embed, Request
from gwd.dialects.base import Dialect, Renderer, Reply
from gwd.ledger.quarantine import mistake, refusal
from gwd.pipeline.admit.admission import Admitted, Refused, Stale, admit
from gwd.pipeline.admit.ticket import Ticket, refused_row
from gwd.pipeline.client.head import Head
from gwd.pipeline.client.outlet import Outlet
from gwd.pipeline.dispatch.attempt import Outcome
from gwd.pipeline.dispatch.beside import Beside
from gwd.pipeline.dispatch.dispatch import Dispatcher
from gwd.pipeline.dispatch.memory import recalled, remember
from gwd.pipeline.plan.routing import Plan, Planned, Refusal, plan
from gwd.pipeline.plan.state import PlanningState
from gwd.pipeline.settle.bill import opening_usage
from gwd.pipeline.settle.books import Books, books_of, explain, given_up_row, show
from gwd.pipeline.settle.closing import Closing, given_up, late
from gwd.pipeline.settle.counting import count_bill, count_end
from gwd.pipeline.settle.progress import Meter
from gwd.pipeline.settle.settlement import abandon
from gwd.pricing.hold import Demand, measure
from gwd.store import Store
from gwd.vendors.base import Signatures

STREAM_COMMIT_S: Final = 25.0
KEEPALIVE_S: Final = 10.0
SETTLE_WAIT_S: Final = 10.0

log = logging.getLogger(__name__)

T = TypeVar("T")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What the line needs; one for the node. `spawn` starts a supervised task.

    `in_quarantine` tells that the ledger was found not to add up: then no vendor is called any more.
    """

    store: Store
    state: PlanningState
    dispatcher: Dispatcher
    clock: NodeClock
    boot_id: str
    in_flight_cap: int
    app_url: str
    spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
    counters: Counters
    beside: Beside
    live: dict[str, "Generation"]
    in_quarantine: Callable[[], bool]


def start(
    line: Line,
    request: Request,
    dialect: Dialect,
    ticket: Ticket,
    allowed_models: tuple[str, ...] | None,
) -> "Generation":
    """Begin a generation; its task runs to its end whatever becomes of the caller."""
    generation = Generation(line, request, dialect, ticket, allowed_models)
    line.live[ticket.generation_id] = generation
    generation.task = line.spawn(generation.run())
    return generation


class Generation:
    """One request on its way. `head` resolves once; `outlet` then carries the stream's frames."""

    def __init__(
        self,
        line: Line,
        request: Request,
        dialect: Dialect,
        ticket: Ticket,
        allowed_models: tuple[str, ...] | None,
    ) -> None:
        self.head: asyncio.Future[Head] = asyncio.get_running_loop().create_future()
        self.outlet = Outlet()
        self.task: asyncio.Task[None] | None = None
        self.ticket = ticket
        self._named = {"generation_id": ticket.generation_id}  # in every line of the log
        self._line = line
        self._request = request
        self._dialect = dialect
        self._allowed_models = allowed_models
        self._outcome = Outcome(started_s=line.clock.monotonic_s())
        self._targets: tuple[Planned, ...] = ()
        self._events: list[Event] = []
        self._renderer: Renderer | None = None
        self._meter: Meter | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_push_s = 0.0
        self._dispatching = False
        self._stop: GatewayError | None = None
        self._on_record = False  # the ledger and the activity know of the end, or will
        self._signatures: list[Signatures] = []
        self._demand: Demand | None = None
        self._hold_nano = 0

    @property
    def age_s(self) -> float:
        """How long ago it began, whatever the wall clock has done since."""
        return self._line.clock.monotonic_s() - self._outcome.started_s

    @property
    def is_settling(self) -> bool:
        """Whether its end is known and goes to the books until they have it."""
        return self._on_record

    async def run(self) -> None:
        """The line. Whatever happens in it, the hold is resolved and the head is answered."""
        error: GatewayError = Draining("the gateway is stopping; try again")
        try:
            self._demand = await self._beside(measure, self._request)
            admitted, planned = await self._admit()
            self._outcome.passed_over = planned.passed_over
            if isinstance(admitted, Refused):
                self._on_record = True
                error = admitted.error
                explain(error, planned, self.ticket, self._request, self._outcome, self._line.clock)
                return
            assert isinstance(planned, Plan)
            self._targets = admitted.targets
            self._outcome.opens_s = planned.opens_s
            self._hold_nano = admitted.hold_nano
            await self._recall()
            await self._dispatch()
            await self._finish(planned)
        except GatewayError as refusal:
            error = refusal
        except Exception as broken:
            log.exception("generation failed", extra=self._named)
            error = mistake(broken)
        finally:
            if not self._on_record:
                self._abandon(error)
            self._end(Head(served=None, error=error))
            count_end(self._line.counters, self._outcome, self.ticket, self._line.clock)
            del self._line.live[self.ticket.generation_id]

    def client_left(self) -> None:
        """Nobody waits for the answer any more: stop the vendor, keep what was produced for the bill."""
        self._outcome.client_left = True
        self.outlet.abandon()
        self._interrupt()

    def stop(self, error: GatewayError) -> None:
        """The node is stopping, or it is too late: end the answer in-band with this error."""
        self._stop = error
        self._interrupt()

    def give_up(self) -> None:
        """It did not end although it was told to: what it holds is resolved by its last checkpoint, not here."""
        self._on_record = True
        if self.task is not None:
            self.task.cancel()
        self._end(Head(served=None, error=self._stop))

    def checkpoint(self) -> bytes | None:
        """What recovery needs if the process dies now; None when nothing was delivered since the last one."""
        return self._meter.checkpoint(self._outcome) if self._meter is not None else None

    # --- the sink of dispatch

    def begin(self, planned: Planned) -> None:
        """The first output is there: the answer's head can go out."""
        if not self._request.stream:
            return
        self._outcome.reached_client = True
        assert self._demand is not None
        self._meter = Meter(planned, self._demand)
        self._renderer = self._renderer_for(planned)
        self._commit(planned)

    async def emit(self, events: list[Event]) -> None:
        """Render and hand over; wait while the client is far behind."""
        if self._renderer is None or self._signatures:
            self._events += events
        if self._renderer is None:
            return
        self._push(await self._rendered(self._renderer, events, self._outcome.received_bytes))
        if not self.outlet.has_room:
            self._outcome.client_is_behind = True
            await self.outlet.room()

    # --- the steps

    async def _admit(self) -> tuple[Admitted | Refused, Plan | Refusal]:
        line, ticket = self._line, self.ticket
        for _ in range(2):
            situation = await line.state.situation(ticket.organization_id, self._allowed_models)
            assert self._demand is not None
            planned = plan(self._request, situation, self._demand)
            answer = await line.store.write(
                admit,
                planned,
                ticket,
                boot_id=line.boot_id,
                in_flight_cap=line.in_flight_cap,
                app_url=line.app_url,
                now_us=line.clock.now_us(),
                due_us=line.clock.due_us(),
            )
            if not isinstance(answer, Stale):
                return answer, planned
            line.state.forget(ticket.organization_id)
        raise Unavailable("the catalog is changing right now; try again", retry_after_s=1)

    async def _recall(self) -> None:
        """Put back what this client dropped of earlier turns and their vendor wants to see again."""
        line, request = self._line, self._request
        if isinstance(request.body, Embed) or not request.body.tools:
            return
        self._signatures = line.dispatcher.signatures_of(self._targets)
        self._request = await recalled(
            line.store, self._signatures, request, self.ticket.organization_id, line.clock
        )

    def _remember(self) -> None:
        """Keep for the next turn what its vendor will want to see again."""
        line, finished = self._line, self._outcome.finished
        if self._signatures and finished is not None and finished.reason == "tool_calls":
            organization_id = self.ticket.organization_id
            remember(line.store, self._signatures, self._events, organization_id, line.clock)

    async def _dispatch(self) -> None:
        outcome = self._outcome
        if outcome.client_left or self._stop is not None:
            outcome.error = self._stop
            return
        if self._line.in_quarantine():
            outcome.error = refusal()
            return
        if self._request.stream:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(STREAM_COMMIT_S, self._commit_late)
        self._dispatching = True
        try:
            await self._line.dispatcher.run(self._request, self._targets, outcome, self)
        except asyncio.CancelledError:
            if not outcome.client_left and self._stop is None:
                raise
            assert self.task is not None
            while self.task.cancelling():
                self.task.uncancel()
            if outcome.finished is None:
                outcome.error = self._stop
        except Exception as broken:
            # The vendor's part is over: what reached the client is settled like any answer that broke off.
            log.exception("dispatch failed", extra=self._named)
            self._outcome.break_off(mistake(broken))
        finally:
            self._dispatching = False

    async def _finish(self, planned: Plan) -> None:
        """Settle, then say so: cost and receipt travel in the client's last frame."""
        books = self._books(planned)
        body = None
        if self._wants_whole():
            # Rendered before it is charged: an answer that cannot be rendered costs nothing.
            try:
                body = await self._whole(books)
            except GatewayError as error:
                self._outcome.break_off(error)
                books = self._books(planned)
            except Exception as broken:
                log.exception("an answer could not be rendered", extra=self._named)
                self._outcome.break_off(mistake(broken))
                books = self._books(planned)
        line = self._line
        closing = Closing(
            line.store,
            line.clock,
            line.app_url,
            row=books.row,
            charged=books.bill.charged,
            otherwise=None
            if self._request.stream
            else lambda: given_up_row(self.ticket, books.row, given_up()),
        )
        self._on_record = True
        in_time = await self._settle(closing)
        count_bill(line.counters, self._outcome, books.bill, planned.demand, self._hold_nano)
        await self._close(books, self._outcome.error, body)
        self._remember()
        if not in_time:
            self._end(Head(served=self._outcome.trying, error=self._outcome.error))
            await closing.settle_later()

    async def _settle(self, closing: Closing) -> bool:
        """False when it takes longer than the client should wait."""
        try:
            if await closing.settle(SETTLE_WAIT_S):
                return True
        except Exception as broken:
            log.exception("a settlement failed", extra=self._named)
            self._outcome.break_off(mistake(broken))
            return True
        log.error("a settlement is late", extra=self._named)
        error = late() if self._request.stream else given_up()
        self._outcome.error = self._outcome.error or error
        return False

    def _books(self, planned: Plan) -> Books:
        return books_of(
            self.ticket,
            self._request,
            self._outcome,
            planned.demand,
            primary=self._targets[0],
            clock=self._line.clock,
        )

    def _wants_whole(self) -> bool:
        outcome = self._outcome
        return (
            not self._request.stream
            and not outcome.client_left
            and outcome.error is None
            and outcome.finished is not None
        )

    async def _whole(self, books: Books) -> bytes:
        served = self._outcome.serving
        assert served is not None
        renderer = self._renderer_for(served)
        return await self._line.beside.run(
            self._outcome.received_bytes,
            lambda: renderer.whole(collect(self._events), books.settled),
        )

    async def _close(self, books: Books, error: GatewayError | None, body: bytes | None) -> None:
        """Say the last word to the client, if it is still there."""
        outcome, receipt = self._outcome, books.settled.receipt
        if outcome.client_left:
            return
        show(receipt, error, outcome)
        if error is not None and not self.head.done():
            self._answer(Head(served=outcome.serving or outcome.trying, error=error))
            return
        if not self._request.stream:
            self._answer(Head(served=outcome.serving, body=body))
            return
        renderer = self._renderer or self._renderer_for(outcome.trying or self._targets[0])
        self._renderer = renderer
        events: list[Event] = [books.settled]
        if error is not None:
            fault = Fault(reason="upstream_error", message=error.message)
            events = [Failed(fault, error), books.settled]
        # Some dialects say everything once more at the end.
        said = sum(map(len, outcome.texts)) + sum(map(len, outcome.reasonings))
        self._push(await self._rendered(renderer, events, said))

    # --- small steps

    async def _beside(self, function: Callable[..., T], *arguments: object) -> T:
        """A computation that grows with the request."""
        return await self._line.beside.run(self._request.body_bytes, function, *arguments)

    def _abandon(self, error: GatewayError) -> None:
        """The exit of a line that broke: the writer's queue orders this after the hold, so nothing leaks."""
        line, now_us = self._line, self._line.clock.now_us()
        row = refused_row(self.ticket, error, now_us)
        line.store.submit(abandon, row, app_url=line.app_url, now_us=now_us)

    async def _rendered(self, renderer: Renderer, events: list[Event], size: int) -> bytes:
        """The frames of events; `size` is what they may hold."""
        return await self._line.beside.run(size, lambda: sse.safe(renderer.feed(events)))

    def _end(self, head: Head) -> None:
        """Nothing more goes to the client."""
        self._end_timer()
        self._answer(head)
        self.outlet.close()

    def _renderer_for(self, planned: Planned) -> Renderer:
        reply = Reply(
            generation_id=self.ticket.generation_id,
            created_s=self.ticket.created_us // US_PER_S,
            model=planned.target.model,
            vendor=planned.target.vendor,
            request_id=self.ticket.request_id,
        )
        if self._dialect.name == "messages" and self._demand is not None:
            # Only this one states input tokens before the answer has ended.
            prompt = opening_usage(self._outcome, self._demand, planned.target)
            reply = msgspec.structs.replace(reply, prompt=prompt)
        return self._dialect.renderer(self._request, reply)

    def _interrupt(self) -> None:
        if self._dispatching and self.task is not None:
            self.task.cancel()

    def _answer(self, head: Head) -> None:
        if not self.head.done():
            self.head.set_result(head)

    def _commit(self, planned: Planned) -> None:
        self._end_timer()
        self._answer(Head(served=planned))
        self._timer = asyncio.get_running_loop().call_later(KEEPALIVE_S, self._keep_alive)

    def _commit_late(self) -> None:
        """No output in 25 s: the client's connection needs a sign of life while failover goes on behind it."""
        self._commit(self._outcome.trying or self._targets[0])
        self._push(sse.COMMENT)

    def _keep_alive(self) -> None:
        if self._line.clock.monotonic_s() - self._last_push_s >= KEEPALIVE_S - 0.5:
            self._push(self._renderer.idle() if self._renderer is not None else sse.COMMENT)
        self._timer = asyncio.get_running_loop().call_later(KEEPALIVE_S, self._keep_alive)

    def _push(self, frames: bytes) -> None:
        if frames:
            self._last_push_s = self._line.clock.monotonic_s()
            self.outlet.push(frames)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
