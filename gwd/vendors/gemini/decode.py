"""What Gemini answers to events: whole answers, and streams chunk by chunk.

Calls arrive whole, text and thoughts in pieces. A signature ends the part it stands on; one that comes on an empty
text belongs to what was said before it.
"""

from typing import Any, Final

import msgspec

from gwd.core import ids
from gwd.core.errors import Fault
from gwd.core.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
    PartDelta,
    PartEnded,
    PartKind,
    PartStarted,
    Started,
)
from gwd.core.extras import Given
from gwd.core.lenient_json import UNREADABLE
from gwd.core.request import Request
from gwd.core.sse import Frame
from gwd.core.usage import Usage
from gwd.vendors import faults
from gwd.vendors.base import PartCount, UndecodableError
from gwd.vendors.finish import GEMINI_WORDS, reason_of, word_of
from gwd.vendors.gemini.faults import error_in, fault_inside
from gwd.vendors.gemini.format import FORMAT, SIGNATURE_FORMAT
from gwd.vendors.gemini.logprobs import logprobs_of
from gwd.vendors.gemini.tools import called_name, tool_names
from gwd.vendors.gemini.wire import (
    AnswerWire,
    CandidateWire,
    FunctionCallWire,
    PartWire,
)
from gwd.vendors.second_reading import SecondReading, lines_of, read_any
from gwd.vendors.streamed import decode_streamed, looks_streamed
from gwd.vendors.usage import Reports
from gwd.vendors.usage_formats import GEMINI

_CHUNK: Final = msgspec.json.Decoder(AnswerWire).decode
_CHUNKS: Final = msgspec.json.Decoder(list[AnswerWire]).decode

_BOM_AND_BLANKS: Final = b"\xef\xbb\xbf \t\r\n"
_FIRST: Final = (None, 0, "", "0")
_BAD_CALL: Final = "MALFORMED_FUNCTION_CALL"
# What only a client of this format is shown of a candidate, by the names in its wire and in ours.
_OWN: Final = (
    ("groundingMetadata", "grounding_metadata"),
    ("citationMetadata", "citation_metadata"),
    ("urlContextMetadata", "url_context_metadata"),
    ("safetyRatings", "safety_ratings"),
)


def decode(body: bytes, request: Request) -> list[Event]:
    """A whole answer of status 200; a stream all the same is put together. Raises UndecodableError."""
    decoder = GeminiDecoder(request)
    return decode_streamed(body, decoder) if looks_streamed(body) else decoder.whole(body)


class GeminiDecoder:
    """Decodes one answer. It ends with the connection, since the vendor marks no end and repeats its finish reason."""

    def __init__(self, request: Request) -> None:
        self._names = tool_names(request)
        self._is_own = request.family == FORMAT.family
        self._feedback: dict[str, Any] | None = None
        self._candidate_fields: dict[str, Any] = {}
        self._second = SecondReading()
        self._reports = Reports(GEMINI)
        self.given: Given | None = None
        self._started = False
        self._over = False
        self._index = 0
        self._open: PartKind | None = None
        self._signature: str | None = None
        self._said = False
        self._called = False
        self._call_ids: set[str] = set()
        self._count = PartCount()
        self._word: str | None = None
        self._blocked: str | None = None
        self._explanation: str | None = None

    @property
    def usage(self) -> Usage | None:
        return self._reports.usage

    def feed(self, frame: Frame) -> list[Event]:
        if self._over:
            return []
        try:
            chunk = _CHUNK(frame.data)
        except UNREADABLE:
            return self._unusual(frame)
        # The hot path: one more piece of plain text.
        if (
            self._open == "text"
            and self._signature is None
            and chunk.candidates
            and not self._second.has_cuts
        ):
            candidate = chunk.candidates[0]
            parts = candidate.content.parts if candidate.content is not None else None
            if (
                parts is not None
                and len(parts) == 1
                and (text := parts[0].text)
                and not parts[0].thought
                and parts[0].thought_signature is None
                and parts[0].function_call is None
                and candidate.finish_reason is None
                and candidate.logprobs_result is None
                and candidate.grounding_metadata is None
                and not candidate.index
                and chunk.error is None
            ):
                self._report(chunk)
                return [PartDelta(self._index, text)]
        return self._second.join(self._chunk(chunk))

    def close(self) -> list[Event]:
        """Without any finish reason the answer broke off, however much of it there is."""
        return self._second.join(self._closed())

    def whole(self, body: bytes) -> list[Event]:
        """A whole answer, or the list of chunks that a stream without `alt=sse` is. Raises UndecodableError."""
        return self._second.join(self._whole(body))

    def _closed(self) -> list[Event]:
        if self._over:
            return []
        if self._word is None and self._blocked is None:
            return self._failed(
                Fault(
                    reason="upstream_error",
                    message="the vendor's stream ended before its answer was complete",
                )
            )
        return self._finished(nothing_went_out=self._index == 0 and self._open is None)

    def _whole(self, body: bytes) -> list[Event]:
        if body.lstrip(_BOM_AND_BLANKS)[:1] == b"[":
            return self._list(body)
        try:
            answer = self._second.first(_CHUNK, body)
        except UNREADABLE:
            return self._error(body)
        events = self._chunk(answer)
        if self._over:
            return events
        if not answer.candidates and self._blocked is None and answer.usage_metadata is None:
            raise UndecodableError("the answer holds no candidates")
        ended = self._finished(nothing_went_out=not self._said)
        # A call that cannot be read fails the attempt: nothing of a whole answer has gone out yet.
        return ended if isinstance(ended[-1], Failed) else events + ended

    def _list(self, body: bytes) -> list[Event]:
        try:
            chunks = self._second.first(_CHUNKS, body)
        except UNREADABLE:
            return self._error(body)
        events: list[Event] = []
        for chunk in chunks:
            if not self._over:
                events += self._chunk(chunk)
        return events + self._closed()

    def _chunk(self, chunk: AnswerWire) -> list[Event]:
        if chunk.error:
            return self._failed(fault_inside(chunk.error))
        self._report(chunk)
        events: list[Event] = []
        if not self._started:
            self._started = True
            events.append(
                Started(
                    upstream_id=_str(chunk.response_id), upstream_model=_str(chunk.model_version)
                )
            )
        if isinstance(chunk.prompt_feedback, dict):
            self._blocked = _str(chunk.prompt_feedback.get("blockReason")) or self._blocked
            self._feedback = chunk.prompt_feedback if self._blocked else None
            self._explain(chunk.prompt_feedback.get("blockReasonMessage"))
        candidate = next((c for c in chunk.candidates or () if c.index in _FIRST), None)
        if candidate is not None:
            self._candidate(candidate, events)
        return events

    def _candidate(self, candidate: CandidateWire, events: list[Event]) -> None:
        logprobs = logprobs_of(candidate.logprobs_result)
        for part in (candidate.content.parts if candidate.content is not None else None) or ():
            self._part(part, events)
        if logprobs is not None and self._open == "text":
            events.append(PartDelta(self._index, "", {"logprobs": logprobs}))
        if candidate.finish_reason is not None:
            self._word = word_of(candidate.finish_reason) or self._word
        if self._is_own:
            found = {name: getattr(candidate, field) for name, field in _OWN}
            self._candidate_fields |= {name: value for name, value in found.items() if value}
        self.given = _searched(candidate.grounding_metadata) or self.given
        self._explain(candidate.finish_message)

    def _part(self, part: PartWire, events: list[Event]) -> None:
        signature = _str(part.thought_signature)
        if part.function_call is not None:
            self._call(part.function_call, signature, events)
        elif part.text:
            self._text("reasoning" if part.thought else "text", part.text, events)
            self._signature = signature
        elif signature is not None:
            self._bare_signature(signature, events)

    def _text(self, kind: PartKind, text: str, events: list[Event]) -> None:
        """Text continues the open part of its kind, unless a signature has sealed that."""
        if self._open != kind or self._signature is not None:
            self._end(events)
            self._begin(kind, events)
        self._said = self._said or kind == "text"
        events.append(PartDelta(self._index, text))

    def _bare_signature(self, signature: str, events: list[Event]) -> None:
        """A signature without content: of the open part, or of a thought that was not shown."""
        if self._open is None or self._signature is not None:
            self._end(events)
            self._begin("reasoning", events)
        self._signature = signature

    def _call(self, call: FunctionCallWire, signature: str | None, events: list[Event]) -> None:
        self._end(events)
        self._count.add(is_call=True)
        self._said = self._called = True
        call_id = _str(call.id)
        if call_id is None or call_id in self._call_ids:
            call_id = ids.mint("call_")
        self._call_ids.add(call_id)
        name = called_name(call.name or "", self._names)
        events.append(
            PartStarted(
                self._index, "tool_call", call_id=call_id, name=name, format=SIGNATURE_FORMAT
            )
        )
        events.append(PartDelta(self._index, _arguments(call.args)))
        events.append(PartEnded(self._index, signature))
        self._index += 1

    def _begin(self, kind: PartKind, events: list[Event]) -> None:
        self._open = kind
        self._count.add(is_call=False)
        # The vendor shows summaries of its thoughts, never the thoughts themselves.
        events.append(
            PartStarted(self._index, kind, format=SIGNATURE_FORMAT, summary=kind == "reasoning")
        )

    def _end(self, events: list[Event]) -> None:
        if self._open is None:
            return
        events.append(PartEnded(self._index, self._signature))
        self._index += 1
        self._open = self._signature = None

    def _finished(self, *, nothing_went_out: bool) -> list[Event]:
        if self._word == _BAD_CALL and nothing_went_out:
            text = self._explanation or "the model made a call that cannot be read"
            return self._failed(
                Fault(reason="upstream_error", code=_BAD_CALL, message=faults.scrub(text))
            )
        self._over = True
        events: list[Event] = []
        self._end(events)
        reason = self._reason()
        events.append(
            Finished(
                reason,
                upstream_reason=self._word or self._blocked,
                usage=self.usage,
                explanation=self._explanation if reason == "content_filter" else None,
                extras=self._own_extras(),
                given=self.given,
            )
        )
        return events

    def _own_extras(self) -> dict[str, Any] | None:
        """What a client of this format is shown as the vendor said it."""
        if not self._is_own:
            return None
        extras: dict[str, Any] = {}
        if self._feedback is not None and self._word is None:
            extras["promptFeedback"] = self._feedback
        if self._candidate_fields:
            extras["candidate"] = self._candidate_fields
        return extras or None

    def _reason(self) -> FinishReason | None:
        """A tool turn ends with STOP like any other: its calls tell it."""
        if self._word is None:
            if self._blocked is not None:
                return "content_filter"
            return "tool_calls" if self._called else "stop" if self._said else None
        return reason_of(
            self._word, called=self._called, called_whole=self._called, words=GEMINI_WORDS
        )

    def _report(self, chunk: AnswerWire) -> None:
        if chunk.usage_metadata is not None:
            self._reports.add(chunk.usage_metadata)

    def _explain(self, text: object) -> None:
        self._explanation = _str(text) or self._explanation

    def _unusual(self, frame: Frame) -> list[Event]:
        """Data that is not a chunk at first sight: the end mark of another format, which servers that imitate this
        one send, a chunk that is no strict JSON, several in one, or an error."""
        if frame.data.strip() in (b"", b"[DONE]"):
            return []
        try:
            chunk = self._second.read(frame.data, _CHUNK)
        except UNREADABLE:
            if lines := lines_of(frame):
                return [event for line in lines for event in self.feed(line)]
            if self._word is not None and _error_of(frame.data) is None:
                return []  # whatever a server puts behind the end of its answer
            return self._second.join(self._error(frame.data))
        return self._second.join(self._chunk(chunk))

    def _error(self, data: bytes) -> list[Event]:
        """Data that is not a chunk: an error in another shape, or nonsense."""
        error = _error_of(data)
        if error is None:
            raise UndecodableError("the answer holds data that is not of Gemini's format")
        return self._failed(fault_inside(error))

    def _failed(self, fault: Fault) -> list[Event]:
        self._over = True
        return [Failed(fault)]


def _error_of(data: bytes) -> object | None:
    try:
        return error_in(read_any(data))
    except UNREADABLE:
        return None


def _arguments(args: msgspec.Raw) -> str:
    """The arguments as the vendor wrote them, without its line breaks; some servers send the text of the object."""
    raw = bytes(args)
    if raw[:1] == b"{":
        return msgspec.json.format(raw, indent=-1).decode("utf-8", "replace")
    text = read_any(raw) if raw[:1] == b'"' else None
    return text if isinstance(text, str) and text.strip() else "{}"


def _searched(grounding: object) -> Given | None:
    """The searches an answer rests on: the vendor bills different ones, and no empty ones."""
    queries = grounding.get("webSearchQueries") if isinstance(grounding, dict) else None
    if not isinstance(queries, list):
        return None
    return Given(searches=len({query for query in queries if isinstance(query, str) and query}))


def _str(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
