"""OpenAI-format answers, whole and streamed, to events."""

from typing import Any, Final

import msgspec

from gwd.core.errors import Fault
from gwd.core.events import Event, Failed, Finished, FinishReason, PartDelta, Started
from gwd.core.extras import Given
from gwd.core.lenient_json import UNREADABLE
from gwd.core.request import Generate, Request
from gwd.core.sse import Frame
from gwd.core.target import Target
from gwd.core.usage import Usage
from gwd.vendors.base import UndecodableError
from gwd.vendors.finish import matched_stop, meaning_of, reason_of, word_of
from gwd.vendors.openai_chat.assembly import Assembly
from gwd.vendors.openai_chat.faults import error_in, fault_inside
from gwd.vendors.openai_chat.given import given_of
from gwd.vendors.openai_chat.wire import (
    AnswerWire,
    ChoiceWire,
    ChunkWire,
    DeltaWire,
    ToolCallWire,
)
from gwd.vendors.second_reading import SecondReading, lines_of, read_any
from gwd.vendors.streamed import decode_streamed, looks_streamed
from gwd.vendors.tool_names import ToolNames
from gwd.vendors.usage import Reports
from gwd.vendors.usage_formats import OPENAI

_ANSWER: Final = msgspec.json.Decoder(AnswerWire).decode
_CHUNK: Final = msgspec.json.Decoder(ChunkWire).decode
_ENVELOPE: Final = ("system_fingerprint", "service_tier")
_FIRST: Final = (None, 0, "", "0")
# What servers that search put beside their answer, on every chunk or on the last ones: the last word counts.
_FOUND: Final = ("citations", "search_results", "related_questions", "images", "videos")


def decode(body: bytes, request: Request, target: Target) -> list[Event]:
    """A whole answer of status 200. A server that streams although it was not asked to is understood too."""
    decoder = ChatStreamDecoder(request, target)
    return decode_streamed(body, decoder) if looks_streamed(body) else decoder.whole(body)


def client_names(request: Request) -> ToolNames:
    """The bijection that build used for this request's tools."""
    body = request.body
    tools = body.tools if isinstance(body, Generate) else ()
    return ToolNames(tool.name for tool in tools)


class ChatStreamDecoder:
    """Decodes one answer, frame by frame."""

    def __init__(self, request: Request, target: Target) -> None:
        self._reports = Reports(OPENAI, reasoning_excluded=target.flags.reasoning_excluded)
        self.given: Given | None = None
        body = request.body
        self._stops = body.sampling.stop if isinstance(body, Generate) else ()
        self._assembly = Assembly(client_names(request), origin=target.provider)
        self._started = False
        self._ended = False
        self._second = SecondReading()
        self._word: str | None = None
        self._tier: object = None
        self._stop: str | None = None
        self._usage_closed_it = False
        self._keeps_found = request.family == "openai_chat"
        self._found: dict[str, Any] = {}

    @property
    def usage(self) -> Usage | None:
        return self._reports.usage

    def feed(self, frame: Frame) -> list[Event]:
        """Events that this frame completes."""
        if self._ended:
            return []
        data = frame.data
        if self._started:
            try:
                chunk: AnswerWire | ChunkWire = _CHUNK(data)
            except UNREADABLE:
                return self._unusual(frame)
            # The hot path: one more piece of plain text.
            if (
                chunk.usage is None
                and chunk.error is None
                and chunk.citations is None
                and chunk.search_results is None
                and chunk.choices
            ):
                choice = chunk.choices[0]
                delta, index = choice.delta, self._assembly.open_text
                if delta is not None and index is not None:
                    content = delta.content
                    if (
                        content
                        and type(content) is str
                        and choice.finish_reason is None
                        and choice.logprobs is None
                        and delta.tool_calls is None
                        and delta.reasoning_content is None
                        and delta.reasoning is None
                        and not delta.refusal
                        and not delta.annotations
                        and not choice.index
                    ):
                        return [PartDelta(index, content)]
        else:
            try:
                chunk = _ANSWER(data)
            except UNREADABLE:
                return self._unusual(frame)
        return self._readable(chunk, frame)

    def close(self) -> list[Event]:
        """The upstream ended: well if it named a reason, or reported usage behind its text; else it broke off."""
        if self._ended:
            return []
        if self._word is not None or (self._assembly.has_output and self._usage_closed_it):
            return self._finished()
        return self._failed(
            Fault(reason="upstream_error", message="the stream ended before the answer did")
        )

    def whole(self, body: bytes) -> list[Event]:
        """A whole answer, through the same assembly. Raises UndecodableError."""
        try:
            answer = self._second.first(_ANSWER, body)
        except UNREADABLE:
            error = _error_of(body)
            if error is None:
                raise UndecodableError("the answer is not a chat completion") from None
            return self._failed(fault_inside(error))
        if not answer.choices:
            error = answer.error or _error_of(body)
            if not error:
                raise UndecodableError("the answer holds no choices")
            return self._failed(fault_inside(error))
        if answer.error:
            return self._failed(fault_inside(answer.error))
        choice = answer.choices[0]
        message = choice.message or choice.delta or DeltaWire()
        self._take_usage(answer.usage or choice.usage)
        self._take_given(answer)
        if choice.error and not (message.content or message.tool_calls):
            return self._failed(fault_inside(choice.error))
        events = self._open(answer)
        self._take_found(answer)
        self._delta(message, choice.logprobs, whole=True)
        self._take_end(choice)
        return events + self._finished()

    def _readable(self, chunk: AnswerWire | ChunkWire, frame: Frame) -> list[Event]:
        if chunk.error or chunk.choices is None or frame.event == b"error":
            return self._odd_chunk(chunk, frame.data)
        return self._chunk(chunk)

    def _chunk(self, chunk: AnswerWire | ChunkWire) -> list[Event]:
        events = self._open(chunk)
        choice = next((c for c in chunk.choices or () if c.index in _FIRST), None)
        self._take_usage(chunk.usage)
        self._take_given(chunk)
        self._take_found(chunk)
        self._usage_closed_it = chunk.usage is not None and not chunk.choices
        if choice is None:
            return events
        if choice.usage is not None:
            self._take_usage(choice.usage)
        delta = choice.delta or choice.message
        if delta is not None:
            self._delta(delta, choice.logprobs, whole=False)
        if choice.error:
            return events + self._drain() + self._failed(fault_inside(choice.error))
        self._take_end(choice)
        return events + self._drain()

    def _open(self, chunk: AnswerWire | ChunkWire) -> list[Event]:
        if self._started:
            return []
        self._started = True
        assert isinstance(chunk, AnswerWire)
        extras = {name: value for name in _ENVELOPE if (value := getattr(chunk, name)) is not None}
        return [
            Started(
                upstream_id=chunk.id if isinstance(chunk.id, str) else None,
                upstream_model=chunk.model if isinstance(chunk.model, str) else None,
                extras=extras or None,
            )
        ]

    def _delta(self, delta: DeltaWire, logprobs: object, *, whole: bool) -> None:
        assembly = self._assembly
        if not self._reasoning_details(delta.reasoning_details):
            thought = delta.reasoning_content or delta.reasoning
            if isinstance(thought, str):
                assembly.text("reasoning", thought)
        content = delta.content
        extras: dict[str, Any] = {}
        if logprobs is not None:
            extras["logprobs"] = logprobs
        if isinstance(delta.annotations, list) and delta.annotations:
            extras["annotations"] = delta.annotations
        if isinstance(content, list):
            self._content_parts(content)
            content = ""
        if content or extras:
            assembly.text("text", content or "", extras or None)
        if isinstance(delta.refusal, str):
            assembly.text("refusal", delta.refusal)
        for call in delta.tool_calls or ():
            assembly.tool_call(call, whole=whole)
        if delta.function_call is not None:
            assembly.tool_call(ToolCallWire(function=delta.function_call), whole=whole)

    def _content_parts(self, parts: list[Any]) -> None:
        """Some servers send a list of parts, with their thoughts among them."""
        for part in parts:
            if not isinstance(part, dict):
                continue
            thought = part.get("thinking")
            if isinstance(thought, list):
                for inner in thought:
                    if isinstance(inner, dict) and isinstance(inner.get("text"), str):
                        self._assembly.text("reasoning", inner["text"])
            elif isinstance(thought, str):
                self._assembly.text("reasoning", thought)
            elif isinstance(part.get("text"), str):
                self._assembly.text("text", part["text"])

    def _reasoning_details(self, details: object) -> bool:
        """Reasoning in details, which name its origin and carry its signature. False if they hold nothing to show."""
        taken = False
        for detail in details if isinstance(details, list) else ():
            if not isinstance(detail, dict):
                continue
            summary = detail.get("type") == "reasoning.summary"
            text = detail.get("summary") if summary else detail.get("text")
            data, signature = detail.get("data"), detail.get("signature")
            if not any(isinstance(value, str) and value for value in (text, data, signature)):
                continue
            taken = True
            origin, item_id = detail.get("format"), detail.get("id")
            redacted = origin == "anthropic-claude-v1" and isinstance(data, str)
            self._assembly.reasoning(
                text if isinstance(text, str) else "",
                format_=origin if isinstance(origin, str) and origin != "unknown" else None,
                summary=summary,
                item_id=item_id if isinstance(item_id, str) else None,
                signature=_str(signature) or (None if redacted else _str(data)),
                redacted=_str(data) if redacted else None,
            )
        return taken

    def _take_end(self, choice: ChoiceWire) -> None:
        if choice.finish_reason is not None:
            self._word = word_of(choice.finish_reason) or self._word
        if choice.stop_reason is not None or choice.matched_stop is not None:
            stop = matched_stop(self._stops, choice.stop_reason, choice.matched_stop)
            self._stop = stop or self._stop

    def _take_usage(self, reported: object) -> None:
        if reported is not None:
            self._reports.add(reported)

    def _take_given(self, chunk: AnswerWire | ChunkWire) -> None:
        if chunk.usage is None and chunk.service_tier == self._tier:
            return  # many say the tier with every chunk
        self._tier = chunk.service_tier
        self.given = given_of(self.given, chunk.service_tier, chunk.usage)

    def _take_found(self, chunk: AnswerWire | ChunkWire) -> None:
        if self._keeps_found:
            for name in _FOUND:
                value = getattr(chunk, name)
                if value:
                    self._found[name] = value

    def _odd_chunk(self, chunk: AnswerWire | ChunkWire, data: bytes) -> list[Event]:
        """A chunk with an error, or without choices."""
        self._take_usage(chunk.usage)
        self._take_given(chunk)
        self._take_found(chunk)
        error = chunk.error or _error_of(data)
        if error:
            return self._failed(fault_inside(error))
        self._usage_closed_it = chunk.usage is not None
        return []

    def _unusual(self, frame: Frame) -> list[Event]:
        """Data that is not a chunk at first sight: the end mark, nothing at all, a chunk that is no strict JSON,
        several in one, an error of another shape, or nonsense."""
        text = frame.data.strip()
        if text == b"[DONE]":
            return self._done()
        if not text:
            return []
        try:
            chunk: AnswerWire | ChunkWire = (
                self._second.read(text, _CHUNK)
                if self._started
                else self._second.read(text, _ANSWER)
            )
        except UNREADABLE:
            pass
        else:
            if self._second.has_cuts:
                self._assembly.expect_cuts()
            return self._readable(chunk, frame)
        if lines := lines_of(frame):
            return [event for line in lines for event in self.feed(line)]
        error = _error_of(text)
        if error is None:
            if self._word is not None:
                return []  # whatever a server puts behind the end of its answer
            raise UndecodableError("the stream holds data that is not a chunk")
        return self._failed(fault_inside(error))

    def _done(self) -> list[Event]:
        if not self._started:
            return self._failed(
                Fault(reason="upstream_error", message="the stream ended without an answer")
            )
        return self._finished()

    def _finished(self) -> list[Event]:
        self._ended = True
        self._assembly.finish()
        finished = Finished(
            self._reason(),
            upstream_reason=self._word,
            usage=self.usage,
            stop_sequence=self._stop,
            extras={"envelope": self._found} if self._found else None,
            given=self.given,
        )
        return [*self._drain(), finished]

    def _reason(self) -> FinishReason | None:
        assembly = self._assembly
        decides = self._word is not None and meaning_of(self._word) is None
        reason = reason_of(
            self._word,
            called=assembly.calls > 0,
            called_whole=decides and assembly.has_whole_call,
        )
        if reason in (None, "stop") and not assembly.has_output:
            return "error" if assembly.has_lost_call else reason
        return reason or "stop"

    def _failed(self, fault: Fault) -> list[Event]:
        self._ended = True
        return [*self._drain(), *self._second.join([Failed(fault)])]

    def _drain(self) -> list[Event]:
        events, self._assembly.events = self._assembly.events, []
        return self._second.join(events)


def _error_of(data: bytes) -> object | None:
    try:
        return error_in(read_any(data))
    except UNREADABLE:
        return None


def _str(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
