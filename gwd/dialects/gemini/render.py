"""Events to what a client of Google's format reads: chunks of its answer, or one whole.

Chunks are events of a stream, or elements of one JSON array where the client did not ask for `alt=sse`. A call goes out
whole at its end; a signature goes on the call, or on an empty text behind what it signs. The last chunk waits for
`Settled`.
"""

from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec

from gwd.core import sse
from gwd.core.errors import GatewayError, UpstreamFailed
from gwd.core.events import (
    AnswerPart,
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
from gwd.dialects.arguments import arguments_object
from gwd.dialects.base import Reply
from gwd.dialects.envelope import ended_in_error
from gwd.dialects.gemini.envelope import envelope
from gwd.dialects.gemini.logprobs import logprobs_result
from gwd.dialects.gemini.provenance import OWN_FORMAT, Signed, shown
from gwd.dialects.gemini.usage import usage_metadata

Json = dict[str, Any]

_ENCODE: Final = msgspec.json.Encoder().encode
_NOTHING: Final[Json] = {"text": ""}
# Reasons for which Google has several words: its own are passed on.
_OWN_WORDS: Final = frozenset(
    (
        *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
        *("IMAGE_SAFETY", "MODEL_ARMOR", "ESCALATION"),
    )
)


class GeminiRenderer:
    """Renders one generation."""

    def __init__(self, request: Request, reply: Reply, *, is_array: bool = False) -> None:
        assert isinstance(request.body, Generate)
        self._request = request
        self._reply = reply
        self._is_array = is_array
        asked = request.body.reasoning
        self._shows_thoughts = asked is not None and not asked.exclude
        self._tail = _ENCODE({"index": 0})[1:-1] + b"}]," + _ENCODE(self._envelope())[1:]
        self._begun = False
        self._part: PartStarted | None = None
        self._arguments: list[str] = []
        self._refused = False
        self._end: Finished | Failed | None = None

    def feed(self, events: Sequence[Event]) -> bytes:
        """Frames for these events, joined."""
        frames: list[bytes] = []
        for event in events:
            match event:
                case PartDelta():
                    frames.append(self._delta(event))
                case PartStarted():
                    self._part, self._arguments = event, []
                    self._refused = self._refused or event.kind == "refusal"
                case PartEnded():
                    frames.append(self._close(event))
                case Finished() | Failed():
                    self._end = event
                case Settled():
                    frames.append(self._settle(event))
                case Started() | Embedded():
                    pass
                case _:
                    assert_never(event)
        return b"".join(frames)

    def idle(self) -> bytes:
        """Blanks may stand anywhere in an array."""
        return b"\n" if self._is_array else sse.COMMENT

    def whole(self, completion: Completion, settled: Settled) -> bytes:
        finished = completion.finished
        if finished.reason == "error":
            raise ended_in_error(finished)
        parts: list[Json] = []
        for part in completion.parts:
            parts += self._whole_part(part)
        refused = any(isinstance(part, RefusalPart) for part in completion.parts)
        body = self._answer(finished, parts, refused=refused, is_empty=not parts)
        extras = [extra for each in completion.part_extras.values() for extra in each]
        logprobs = logprobs_result(extras)
        if logprobs is not None and parts:
            body["candidates"][0]["logprobsResult"] = logprobs
        return _ENCODE(body | self._ending(settled))

    # Streaming.

    def _delta(self, event: PartDelta) -> bytes:
        part = self._part
        assert part is not None
        match part.kind:
            case "text" | "refusal":
                logprobs = logprobs_result([event.extras]) if event.extras else None
                if logprobs is not None:
                    candidate = _candidate([{"text": event.text}])
                    return self._chunk([{**candidate, "logprobsResult": logprobs}])
                return self._piece(b'{"text":' + _ENCODE(event.text)) if event.text else b""
            case "reasoning":
                if not self._shows_thoughts or part.redacted is not None or not event.text:
                    return b""
                return self._piece(b'{"thought":true,"text":' + _ENCODE(event.text))
            case "tool_call":
                self._arguments.append(event.text)
                return b""
        assert_never(part.kind)

    def _piece(self, part: bytes) -> bytes:
        """A chunk of one part, given without its closing brace."""
        head = b'{"candidates":[{"content":{"parts":['
        return self._framed(head + part + b'}],"role":"model"},' + self._tail)

    def _close(self, event: PartEnded) -> bytes:
        part = self._part
        assert part is not None
        self._part = None
        if part.kind == "tool_call":
            call = _call(part.call_id or "", part.name or "", "".join(self._arguments))
            signed = _signed(event.signature, part.format)
            return self._chunk([_candidate([call | signed])])
        if part.kind == "reasoning":
            found = self._reasoning_signature(
                ReasoningPart(
                    signature=event.signature,
                    redacted=part.redacted,
                    format=part.format or "unknown",
                    summary=part.summary,
                    item_id=part.item_id,
                )
            )
        else:
            found = _signed(event.signature, part.format)
        return self._chunk([_candidate([_NOTHING | found])]) if found else b""

    def _settle(self, settled: Settled) -> bytes:
        ended = self._end
        match ended:
            case Failed():
                error = ended.error or UpstreamFailed("the vendor's answer broke off; try again")
                return self._failure(error, settled)
            case Finished(reason="error"):
                return self._failure(ended_in_error(ended), settled)
            case Finished():
                answer = self._answer(ended, [], refused=self._refused, is_empty=not self._begun)
                frame = self._framed(_ENCODE(answer | self._ending(settled)))
                return frame + (b"]" if self._is_array else b"")
            case None:
                raise AssertionError("settled before the end")

    def _failure(self, error: GatewayError, settled: Settled) -> bytes:
        """The error ends the stream; the receipt, where one was asked for, is in its metadata."""
        told = envelope(error, self._reply.request_id or self._reply.generation_id)
        if settled.receipt is not None:
            metadata = told["error"].get("metadata", {})
            told["error"]["metadata"] = {**metadata, "gateway_metadata": settled.receipt}
        return self._framed(_ENCODE(told)) + (b"]" if self._is_array else b"")

    def _chunk(self, candidates: list[Json]) -> bytes:
        return self._framed(_ENCODE({"candidates": candidates, **self._envelope()}))

    def _framed(self, chunk: bytes) -> bytes:
        begun, self._begun = self._begun, True
        if self._is_array:
            return (b",\n" if begun else b"[") + chunk
        return b"data: " + chunk + b"\n\n"

    # Pieces of both forms.

    def _envelope(self) -> Json:
        reply = self._reply
        return {
            "modelVersion": reply.model,
            "responseId": reply.generation_id,
            "provider": reply.vendor,
        }

    def _ending(self, settled: Settled) -> Json:
        include_cost = self._request.include_cost
        ending: Json = {"usageMetadata": usage_metadata(settled, include_cost=include_cost)}
        if settled.receipt is not None:
            ending["gateway_metadata"] = settled.receipt
        return ending

    def _answer(
        self, finished: Finished, parts: list[Json], *, refused: bool, is_empty: bool
    ) -> Json:
        """The answer with its finish. A prompt that was blocked before anything was said has no candidate at all."""
        own = finished.extras or {}
        feedback = own.get("promptFeedback")
        if is_empty and isinstance(feedback, dict):
            return {"promptFeedback": feedback, **self._envelope()}
        candidate = _candidate(parts or [_NOTHING])
        candidate["finishReason"] = _finish_reason(finished, refused=refused)
        if finished.reason == "content_filter" and finished.explanation:
            candidate["finishMessage"] = finished.explanation
        if isinstance(found := own.get("candidate"), dict):
            candidate |= found
        return {"candidates": [candidate], **self._envelope()}

    def _whole_part(self, part: AnswerPart) -> list[Json]:
        extras = part.extras if isinstance(part, TextPart | ToolCallPart) else None
        signed = _signed((extras or {}).get("signature"), (extras or {}).get("format"))
        match part:
            case TextPart():
                return [{"text": part.text} | signed] if part.text or signed else []
            case RefusalPart():
                return [{"text": part.text}] if part.text else []
            case ToolCallPart():
                return [_call(part.call_id, part.name, part.arguments) | signed]
            case ReasoningPart():
                found = self._reasoning_signature(part)
                if self._shows_thoughts and part.text and part.redacted is None:
                    return [{"text": part.text, "thought": True} | found]
                return [_NOTHING | found] if found else []
            case _:
                assert_never(part)

    def _reasoning_signature(self, part: ReasoningPart) -> Json:
        """Google's own stands on an empty text where thoughts are not shown; another vendor's means nothing then."""
        value = part.redacted if part.redacted is not None else part.signature
        if not value or not (self._shows_thoughts or part.format == OWN_FORMAT):
            return {}
        kind = "r" if part.redacted is not None else "s" if part.summary else "t"
        signed = Signed(value=value, format=part.format, kind=kind, item_id=part.item_id)
        mark: Json = {} if part.format == OWN_FORMAT else {"thought": True}
        return {**mark, "thoughtSignature": shown(signed)}


def _candidate(parts: list[Json]) -> Json:
    return {"content": {"parts": parts, "role": "model"}, "index": 0}


def _call(call_id: str, name: str, arguments: str) -> Json:
    args = arguments_object(arguments)
    return {"functionCall": {"id": call_id, "name": name, "args": args}}


def _signed(signature: object, format_: object) -> Json:
    if not isinstance(signature, str) or not signature:
        return {}
    named = format_ if isinstance(format_, str) else "unknown"
    return {"thoughtSignature": shown(Signed(value=signature, format=named))}


def _finish_reason(finished: Finished, *, refused: bool) -> str:
    """A tool turn ends with STOP like any other: its calls tell it."""
    match finished.reason:
        case "length":
            return "MAX_TOKENS"
        case "content_filter":
            word = (finished.upstream_reason or "").upper()
            return word if word in _OWN_WORDS else "SAFETY"
        case "error":
            raise AssertionError("an error is no finish reason: it is told as one")
        case "stop" | "tool_calls":
            return "SAFETY" if refused else "STOP"
        case None:
            return "OTHER"
        case _:
            assert_never(finished.reason)
