"""Events to the responses event sequence, and to the whole response object made of the same items."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, assert_never

import msgspec

from gwd.core import money, sse
from gwd.core.clock import Clock
from gwd.core.cost import Cost
from gwd.core.events import (
    Completion,
    Embedded,
    Event,
    Failed,
    Finished,
    PartDelta,
    PartEnded,
    PartStarted,
    Settled,
    Started,
)
from gwd.core.request import (
    Generate,
    ReasoningPart,
    RefusalPart,
    Request,
    TextPart,
    ToolCallPart,
)
from gwd.core.usage import Usage
from gwd.dialects.base import Reply
from gwd.dialects.responses.event_writer import EventWriter
from gwd.dialects.responses.failures import failure_of
from gwd.dialects.responses.namespaces import Member
from gwd.dialects.responses.output_calls import CustomCallOutput, FunctionCallOutput
from gwd.dialects.responses.output_items import (
    ItemStatus,
    MessageOutput,
    OutputItem,
    OwnOutput,
    ReasoningOutput,
)
from gwd.dialects.responses.parse import Echo, ResponsesRequest
from gwd.dialects.responses.wire import (
    ErrorObject,
    IncompleteDetails,
    InputDetails,
    OutputDetails,
    ResponseObject,
    UsageObject,
)

Status = Literal["completed", "incomplete", "failed"]
ItemKeeper = Callable[[dict[str, bytes]], None]
_encode = msgspec.json.Encoder().encode
_BROKEN_FINISH: Final = ErrorObject(
    code="server_error", message="the vendor ended its answer with an error"
)


class ResponsesRenderer:
    """One generation. An item stays open until the next one starts or the answer ends, so that its status is known."""

    def __init__(
        self, request: Request, reply: Reply, clock: Clock, keep: ItemKeeper | None = None
    ) -> None:
        assert isinstance(request.body, Generate)
        self._body = request.body
        self._include_cost = request.include_cost
        own = isinstance(request, ResponsesRequest)
        self._echo = request.echo if isinstance(request, ResponsesRequest) else Echo()
        self._namespaces = request.namespaces if isinstance(request, ResponsesRequest) else {}
        self._user = self._echo.user if own else request.sender.user_id
        self._custom = frozenset(tool.name for tool in self._body.tools if tool.custom)
        self._hide_reasoning = self._body.reasoning is not None and self._body.reasoning.exclude
        self._reply = reply
        self._clock = clock
        self._keep_items = keep
        self._writer = EventWriter()
        self._opened = False
        self._item: OutputItem | None = None
        self._items: list[tuple[str, bytes]] = []
        self._texts: list[str] = []
        self._refused = False
        self._service_tier = self._echo.service_tier
        self._end: Finished | Failed | None = None
        self._tools = msgspec.Raw(_encode(self._echo.tools))
        self._tool_choice = msgspec.Raw(_encode(self._echo.tool_choice))

    @property
    def emitted_items(self) -> dict[str, bytes]:
        """The items of the answer as JSON by their ids: what a later item_reference may mean."""
        return dict(self._items)

    def feed(self, events: Sequence[Event]) -> bytes:
        for event in events:
            if type(event) is PartDelta:
                if self._item is not None:
                    self._item.delta(event.text, event.extras)
            else:
                self._turn(event)
        return self._writer.take()

    def idle(self) -> bytes:
        return sse.COMMENT

    def whole(self, completion: Completion, settled: Settled) -> bytes:
        self.feed(_replayed(completion))
        response = self._final(settled)
        self._remember(response)
        return _encode(response)

    def _turn(self, event: Event) -> None:
        self._open()
        match event:
            case Started():
                self._note_tier(event.extras)
            case PartStarted():
                self._start(event)
            case PartEnded():
                if self._item is not None:
                    self._item.end(event)
            case Finished():
                self._finish(event)
            case Failed():
                self._fail(event)
            case Settled():
                self._settle(event)
            case PartDelta() | Embedded():
                pass

    def _open(self) -> None:
        if self._opened:
            return
        self._opened = True
        response = self._response("in_progress", usage=None, output=[])
        self._writer.event("response.created", {"response": response})
        self._writer.event("response.in_progress", {"response": response})

    def _start(self, part: PartStarted) -> None:
        if self._item is None or not self._item.takes(part):
            self._close_item("completed")
            if part.kind == "reasoning" and self._hide_reasoning:
                return
            self._item = self._new_item(part)
            added = {"output_index": len(self._items), "item": self._item.body("in_progress")}
            self._writer.event("response.output_item.added", added)
        self._item.start(part)

    def _new_item(self, part: PartStarted) -> OutputItem:
        index = len(self._items)
        suffix = f"{self._reply.id_suffix}_{index}"
        match part.kind:
            case "text" if part.item is not None:
                return OwnOutput(f"item_{suffix}", part.item)
            case "text" | "refusal":
                return MessageOutput(self._writer, f"msg_{suffix}", index)
            case "reasoning":
                return ReasoningOutput(self._writer, f"rs_{suffix}", index, part)
            case "tool_call":
                name = part.name or ""
                tool = self._namespaces.get(name) or Member(namespace="", name=name)
                if name in self._custom:
                    return CustomCallOutput(self._writer, f"ctc_{suffix}", index, part, tool)
                return FunctionCallOutput(self._writer, f"fc_{suffix}", index, part, tool)

    def _close_item(self, status: ItemStatus) -> None:
        item, self._item = self._item, None
        if item is None:
            return
        body = item.body(status)
        done = {"output_index": len(self._items), "item": body}
        self._writer.event("response.output_item.done", done)
        self._keep(item, body)

    def _keep(self, item: OutputItem, body: dict[str, Any]) -> None:
        self._items.append((item.id, _encode(body)))
        if isinstance(item, MessageOutput):
            self._texts.append(item.text)
            self._refused = self._refused or item.has_refusal

    def _finish(self, finished: Finished) -> None:
        cut = finished.reason in ("length", "content_filter", "error")
        self._close_item("incomplete" if cut else "completed")
        if finished.reason == "content_filter" and finished.explanation and not self._refused:
            self._explain(finished.explanation)
        self._note_tier(finished.extras)
        self._end = finished

    def _explain(self, explanation: str) -> None:
        """A vendor's words on why it refused, as the refusal this dialect has a place for."""
        index = len(self._items)
        self._start(PartStarted(index, "refusal"))
        assert self._item is not None
        self._item.delta(explanation, None)
        self._item.end(PartEnded(index))
        self._close_item("completed")

    def _fail(self, failed: Failed) -> None:
        """Complete items are closed. One that broke off is not: an agent would run half a call, and keep half a
        message that its retry produces again."""
        if self._item is not None and not self._item.part_is_open:
            self._close_item("completed")
        self._end = failed

    def _settle(self, settled: Settled) -> None:
        response = self._final(settled)
        assert response.status != "in_progress"
        self._remember(response)
        self._writer.event(f"response.{response.status}", {"response": response})

    def _remember(self, response: ResponseObject) -> None:
        """A client may refer to the items of an answer that it got whole."""
        if self._keep_items is not None and response.status != "failed":
            self._keep_items(self.emitted_items)

    def _final(self, settled: Settled) -> ResponseObject:
        """The terminal object."""
        assert self._end is not None
        match self._end:
            case Failed():
                if isinstance(self._item, MessageOutput):
                    self._keep_broken(self._item)
                error, error_type = failure_of(self._end, self._reply.generation_id)
                status: Status = "failed"
                more: dict[str, Any] = {"error": error, "error_type": error_type}
            case Finished(reason="error"):
                status, more = "failed", {"error": _BROKEN_FINISH, "error_type": "upstream_error"}
            case Finished(reason="length"):
                status, more = "incomplete", _because("max_output_tokens")
            case Finished(reason="content_filter"):
                status, more = "incomplete", _because("content_filter")
            case Finished():
                status, more = "completed", {}
            case _:
                assert_never(self._end)
        if settled.receipt is not None:
            more["gateway_metadata"] = settled.receipt
        return msgspec.structs.replace(
            self._response(
                status,
                usage=self._usage(settled.usage, settled.cost),
                output=[msgspec.Raw(item) for _, item in self._items],
            ),
            completed_at=self._clock.now_us() // 1_000_000,
            **more,
        )

    def _keep_broken(self, item: MessageOutput) -> None:
        body = item.body("incomplete")
        self._items.append((item.id, _encode(body)))
        self._texts += (part["text"] for part in body["content"] if part["type"] == "output_text")

    def _response(
        self,
        status: Literal["in_progress", "completed", "incomplete", "failed"],
        *,
        usage: UsageObject | None,
        output: list[msgspec.Raw],
    ) -> ResponseObject:
        echo = self._echo
        return ResponseObject(
            id=f"resp_{self._reply.id_suffix}",
            created_at=self._reply.created_s,
            status=status,
            instructions=echo.instructions,
            max_output_tokens=self._body.max_output_tokens,
            metadata=echo.metadata if echo.metadata is not None else {},
            model=self._reply.model,
            provider=self._reply.vendor,
            output=output,
            output_text="".join(self._texts) if output else "",
            parallel_tool_calls=echo.parallel_tool_calls,
            prompt_cache_key=echo.prompt_cache_key,
            reasoning={"effort": echo.reasoning_effort, "summary": echo.reasoning_summary},
            safety_identifier=echo.safety_identifier,
            service_tier=self._service_tier,
            temperature=self._body.sampling.temperature,
            top_p=self._body.sampling.top_p,
            text={"format": echo.format or {"type": "text"}, "verbosity": echo.verbosity},
            tool_choice=self._tool_choice,
            tools=self._tools,
            usage=usage,
            user=self._user,
        )

    def _usage(self, usage: Usage, cost: Cost) -> UsageObject:
        counts = UsageObject(
            input_tokens=usage.input_total,
            input_tokens_details=InputDetails(
                cached_tokens=usage.cache_read, cache_write_tokens=usage.cache_write
            ),
            output_tokens=usage.output_total,
            output_tokens_details=OutputDetails(reasoning_tokens=usage.reasoning),
            total_tokens=usage.total,
        )
        if not self._include_cost:
            return counts
        prompt_nano = cost.prompt_nano + cost.cache_read_nano + cost.cache_write_nano
        completion_nano = cost.completion_nano + cost.reasoning_nano
        return msgspec.structs.replace(
            counts,
            cost=money.usd_json(cost.total_nano),
            cost_details={
                "upstream_inference_cost": (
                    money.usd_json(cost.list_price_nano) if cost.byok else None
                ),
                "upstream_inference_prompt_cost": money.usd_json(prompt_nano),
                "upstream_inference_completions_cost": money.usd_json(completion_nano),
            },
            is_byok=cost.byok,
        )

    def _note_tier(self, extras: dict[str, Any] | None) -> None:
        tier = extras.get("service_tier") if extras else None
        if isinstance(tier, str):
            self._service_tier = tier


def _because(reason: Literal["max_output_tokens", "content_filter"]) -> dict[str, Any]:
    return {"incomplete_details": IncompleteDetails(reason=reason)}


def _replayed(completion: Completion) -> list[Event]:
    """The events that a whole answer would have come in as, one delta a part."""
    events: list[Event] = [completion.started]
    for index, part in enumerate(completion.parts):
        signature: str | None = None
        match part:
            case TextPart(text=text):
                events.append(PartStarted(index, "text", item=(part.extras or {}).get("item")))
            case RefusalPart(text=text):
                events.append(PartStarted(index, "refusal"))
            case ToolCallPart(arguments=text):
                events.append(PartStarted(index, "tool_call", call_id=part.call_id, name=part.name))
            case ReasoningPart(text=text):
                signature = part.signature
                events.append(
                    PartStarted(
                        index,
                        "reasoning",
                        format=part.format,
                        redacted=part.redacted,
                        summary=part.summary,
                        item_id=part.item_id,
                    )
                )
            case _:
                assert_never(part)
        if text:
            events.append(PartDelta(index, text))
        events += (PartDelta(index, "", more) for more in completion.part_extras.get(index, ()))
        events.append(PartEnded(index, signature))
    events.append(completion.finished)
    return events
