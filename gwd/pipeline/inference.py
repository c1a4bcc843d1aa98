"""The conductor: one generation from plan to its last frame, in a task of its own.

    1 plan · 2 admit · 3 dispatch · 4 settle · 5 Settled

The handler that serves the client only consumes `head` and `frame_queue`. A client that leaves stops the upstream call,
never the settlement; the generation's exit always settles or releases its hold, once.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from gwd.activity.row import GenerationRow
from gwd.content_log.logging import Logging
from gwd.core.counters import Counters
from gwd.core.errors import Draining, GatewayError, Unavailable
from gwd.core.node_clock import NodeClock
from gwd.core.request import Embed, Request
from gwd.core.trace_context import Tracing
from gwd.credentials.vault import Vault
from gwd.dialects.base import Dialect
from gwd.keys.policy import KeyPolicy
from gwd.ledger.quarantine import internal_error, refusal
from gwd.pipeline.admit.admission import Admitted, Refused, Stale, admit
from gwd.pipeline.admit.identity import GenerationIdentity, refused_row
from gwd.pipeline.client.head import Head
from gwd.pipeline.client.side import ClientSide
from gwd.pipeline.dispatch.dispatch import Dispatch, Dispatcher
from gwd.pipeline.dispatch.offload import Offload
from gwd.pipeline.dispatch.outcome import Outcome
from gwd.pipeline.dispatch.turn_signatures import remember, with_kept_signatures
from gwd.pipeline.plan.plan_input import NOBODY, Asker
from gwd.pipeline.plan.routing import Plan, Planned, Refusal, plan
from gwd.pipeline.plan.state import PlanningState
from gwd.pipeline.plan.stickiness import Conversation, conversation_of
from gwd.pipeline.settle.bill import Bill
from gwd.pipeline.settle.content_log import ContentLogger
from gwd.pipeline.settle.counting import count_bill, count_end
from gwd.pipeline.settle.final_record import FinalRecord, explain, final_record_of, given_up_row
from gwd.pipeline.settle.observer import Ended, Observer, tell
from gwd.pipeline.settle.progress import Meter
from gwd.pipeline.settle.settle_wait import SettleWait, given_up, late
from gwd.pipeline.settle.settlement import abandon
from gwd.pricing.hold import LARGE_BYTES, Demand, measure
from gwd.store import Store
from gwd.vendors.base import Signatures

SETTLE_WAIT_S: Final = 10.0

log = logging.getLogger(__name__)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What the line needs; one for the node. `spawn` starts a supervised task.

    `in_quarantine` tells that the ledger was found not to add up: then no vendor is called any more. `observer` is told
    of each end. `tracing` is there where traces are kept.
    """

    store: Store
    state: PlanningState
    dispatcher: Dispatcher
    vault: Vault
    clock: NodeClock
    boot_id: str
    in_flight_cap: int
    app_url: str
    spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
    counters: Counters
    offload: Offload
    live: dict[str, "Generation"]
    content_logger: ContentLogger
    in_quarantine: Callable[[], bool]
    observer: Observer | None
    tracing: Tracing | None


def start(
    line: Line,
    request: Request,
    dialect: Dialect,
    identity: GenerationIdentity,
    key_policy: KeyPolicy,
    asker: Asker = NOBODY,
) -> "Generation":
    """Begin a generation; its task runs to its end whatever becomes of the caller."""
    generation = Generation(line, request, dialect, identity, key_policy, asker)
    line.live[identity.generation_id] = generation
    generation.task = line.spawn(generation.run())
    return generation


class Generation:
    """One request on its way. `head` resolves once; `frame_queue` then carries the stream's frames."""

    def __init__(
        self,
        line: Line,
        request: Request,
        dialect: Dialect,
        identity: GenerationIdentity,
        key_policy: KeyPolicy,
        asker: Asker,
    ) -> None:
        self.task: asyncio.Task[None] | None = None
        self.identity = identity
        self._named = {  # in every line of the log
            "generation_id": identity.generation_id,
            "request_id": identity.request_id,
        }
        self._line = line
        self._request = self._received = request
        self._logging: Logging | None = None
        self._key_policy = key_policy
        self._asker = asker
        self._client = ClientSide(
            request, dialect, identity, clock=line.clock, offload=line.offload
        )
        self.head, self.frame_queue = self._client.head, self._client.frame_queue
        self._outcome = Outcome(started_s=line.clock.monotonic_s())
        self._targets: tuple[Planned, ...] = ()
        self._hold_nano = 0
        self._conversation: Conversation | None = None
        self._signatures: list[Signatures] = []
        self._dispatch: Dispatch | None = None
        self._dispatching = False
        self._meter: Meter | None = None
        self._stop: GatewayError | None = None
        self._row: GenerationRow | None = None
        self._on_record = False  # the ledger and the activity know of the end, or will

    @property
    def age_s(self) -> float:
        """How long ago it began, whatever the wall clock has done since."""
        return self._line.clock.monotonic_s() - self._outcome.started_s

    @property
    def waited_s(self) -> float:
        """How long its vendors were waited for, until its answer began."""
        return 0.0 if self._dispatch is None else self._dispatch.waited_s

    @property
    def is_settling(self) -> bool:
        """Whether its end is known and being settled."""
        return self._on_record

    async def run(self) -> None:
        """The line. Plan to last frame. Whatever happens, the hold is settled or released and `head` resolves."""
        line, request = self._line, self._request
        error: GatewayError = Draining("the gateway is stopping; try again")
        try:
            demand = (
                await line.offload.run(request.body_bytes, measure, request)
                if request.body_bytes > LARGE_BYTES
                else measure(request)
            )
            admitted, planned = await self._admit(demand)
            if planned.passed_over:
                self._outcome = msgspec.structs.replace(
                    self._outcome, passed_over=planned.passed_over
                )
            if isinstance(admitted, Refused):
                self._on_record = True
                error = admitted.error
                explain(error, planned, self.identity, request, self._outcome, line.clock)
                return
            assert isinstance(planned, Plan)
            self._targets = admitted.targets
            self._hold_nano = admitted.hold_nano
            if self._logging is not None:
                self._client.keep_events()
            if not isinstance(request.body, Embed) and request.body.tools:
                await self._add_kept_signatures()
            await self._make_attempts(planned)
            await self._finish(planned)
        except GatewayError as refusal:
            error = refusal
        except Exception as broken:
            log.exception("generation failed", extra=self._named)
            error = internal_error(broken)
        finally:
            if not self._on_record:
                self._abandon(error)
            self._client.end(Head(served=None, error=error))
            count_end(line.counters, self._outcome, self.identity, line.clock)
            if line.observer is not None:
                now_us, now_s = line.clock.now_us(), line.clock.monotonic_s()
                ended = Ended(
                    row=self._row or refused_row(self.identity, error, now_us),
                    outcome=self._outcome,
                    trace=self.identity.trace,
                    now_us=now_us,
                    now_s=now_s,
                )
                tell(line.observer, ended)
            try:
                if self._logging is not None and self._targets:
                    events = self._client.events
                    await line.content_logger.keep(
                        self._logging, self.identity, self._received, events
                    )
            finally:
                del line.live[self.identity.generation_id]

    def when_ended(self, call: Callable[[], None]) -> None:
        """`call` once, when nothing of it is under way any more."""
        assert self.task is not None
        self.task.add_done_callback(lambda _: call())

    def client_left(self) -> None:
        """Nobody waits for the answer any more: stop the vendor, keep what was produced for the bill."""
        self._client.leave()
        self._interrupt()

    def stop(self, error: GatewayError) -> None:
        """The node is stopping, or it is too late: end the answer in-band with this error."""
        self._stop = error
        self._interrupt()

    def give_up(self, error: GatewayError) -> None:
        """It did not end after `stop`: recovery resolves its hold by the last checkpoint; a client that still waits for
        the head is told this error."""
        self._on_record = True
        if self.task is not None:
            self.task.cancel()
        self._client.end(Head(served=None, error=self._stop or error))

    def checkpoint(self) -> bytes | None:
        """What recovery needs if the process dies now; None when nothing was delivered since the last one."""
        dispatch = self._dispatch
        if dispatch is None or dispatch.serving is None or not self._request.stream:
            return None
        if self._meter is None:
            self._meter = Meter(dispatch.serving, dispatch.received, attempts=dispatch.attempts)
        return self._meter.checkpoint()

    # --- the steps

    async def _admit(self, demand: Demand) -> tuple[Admitted | Refused, Plan | Refusal]:
        line, identity = self._line, self.identity
        for _ in range(2):
            plan_input = await line.state.plan_input(
                identity.organization_id,
                self._key_policy,
                self._asker,
                self._find_conversation,
            )
            self._logging = self._wanted_log()
            planned = plan(self._request, plan_input, demand)
            answer = await line.store.write(
                admit,
                planned,
                identity,
                boot_id=line.boot_id,
                in_flight_cap=line.in_flight_cap,
                app_url=line.app_url,
                now_us=line.clock.now_us(),
                due_us=line.clock.due_us(),
            )
            if not isinstance(answer, Stale):
                return answer, planned
            line.state.forget(identity.organization_id)
        raise Unavailable("the catalog is changing right now; try again", retry_after_s=1)

    def _wanted_log(self) -> Logging | None:
        """Whether this request is to be stored; None for nearly all."""
        identity = self.identity
        wanted = self._line.state.logging(identity.organization_id)
        if wanted is None or not wanted.wants(
            family_id=identity.family_id, workspace_id=identity.workspace_id
        ):
            return None
        return wanted

    async def _add_kept_signatures(self) -> None:
        """Put back what this client dropped of earlier turns and their vendor wants to see again."""
        line, request = self._line, self._request
        self._signatures = line.dispatcher.signatures_of(self._targets)
        if self._signatures:
            self._client.keep_events()
        self._request = await with_kept_signatures(
            line.store,
            self._signatures,
            request,
            self.identity.organization_id,
            line.vault,
            line.clock,
        )

    def _remember(self) -> None:
        """Keep for the next turn what its vendor will want to see again."""
        line, finished = self._line, self._outcome.finished
        if self._signatures and finished is not None and finished.reason == "tool_calls":
            remember(
                line.store,
                self._signatures,
                self._client.events,
                self.identity.organization_id,
                line.vault,
                line.clock,
            )

    def _find_conversation(self) -> Conversation | None:
        """The one that the request goes on with; looked for only where there is a choice that depends on it."""
        if self._conversation is None:
            identity = self.identity
            self._conversation = conversation_of(
                self._request,
                organization_id=identity.organization_id,
                workspace_id=identity.workspace_id,
                family_id=identity.family_id,
            )
        return self._conversation

    def _stick(self, bill: Bill) -> None:
        """Where the next request of this conversation finds its prompt in the vendor's cache."""
        served = self._outcome.serving
        if served is None or bill.status != "succeeded":
            return
        usage = bill.usage
        if self._request.sender.session_id is None and not (usage.cache_read or usage.cache_write):
            return
        if (conversation := self._find_conversation()) is not None:
            now_s = self._line.clock.monotonic_s()
            self._line.state.stickiness.note(conversation, served.target, now_s)

    async def _make_attempts(self, planned: Plan) -> None:
        """Dispatch, and what became of it. From here on nothing but this result says how the generation ended."""
        client = self._client
        if client.left or self._stop is not None:
            self._outcome = msgspec.structs.replace(
                self._outcome, error=self._stop, client_left=client.left
            )
            return
        if self._line.in_quarantine():
            self._outcome = self._outcome.broken_off(refusal())
            return
        trace = self.identity.trace
        self._dispatch = dispatch = self._line.dispatcher.dispatch(
            self._request,
            self._targets,
            client,
            demand=planned.demand,
            opens_s=planned.opens_s,
            trace=trace if trace is not None and trace.is_sent else None,
        )
        client.wait_for_output(lambda: dispatch.trying or self._targets[0])
        broken: GatewayError | None = None
        interrupted = False
        self._dispatching = True
        try:
            await dispatch.run()
        except asyncio.CancelledError:
            if not client.left and self._stop is None:
                raise
            assert self.task is not None
            while self.task.cancelling():
                self.task.uncancel()
            interrupted = True
        except Exception as error:
            # The vendor's part is over: what reached the client is settled like any answer that broke off.
            log.exception("dispatch failed", extra=self._named)
            broken = internal_error(error)
        finally:
            self._dispatching = False
            self._outcome = dispatch.outcome(self._outcome, client_left=client.left)
        if broken is not None:
            self._outcome = self._outcome.broken_off(broken)
        elif interrupted and self._outcome.finished is None:
            self._outcome = msgspec.structs.replace(self._outcome, error=self._stop)

    async def _finish(self, planned: Plan) -> None:
        """Settle, then give the client its last frame, with cost and receipt."""
        final_record = self._final_record(planned)
        body = None
        if self._wants_whole():
            # Rendered before it is charged: an answer that cannot be rendered costs nothing.
            try:
                body = await self._client.whole(self._outcome, final_record)
            except GatewayError as error:
                self._outcome = self._outcome.broken_off(error)
                final_record = self._final_record(planned)
            except Exception as broken:
                log.exception("an answer could not be rendered", extra=self._named)
                self._outcome = self._outcome.broken_off(internal_error(broken))
                final_record = self._final_record(planned)
        settle_wait = self._settle_wait(final_record)
        self._on_record, self._row = True, final_record.row
        in_time = await self._settle(settle_wait)
        count_bill(
            self._line.counters,
            self._outcome,
            final_record.bill,
            planned.demand,
            hold_nano=self._hold_nano,
            now_s=self._line.clock.monotonic_s(),
        )
        self._stick(final_record.bill)
        await self._client.close(self._outcome, final_record, body, primary=self._targets[0])
        self._remember()
        if not in_time:
            if not self._request.stream:
                self._row = given_up_row(self.identity, final_record.row, given_up())
            self._client.end(Head(served=self._outcome.target, error=self._outcome.error))
            await settle_wait.settle_later()

    async def _settle(self, settle_wait: SettleWait) -> bool:
        """False when it takes longer than the client should wait."""
        try:
            if await settle_wait.settle(SETTLE_WAIT_S):
                return True
        except Exception as broken:
            log.exception("a settlement failed", extra=self._named)
            self._outcome = self._outcome.broken_off(internal_error(broken))
            return True
        log.error("a settlement takes longer than the client waits", extra=self._named)
        self._outcome = self._outcome.with_error(late() if self._request.stream else given_up())
        return False

    def _final_record(self, planned: Plan) -> FinalRecord:
        return final_record_of(
            self.identity,
            self._request,
            self._outcome,
            planned.demand,
            primary=self._targets[0],
            clock=self._line.clock,
        )

    def _settle_wait(self, final_record: FinalRecord) -> SettleWait:
        """The wait for settling: a stream is settled in the end, a whole answer that was given up is not charged."""
        line = self._line
        return SettleWait(
            line.store,
            line.clock,
            line.app_url,
            row=final_record.row,
            charged=final_record.bill.charged,
            otherwise=None
            if self._request.stream
            else lambda: given_up_row(self.identity, final_record.row, given_up()),
        )

    def _wants_whole(self) -> bool:
        outcome = self._outcome
        return (
            not self._request.stream
            and not outcome.client_left
            and outcome.error is None
            and outcome.finished is not None
        )

    # --- small steps

    def _abandon(self, error: GatewayError) -> None:
        """After an unexpected error: release the hold. The writer's queue runs this after the hold."""
        line, now_us = self._line, self._line.clock.now_us()
        row = refused_row(self.identity, error, now_us)
        line.store.submit(abandon, row, app_url=line.app_url, now_us=now_us)

    def _interrupt(self) -> None:
        if self._dispatching and self.task is not None:
            self.task.cancel()
