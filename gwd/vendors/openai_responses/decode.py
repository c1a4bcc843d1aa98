"""Answers of a responses server, whole and streamed, to events."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from gwd.core.errors import Fault
from gwd.core.events import Event, Failed, Finished, FinishReason, Started
from gwd.core.extras import Given, said
from gwd.core.lenient_json import UNREADABLE
from gwd.core.request import Request
from gwd.core.sse import Frame
from gwd.core.target import Target
from gwd.core.usage import Usage, count_of
from gwd.vendors.base import UndecodableError
from gwd.vendors.finish import meaning_of, reason_of, word_of
from gwd.vendors.openai_responses.build import tool_names
from gwd.vendors.openai_responses.content import FAMILY
from gwd.vendors.openai_responses.faults import fault_inside
from gwd.vendors.openai_responses.items import Items
from gwd.vendors.openai_responses.parts import Parts, Slot, logprobs_of
from gwd.vendors.openai_responses.wire import EventWire, TextDelta
from gwd.vendors.second_reading import SecondReading, lines_of
from gwd.vendors.streamed import decode_streamed, looks_streamed
from gwd.vendors.usage import Reports
from gwd.vendors.usage_formats import OPENAI

_TEXT_DELTA: Final = msgspec.json.Decoder(TextDelta).decode
_EVENT: Final = msgspec.json.Decoder(EventWire).decode
_ANSWER: Final = msgspec.json.Decoder(dict[str, Any]).decode
_UNFINISHED: Final = ("queued", "in_progress")


def decode(body: bytes, request: Request, target: Target) -> list[Event]:
    """A whole answer of status 200. A server that streams although it was not asked to is understood too."""
    decoder = ResponsesStreamDecoder(request, target)
    return decode_streamed(body, decoder) if looks_streamed(body) else decoder.whole(body)


class ResponsesStreamDecoder:
    """Decodes one answer, frame by frame."""

    def __init__(self, request: Request, target: Target) -> None:
        self._reports = Reports(OPENAI, reasoning_excluded=target.flags.reasoning_excluded)
        self._second = SecondReading()
        self._parts = Parts()
        self._take = self._taken
        runs_tools = bool(target.sold.tools) and request.family == FAMILY
        self._items = Items(self._parts, tool_names(request), runs_tools=runs_tools)
        self._tier: str | None = None
        self._searches: int | None = None
        self._has_started = False
        self._is_over = False
        self._text: Slot | None = None
        self._text_at: tuple[str | None, int | None, int | None] = (None, None, None)
        self._handlers: dict[str, Callable[[EventWire], None]] = {
            "response.created": self._created,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.content_part.added": self._part_added,
            "response.content_part.done": self._part_done,
            "response.output_text.delta": self._text_delta,
            "response.output_text.done": self._text_done,
            "response.output_text.annotation.added": self._annotation,
            "response.refusal.delta": self._refusal_delta,
            "response.refusal.done": self._refusal_done,
            "response.reasoning_summary_text.delta": self._summary_delta,
            "response.reasoning_text.delta": self._reasoning_delta,
            "response.function_call_arguments.delta": self._arguments_delta,
            "response.function_call_arguments.done": self._arguments_done,
            "response.custom_tool_call_input.delta": self._input_delta,
            "response.completed": self._terminal,
            "response.incomplete": self._terminal,
            "response.failed": self._terminal,
            "response.cancelled": self._terminal,
            "error": self._error,
        }

    @property
    def usage(self) -> Usage | None:
        return self._reports.usage

    @property
    def given(self) -> Given | None:
        searches = self._items.searches if self._searches is None else self._searches
        tier = {} if self._tier is None else {"service_tier": self._tier}
        return said(tier, searches)

    def feed(self, frame: Frame) -> list[Event]:
        if self._is_over:
            return []
        try:
            if frame.event == b"response.output_text.delta":
                delta = _TEXT_DELTA(frame.data)
                self._add_text(
                    delta.delta,
                    delta.item_id,
                    delta.output_index,
                    delta.content_index,
                    delta.logprobs,
                )
            elif frame.data.strip() != b"[DONE]":
                self._handle(_EVENT(frame.data))
        except UNREADABLE:
            return self._unusual(frame)
        return self._take()

    def close(self) -> list[Event]:
        """Only a terminal event ends an answer of this format: without one it was cut off."""
        if not self._is_over:
            self._fail(
                Fault(
                    reason="upstream_error",
                    message="the stream ended before the answer was complete",
                )
            )
        return self._take()

    def whole(self, body: bytes) -> list[Event]:
        """A whole answer as one JSON object."""
        try:
            value = self._second.first(_ANSWER, body)
        except UNREADABLE:
            raise UndecodableError("the answer is not a JSON object") from None
        self._expect_cuts()
        if value.get("error") or value.get("type") == "error":
            self._note(value)
            self._fail(fault_inside(value))
        elif isinstance(value.get("output"), list) and value.get("status") not in _UNFINISHED:
            self._finish(value)
        else:
            raise UndecodableError("the answer is not a finished response object")
        return self._take()

    def _taken(self) -> list[Event]:
        events, self._parts.events = self._parts.events, []
        return events

    def _taken_whole(self) -> list[Event]:
        return self._second.join(self._taken())

    def _expect_cuts(self) -> None:
        """After a second reading: from now on every piece may be the rest of a character."""
        if self._second.has_cuts:
            self._take = self._taken_whole

    def _unusual(self, frame: Frame) -> list[Event]:
        """Data that is no event at first sight: one that is no strict JSON, several in one, or nonsense."""
        try:
            event = self._second.read(frame.data, _EVENT)
        except UNREADABLE as error:
            if lines := lines_of(frame):
                return [event for line in lines for event in self.feed(Frame(b"", line.data))]
            raise UndecodableError(f"not an event of the responses format: {error}") from None
        self._expect_cuts()
        self._handle(event, named=frame.event)
        return self._take()

    def _handle(self, event: EventWire, *, named: bytes = b"") -> None:
        handler = self._handlers.get(event.type or named.decode("ascii", "replace"))
        if handler is not None:
            handler(event)
        elif event.error and not event.type:
            self._fail(fault_inside({"error": event.error}))

    def _start(self) -> None:
        if not self._has_started:
            self._has_started = True
            self._parts.events.append(Started())

    def _note(self, response: dict[str, Any]) -> None:
        """What the envelope tells: the vendor's own id and model, once, and the usage when it is there."""
        if not self._has_started:
            self._has_started = True
            upstream_id, model = response.get("id"), response.get("model")
            self._parts.events.append(
                Started(
                    upstream_id if isinstance(upstream_id, str) else None,
                    model if isinstance(model, str) else None,
                )
            )
        self._reports.add(response.get("usage"))
        tier = response.get("service_tier")
        if isinstance(tier, str) and tier:
            self._tier = tier.lower()

    def _created(self, event: EventWire) -> None:
        self._note(_dict(event.response))

    def _item_added(self, event: EventWire) -> None:
        self._start()
        self._items.add(_dict(event.item), event.output_index)

    def _item_done(self, event: EventWire) -> None:
        self._start()
        self._items.finish(_dict(event.item), event.output_index)

    def _part_added(self, event: EventWire) -> None:
        kind = _dict(event.part).get("type")
        if kind in ("output_text", "refusal"):
            self._slot(event, "refusal" if kind == "refusal" else "text")

    def _part_done(self, event: EventWire) -> None:
        part = _dict(event.part)
        if part.get("type") == "output_text":
            slot = self._slot(event, "text")
            self._parts.complete(slot, part.get("text"), logprobs_of(part.get("logprobs")))
            if not slot.annotations and isinstance(part.get("annotations"), list):
                slot.annotations += (a for a in part["annotations"] if isinstance(a, dict))
            self._parts.close(slot)
        elif part.get("type") == "refusal":
            slot = self._slot(event, "refusal")
            self._parts.complete(slot, part.get("refusal"))
            self._parts.close(slot)

    def _text_delta(self, event: EventWire) -> None:
        if isinstance(event.delta, str):
            self._add_text(
                event.delta, event.item_id, event.output_index, event.content_index, event.logprobs
            )

    def _add_text(
        self, text: str, item_id: Any, output_index: Any, content_index: Any, logprobs: Any
    ) -> None:
        at = (item_id, output_index, content_index)
        slot = self._text
        if slot is None or at != self._text_at or slot.is_closed:
            self._start()
            item = self._items.find_or_add("message", item_id, output_index)
            slot = self._text = self._items.text_slot(item, content_index, "text")
            self._text_at = at
        self._parts.feed(slot, text, logprobs_of(logprobs))

    def _text_done(self, event: EventWire) -> None:
        self._parts.complete(self._slot(event, "text"), event.text)

    def _annotation(self, event: EventWire) -> None:
        if isinstance(event.annotation, dict):
            self._slot(event, "text").annotations.append(event.annotation)

    def _refusal_delta(self, event: EventWire) -> None:
        if isinstance(event.delta, str):
            self._parts.feed(self._slot(event, "refusal"), event.delta)

    def _refusal_done(self, event: EventWire) -> None:
        self._parts.complete(self._slot(event, "refusal"), event.refusal)

    def _summary_delta(self, event: EventWire) -> None:
        self._add_reasoning(event, "summary", event.summary_index)

    def _reasoning_delta(self, event: EventWire) -> None:
        self._add_reasoning(event, "raw", event.content_index)

    def _add_reasoning(self, event: EventWire, kind: str, place: object) -> None:
        if isinstance(event.delta, str):
            self._start()
            item = self._items.find_or_add("reasoning", event.item_id, event.output_index)
            self._items.reasoning(item, event.delta, kind=kind, place=place)

    def _arguments_delta(self, event: EventWire) -> None:
        item = self._items.find(event.item_id, event.output_index)
        if item is not None and 0 in item.slots and isinstance(event.delta, str):
            self._parts.feed(item.slots[0], event.delta)

    def _arguments_done(self, event: EventWire) -> None:
        item = self._items.find(event.item_id, event.output_index)
        if item is not None and 0 in item.slots:
            self._parts.complete(item.slots[0], event.arguments)

    def _input_delta(self, event: EventWire) -> None:
        item = self._items.find(event.item_id, event.output_index)
        if item is not None:
            self._items.custom_input(item, event.delta)

    def _terminal(self, event: EventWire) -> None:
        response = _dict(event.response)
        response.setdefault("status", event.type.removeprefix("response."))
        self._finish(response)

    def _error(self, event: EventWire) -> None:
        error = event.error or {"code": event.code, "message": event.message}
        self._fail(fault_inside(error))

    def _slot(self, event: EventWire, kind: str) -> Slot:
        self._start()
        item = self._items.find_or_add("message", event.item_id, event.output_index)
        return self._items.text_slot(item, event.content_index, kind)

    def _finish(self, response: dict[str, Any]) -> None:
        self._note(response)
        status = response.get("status")
        if status in ("failed", "cancelled"):
            self._fail(fault_inside(response.get("error") or f"the vendor's answer is {status}"))
            return
        if self._parts.is_empty:
            # Some servers stream nothing and send everything with the terminal event.
            output = response.get("output")
            for index, item in enumerate(output if isinstance(output, list) else ()):
                self._items.finish(_dict(item), index)
        self._parts.close_all()
        billable = _dict(_dict(response.get("tool_usage")).get("web_search")).get("num_requests")
        if (number := count_of(billable)) is not None:
            self._searches = number
        word = self._word(response)
        tier = response.get("service_tier")
        self._parts.events.append(
            Finished(
                self._reason(response, word),
                upstream_reason=word,
                usage=self.usage,
                extras={"service_tier": tier} if isinstance(tier, str) else None,
                given=self.given,
            )
        )
        self._is_over = True

    def _word(self, response: dict[str, Any]) -> str:
        """Why the answer is incomplete, if it is, and else its status: some servers have a word of their own there."""
        status = word_of(response.get("status")) or "completed"
        if status != "incomplete":
            return status
        return word_of(_dict(response.get("incomplete_details")).get("reason")) or status

    def _reason(self, response: dict[str, Any], word: str) -> FinishReason | None:
        """An answer that says it is incomplete is never one that ended by itself."""
        whole = self._items.has_whole_call
        if response.get("status") != "incomplete":
            return reason_of(word, called=self._parts.calls > 0, called_whole=whole)
        if meaning_of(word) in ("length", "content_filter", "error"):
            return meaning_of(word)
        return "tool_calls" if whole and word != "incomplete" else "length"

    def _fail(self, fault: Fault) -> None:
        self._parts.events.append(Failed(fault))
        self._is_over = True


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
