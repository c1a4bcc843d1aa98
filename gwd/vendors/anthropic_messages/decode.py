"""What the vendor answers to events: whole answers, and streams frame by frame.

One part is open at a time. Blocks that a vendor opens while another is open wait, with their deltas, until it ended;
its block indices only tell which block a delta belongs to.
"""

from collections import deque
from typing import Any, Final

import msgspec

from gwd.core.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
    PartDelta,
    PartEnded,
    PartStarted,
    Started,
)
from gwd.core.extras import SEARCH, Given, given_words, said
from gwd.core.ids import mint
from gwd.core.lenient_json import UNREADABLE
from gwd.core.request import Generate, Request
from gwd.core.sse import Frame
from gwd.core.target import Target
from gwd.core.usage import Usage, count_of
from gwd.vendors.anthropic_messages.faults import fault_in_answer, unfinished
from gwd.vendors.anthropic_messages.format import SIGNATURE_FORMAT
from gwd.vendors.anthropic_messages.open_block import READ_BLOCKS, OpenBlock
from gwd.vendors.anthropic_messages.tools import answer_tool, names_of
from gwd.vendors.anthropic_messages.wire import AnswerWire, Block, Delta, StreamEvent
from gwd.vendors.base import PartCount, UndecodableError, together
from gwd.vendors.finish import matched_stop, reason_of, word_of
from gwd.vendors.second_reading import SecondReading, lines_of
from gwd.vendors.streamed import decode_streamed, looks_streamed
from gwd.vendors.usage import Reports
from gwd.vendors.usage_formats import ANTHROPIC

_event: Final = msgspec.json.Decoder(StreamEvent).decode
_answer: Final = msgspec.json.Decoder(AnswerWire).decode
_block: Final = msgspec.json.Decoder(Block).decode

_EMPTY_BLOCK: Final = Block(type="")
_KIND_OF_DELTA: Final = {
    "input_json_delta": "tool_use",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
}


def decode(body: bytes, request: Request, target: Target) -> list[Event]:
    """A whole answer; one that came as a stream all the same is put together. Raises UndecodableError."""
    decoder = MessagesDecoder(request, target)
    if looks_streamed(body):
        return decode_streamed(body, decoder)
    return decoder.whole(body)


class MessagesDecoder:
    """Decodes one streamed answer. What opens it counts no output: the vendor's number there is a placeholder."""

    def __init__(self, request: Request, target: Target) -> None:
        self._own = request.family == "anthropic_messages"
        self._second = SecondReading()
        body = request.body
        self._stops = body.sampling.stop if isinstance(body, Generate) else ()
        self._names = names_of(request)
        self._answer_tool = answer_tool(request, target)
        self._reports = Reports(ANTHROPIC, reasoning_excluded=target.flags.reasoning_excluded)
        self._started = False
        self._over = False
        self._index = 0
        self._current: OpenBlock | None = None
        self._waiting: deque[OpenBlock] = deque()
        self._count = PartCount()
        self._by_index: dict[int, OpenBlock] = {}
        self._skipped: set[int] = set()
        self._call_ids: set[str] = set()
        self._called = self._called_whole = False
        self._answered = False
        self._is_text = False
        self._ending: dict[str, Any] | None = None
        self._searches = 0
        self._searches_reported: int | None = None

    @property
    def given(self) -> Given | None:
        begun = self._searches if self._searches_reported is None else self._searches_reported
        return said(given_words(self._reports.own), begun)

    @property
    def usage(self) -> Usage | None:
        return self._reports.usage

    def feed(self, frame: Frame) -> list[Event]:
        if self._over:
            return []
        data = frame.data
        if data == b"[DONE]" or not data:
            return []
        try:
            event = _event(data)
        except UNREADABLE:
            return self._unusual(frame)
        if event.type == "content_block_delta" and event.delta is not None:
            if (
                self._is_text
                and event.delta.text
                and self._by_index.get(event.index) is self._current
            ):
                return [PartDelta(self._index, event.delta.text)]
            return self._second.join(self._delta(event.index, event.delta))
        return self._second.join(self._other(event))

    def close(self) -> list[Event]:
        if self._over:
            return []
        if self._ending is not None and (self._word is not None or self._reports.is_whole):
            return self._second.join(self._finish())
        self._over = True
        return self._second.join([Failed(unfinished())])

    def whole(self, body: bytes) -> list[Event]:
        """A whole answer through the same steps as a stream. Raises UndecodableError."""
        try:
            answer = self._second.first(_answer, body)
        except UNREADABLE as error:
            raise UndecodableError(f"not a messages answer: {error}") from None
        if answer.error is not None or answer.type == "error":
            return [Failed(fault_in_answer(answer.error))]
        if answer.content is None and answer.stop_reason is None:
            raise UndecodableError("not a messages answer: it has no content")
        events = self._start(answer)
        for index, raw in enumerate(answer.content or ()):
            events += self._block_started(index, raw)
            events += self._block_stopped(index)
        self._report(answer.usage)
        self._ending = {
            "stop_reason": answer.stop_reason,
            "stop_sequence": answer.stop_sequence,
            "matched_stop": answer.matched_stop,
            "stop_details": answer.stop_details,
            "container": answer.container,
            "context_management": answer.context_management,
        }
        return self._second.join(events + self._finish())

    def _unusual(self, frame: Frame) -> list[Event]:
        """Data that is no event at first sight: one that is no strict JSON, several in one, or nonsense."""
        try:
            event = self._second.read(frame.data, _event)
        except UNREADABLE as error:
            if lines := lines_of(frame):
                return [event for line in lines for event in self.feed(line)]
            raise UndecodableError(f"not an event of a messages stream: {error}") from None
        if self._second.has_cuts:
            self._is_text = (
                False  # Every piece goes the long way: it may be the rest of a character.
            )
        if event.type == "content_block_delta" and event.delta is not None:
            return self._second.join(self._delta(event.index, event.delta))
        return self._second.join(self._other(event))

    @property
    def _word(self) -> str | None:
        return word_of((self._ending or {}).get("stop_reason"))

    def _other(self, event: StreamEvent) -> list[Event]:
        if event.error is not None or event.type == "error":
            self._over = True
            return [Failed(fault_in_answer(event.error))]
        match event.type:
            case "message_start":
                message = event.message or AnswerWire()
                self._report(message.usage, is_opening=True)
                return self._start(message)
            case "content_block_start":
                return self._start(AnswerWire()) + self._block_started(
                    event.index, event.content_block
                )
            case "content_block_stop":
                return self._block_stopped(event.index)
            case "message_delta":
                return self._message_delta(event)
            case "message_stop":
                return self._finish()
            case _:
                return []  # pings, and events of a kind we do not know

    def _start(self, message: AnswerWire) -> list[Event]:
        if self._started:
            return []
        self._started = True
        return [Started(upstream_id=message.id, upstream_model=message.model)]

    def _message_delta(self, event: StreamEvent) -> list[Event]:
        self._report(event.usage)
        delta = event.delta or Delta()
        ending = self._ending or {}
        for name, value in (
            ("stop_reason", delta.stop_reason),
            ("stop_sequence", delta.stop_sequence),
            ("matched_stop", delta.matched_stop),
            ("stop_details", delta.stop_details),
            ("container", delta.container),
            ("context_management", event.context_management),
        ):
            is_said = value is not None and (name != "stop_reason" or word_of(value) is not None)
            ending[name] = value if is_said else ending.get(name)
        self._ending = ending
        return self._start(AnswerWire())

    def _report(self, usage: object, *, is_opening: bool = False) -> None:
        self._reports.add(usage, is_opening=is_opening)
        tools = usage.get("server_tool_use") if isinstance(usage, dict) else None
        if isinstance(tools, dict) and not is_opening:
            number = count_of(tools.get("web_search_requests"))
            self._searches_reported = self._searches_reported if number is None else number

    # Blocks.

    def _block_started(self, index: int, raw: msgspec.Raw) -> list[Event]:
        try:
            block = self._second.first(_block, bytes(raw)) if raw else _EMPTY_BLOCK
        except UNREADABLE as error:
            raise UndecodableError(f"not a content block: {error}") from None
        # The same index once more means another block: the earlier one has ended without saying so.
        events = self._block_stopped(index) if index in self._by_index else []
        self._skipped.discard(index)
        if block.type == "server_tool_use" and block.name == SEARCH:
            self._searches += 1
        if block.type not in READ_BLOCKS and not self._own:
            self._skipped.add(index)
            return events
        self._count.add(is_call=block.type == "tool_use")
        is_answer = block.type == "tool_use" and block.name == self._answer_tool
        opened = OpenBlock(block, raw, is_answer=is_answer and self._answer_tool is not None)
        self._by_index[index] = opened
        if self._current is not None:
            self._waiting.append(opened)
            return events
        return events + self._begin(opened)

    def _begin(self, opened: OpenBlock) -> list[Event]:
        """Open a block: its start, what its start held already, and what has waited."""
        self._current = opened
        block, index = opened.block, self._index
        self._is_text = block.type == "text" and not self._second.has_cuts
        started = PartStarted(index, opened.kind)
        if opened.kind == "reasoning":
            started = PartStarted(
                index,
                opened.kind,
                format=SIGNATURE_FORMAT,
                redacted=(block.data or "") if block.type == "redacted_thinking" else None,
            )
        elif opened.kind == "tool_call":
            self._called = True
            name = self._names.client(block.name or "")
            started = PartStarted(index, opened.kind, call_id=self._call_id(block), name=name)
        elif opened.is_answer:
            self._answered = True
        events: list[Event] = [started]
        if self._own and (own := _call_extras(block)):
            events.append(PartDelta(index, "", own))
        for citation in (block.citations or ()) if self._own else ():
            events.append(PartDelta(index, "", {"citation": citation}))
        if text := (block.text if block.type == "text" else block.thinking):
            events.append(PartDelta(index, text))
        events += (PartDelta(index, text, extras) for text, extras in together(opened.held))
        return events

    def _delta(self, index: int, delta: Delta) -> list[Event]:
        if index in self._skipped:
            return []
        opened = self._by_index.get(index)
        events: list[Event] = []
        if opened is None:
            # A server that leaves out content_block_start: the delta tells what it belongs to.
            kind = _KIND_OF_DELTA.get(delta.type or "", "text")
            events = self._start(AnswerWire()) + self._block_started(index, _raw_block(kind))
            opened = self._by_index[index]
        if opened.foreign is not None:
            opened.foreign.add(delta)
            return events
        if delta.signature:
            opened.signature = delta.signature
        text = delta.text or delta.partial_json or delta.thinking
        extras = {"citation": delta.citation} if self._own and delta.citation is not None else None
        if not text and extras is None:
            return events
        if delta.partial_json and not delta.partial_json.isspace():
            opened.said = True
        if opened is self._current:
            return [*events, PartDelta(self._index, text or "", extras)]
        opened.held.append((text or "", extras))
        return events

    def _block_stopped(self, index: int) -> list[Event]:
        opened = self._by_index.pop(index, None)
        if opened is None:
            return []
        opened.ended = True
        self._called_whole = self._called_whole or opened.kind == "tool_call"
        return self._advance()

    def _advance(self) -> list[Event]:
        """End the open block if it has ended, and go on with those that waited."""
        events: list[Event] = []
        while self._current is not None and self._current.ended:
            events += self._end(self._current)
            self._current = None
            if self._waiting:
                events += self._begin(self._waiting.popleft())
        return events

    def _end(self, opened: OpenBlock) -> list[Event]:
        events: list[Event] = []
        block, index = opened.block, self._index
        extras: dict[str, Any] | None = None
        signature: str | None = None
        if block.type == "tool_use":
            if not opened.said:
                # Nothing was streamed: the input stands in the start, or there is none.
                held = block.input if isinstance(block.input, dict) else {}
                events.append(PartDelta(index, msgspec.json.encode(held).decode()))
        elif block.type == "thinking":
            signature = opened.signature or None
        elif opened.foreign is not None:
            extras = opened.foreign.block()
        self._index += 1
        self._is_text = False
        events.append(PartEnded(index, signature, extras))
        return events

    def _finish(self) -> list[Event]:
        self._over = True
        events: list[Event] = self._start(AnswerWire())
        for opened in self._by_index.values():
            opened.ended = True
        self._by_index.clear()
        events += self._advance()
        ending = self._ending or {}
        word = self._word
        extras = {
            name: value
            for name, value in ending.items()
            if value is not None and name in ("stop_details", "container", "context_management")
        }
        if self._reports.own:
            extras["usage"] = self._reports.own
        details = ending.get("stop_details")
        explanation = details.get("explanation") if isinstance(details, dict) else None
        events.append(
            Finished(
                reason=self._reason(word),
                upstream_reason=word,
                usage=self.usage,
                stop_sequence=self._stop_sequence(),
                explanation=explanation if isinstance(explanation, str) else None,
                extras=(extras or None) if self._own else None,
                given=self.given,
            )
        )
        return events

    def _stop_sequence(self) -> str | None:
        """The vendor's own field, or one of the request's stops where a server of this format puts it."""
        ending = self._ending or {}
        own = ending.get("stop_sequence")
        if isinstance(own, str) and own:
            return own
        return matched_stop(self._stops, ending.get("stop_reason"), ending.get("matched_stop"))

    def _reason(self, word: str | None) -> FinishReason | None:
        """The vendor's word; on tool turns what was sent decides."""
        reason = reason_of(word, called=self._called, called_whole=self._called_whole)
        return "stop" if reason is None and self._answered else reason

    def _call_id(self, block: Block) -> str:
        call_id = block.id
        if not call_id or call_id in self._call_ids:
            call_id = mint("toolu_")
        self._call_ids.add(call_id)
        return call_id


def _call_extras(block: Block) -> dict[str, Any] | None:
    if block.type != "tool_use":
        return None
    own = {"caller": block.caller, "toolset_name": block.toolset_name}
    return {name: value for name, value in own.items() if value is not None} or None


def _raw_block(kind: str) -> msgspec.Raw:
    return msgspec.Raw(b'{"type":"' + kind.encode("ascii") + b'"}')
