"""Events to what a messages client reads: named SSE events in strict order, or one message object.

Every event has an `event:` line: SDKs drop events without one. A block is opened by its first delta or its end, not by
`PartStarted`, because only then is known whether it is a block of the vendor's own kind (`extras` with a `type`) that
has to go out as it came, or an empty one that is left out.
"""

from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec

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
from gwd.core.money import usd_json
from gwd.core.request import ReasoningPart, RefusalPart, Request, TextPart, ToolCallPart
from gwd.core.sse import COMMENT, named_frame
from gwd.core.usage import Usage
from gwd.dialects.arguments import arguments_object
from gwd.dialects.base import Reply
from gwd.dialects.envelope import ended_in_error
from gwd.dialects.messages.envelope import envelope
from gwd.dialects.messages.provenance import signature_for

PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'
STOP: Final = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'

_SUFFIX: Final = b"}}\n\n"
_BLANKS: Final = " \t\r\n"
_CALL_FIELDS: Final = ("caller", "toolset_name")
_USAGE_FIELDS: Final = ("server_tool_use", "service_tier", "inference_geo", "speed")

_encode: Final = msgspec.json.Encoder().encode
_DELTA_FIELD: Final = {
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "tool_call": ("input_json_delta", "partial_json"),
}


class MessagesRenderer:
    """One answer; see the module's first lines for when a block is opened."""

    def __init__(self, request: Request, reply: Reply) -> None:
        self._request = request
        self._reply = reply
        self._exclude = _excludes(request)
        self._started = False
        self._over = False
        self._index = 0
        self._part: PartStarted | None = None
        self._opened = False
        self._fast = False
        self._is_object: bool | None = None
        self._held: list[str] = []
        self._prefix = b""
        self._refusal: list[str] = []
        self._called = False
        self._end: Finished | Failed | None = None

    def feed(self, events: Sequence[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is PartDelta:
                if self._fast and event.extras is None:
                    if event.text:
                        out += (self._prefix, _encode(event.text), _SUFFIX)
                elif not self._over:
                    self._delta(event, out)
            elif not self._over:
                self._other(event, out)
        return b"".join(out)

    def idle(self) -> bytes:
        if self._over:
            return b""
        return PING if self._started else COMMENT

    def whole(self, completion: Completion, settled: Settled) -> bytes:
        if completion.finished.reason == "error":
            raise ended_in_error(completion.finished)
        content = []
        for index, part in enumerate(completion.parts):
            block = self._block(part, completion.part_extras.get(index, ()))
            if block is not None:
                content.append(block)
        finished = completion.finished
        body = self._message(content)
        body |= self._ending(finished)
        body["usage"] = self._usage(settled, finished)
        body |= _own_fields(finished)
        if settled.receipt is not None and self._request.include_receipt:
            body["gateway_metadata"] = settled.receipt
        return _encode(body)

    # Streaming.

    def _other(self, event: Event, out: list[bytes]) -> None:
        match event:
            case PartStarted():
                self._start(out)
                self._part = event
                self._opened = self._fast = False
                self._is_object, self._held = None, []
            case PartEnded():
                self._end_part(event, out)
            case Finished():
                self._start(out)
                self._end = event
            case Failed():
                self._end, self._fast = event, False
            case Settled():
                self._close(event, out)
            case Started() | Embedded() | PartDelta():
                pass
            case _:
                assert_never(event)

    def _start(self, out: list[bytes]) -> None:
        """message_start waits for the first output: until then another vendor may still take over."""
        if self._started:
            return
        self._started = True
        message = self._message([])
        message |= {"stop_reason": None, "stop_sequence": None}
        prompt = self._reply.prompt
        split = _cache_creation(prompt) if prompt.cache_write else {}
        message["usage"] = {**_input_counts(prompt), **split, "output_tokens": 0}
        out.append(named_frame("message_start", {"type": "message_start", "message": message}))
        out.append(PING)

    def _delta(self, event: PartDelta, out: list[bytes]) -> None:
        part = self._part
        assert part is not None
        if part.kind == "refusal":
            self._refusal.append(event.text)
        if part.kind == "reasoning" and (self._exclude or part.redacted is not None):
            return
        if not self._opened and (event.text or event.extras):
            self._open(part, event.extras, out)
        if event.extras and (citation := event.extras.get("citation")) is not None:
            out.append(self._frame_delta({"type": "citations_delta", "citation": citation}))
        if event.text and (part.kind != "tool_call" or self._opens_object(event.text)):
            self._fast = part.kind != "refusal"
            out += (self._prefix, _encode(event.text), _SUFFIX)

    def _opens_object(self, text: str) -> bool:
        """Whether a call's arguments may go out as they come: `input` is an object, so what does not begin as one
        is held until its end."""
        if self._is_object is None and (begun := text.lstrip(_BLANKS)):
            self._is_object = begun[0] == "{"
        if not self._is_object:
            self._held.append(text)
        return self._is_object is True

    def _open(self, part: PartStarted, extras: dict[str, Any] | None, out: list[bytes]) -> None:
        self._opened = True
        block: dict[str, Any]
        match part.kind:
            case "text" | "refusal":
                block = {"type": "text", "text": ""}
            case "reasoning" if part.redacted is not None:
                block = {"type": "redacted_thinking", "data": part.redacted}
            case "reasoning":
                block = {"type": "thinking", "thinking": "", "signature": ""}
            case "tool_call":
                self._called = True
                block = {"type": "tool_use", "id": part.call_id, "name": part.name, "input": {}}
                block |= _pick(extras, _CALL_FIELDS)
        out.append(self._frame_start(block))
        kind, field = _DELTA_FIELD[part.kind]
        head = f'{{"type":"content_block_delta","index":{self._index},"delta":{{"type":"{kind}","{field}":'
        self._prefix = b"event: content_block_delta\ndata: " + head.encode()

    def _end_part(self, event: PartEnded, out: list[bytes]) -> None:
        part, self._part = self._part, None
        assert part is not None
        self._fast = False
        extras = event.extras
        if extras and "type" in extras:
            out.append(self._frame_start(extras))
            self._opened = True
        elif part.kind == "reasoning":
            self._end_reasoning(part, event.signature, out)
        elif part.kind == "tool_call":
            if not self._opened:
                self._open(part, extras, out)
            if not self._is_object:
                whole = _encode(arguments_object("".join(self._held))).decode()
                out.append(self._frame_delta({"type": "input_json_delta", "partial_json": whole}))
        if self._opened:
            stop = {"type": "content_block_stop", "index": self._index}
            out.append(named_frame("content_block_stop", stop))
            self._index += 1
        self._opened = False

    def _end_reasoning(self, part: PartStarted, signature: str | None, out: list[bytes]) -> None:
        shown = signature_for(
            signature,
            format_=part.format or "unknown",
            summary=part.summary,
            item_id=part.item_id,
        )
        if not self._opened and (shown or part.redacted is not None):
            self._open(part, None, out)
        if shown and part.redacted is None:
            out.append(self._frame_delta({"type": "signature_delta", "signature": shown}))

    def _close(self, settled: Settled, out: list[bytes]) -> None:
        finished = self._end
        assert finished is not None, "settled before the end"
        self._over = True
        if isinstance(finished, Failed):
            self._fail(finished.error, settled, out)
            return
        if finished.reason == "error":
            self._fail(ended_in_error(finished), settled, out)
            return
        delta = self._ending(finished)
        own = _own_fields(finished)
        if "container" in own:
            delta["container"] = own.pop("container")
        event: dict[str, Any] = {
            "type": "message_delta",
            "delta": delta,
            "usage": self._usage(settled, finished),
            **own,
        }
        if settled.receipt is not None and self._request.include_receipt:
            event["gateway_metadata"] = settled.receipt
        out.append(named_frame("message_delta", event))
        out.append(STOP)

    def _fail(self, error: GatewayError | None, settled: Settled, out: list[bytes]) -> None:
        """The error event ends the stream; the receipt, where one was asked for, is in its metadata."""
        reported = error or UpstreamFailed("the vendor's answer broke off; please try again")
        request_id = self._reply.request_id or self._reply.generation_id
        event = envelope(reported, request_id)
        if settled.receipt is not None and self._request.include_receipt:
            metadata = event["error"].get("metadata", {})
            event["error"]["metadata"] = {**metadata, "gateway_metadata": settled.receipt}
        out.append(named_frame("error", event))

    def _frame_start(self, block: dict[str, Any]) -> bytes:
        event = {"type": "content_block_start", "index": self._index, "content_block": block}
        return named_frame("content_block_start", event)

    def _frame_delta(self, delta: dict[str, Any]) -> bytes:
        event = {"type": "content_block_delta", "index": self._index, "delta": delta}
        return named_frame("content_block_delta", event)

    # Pieces of both forms.

    def _message(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"msg_{self._reply.id_suffix}",
            "type": "message",
            "role": "assistant",
            "model": self._reply.model,
            "provider": self._reply.vendor,
            "content": content,
        }

    def _block(self, part: AnswerPart, extras: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """The block of a whole part; None where a stream would have left it out."""
        own: dict[str, Any] = {}
        citations = []
        for extra in extras:
            if "type" in extra:
                return extra
            if extra.get("citation") is not None:
                citations.append(extra["citation"])
            own |= _pick(extra, _CALL_FIELDS)
        match part:
            case TextPart():
                if not part.text and not citations:
                    return None
                block: dict[str, Any] = {"type": "text", "text": part.text}
                return {**block, "citations": citations} if citations else block
            case RefusalPart():
                self._refusal.append(part.text)
                return {"type": "text", "text": part.text} if part.text else None
            case ToolCallPart():
                self._called = True
                return {
                    "type": "tool_use",
                    "id": part.call_id,
                    "name": part.name,
                    "input": arguments_object(part.arguments),
                    **own,
                }
            case ReasoningPart():
                return self._thinking(part)
            case _:
                assert_never(part)

    def _thinking(self, part: ReasoningPart) -> dict[str, Any] | None:
        if part.redacted is not None:
            return {"type": "redacted_thinking", "data": part.redacted}
        signature = signature_for(
            part.signature, format_=part.format, summary=part.summary, item_id=part.item_id
        )
        text = "" if self._exclude else part.text
        if not text and not signature:
            return None
        return {"type": "thinking", "thinking": text, "signature": signature}

    def _ending(self, finished: Finished) -> dict[str, Any]:
        """stop_reason, stop_sequence and, on a refusal, stop_details."""
        reason = _stop_reason(finished, called=self._called, refused=bool(self._refusal))
        ending: dict[str, Any] = {"stop_reason": reason, "stop_sequence": finished.stop_sequence}
        if reason == "refusal":
            details = (finished.extras or {}).get("stop_details")
            ending["stop_details"] = details or {
                "type": "refusal",
                "category": None,
                "explanation": finished.explanation or "".join(self._refusal) or None,
            }
        return ending

    def _usage(self, settled: Settled, finished: Finished) -> dict[str, Any]:
        used, cost = settled.usage, settled.cost
        usage: dict[str, Any] = {
            **_input_counts(used),
            **_cache_creation(used),
            "output_tokens": used.output_total,
            "output_tokens_details": {"thinking_tokens": used.reasoning},
        }
        usage |= _pick((finished.extras or {}).get("usage"), _USAGE_FIELDS)
        if self._request.include_cost:
            prompt = cost.prompt_nano + cost.cache_read_nano + cost.cache_write_nano
            completion = cost.completion_nano + cost.reasoning_nano
            usage["cost"] = usd_json(cost.total_nano)
            usage["cost_details"] = {
                "upstream_inference_cost": usd_json(cost.list_price_nano) if cost.byok else None,
                "upstream_inference_prompt_cost": usd_json(prompt),
                "upstream_inference_completions_cost": usd_json(completion),
            }
            usage["is_byok"] = cost.byok
        return usage


def _input_counts(used: Usage) -> dict[str, Any]:
    return {
        "input_tokens": used.input,
        "cache_creation_input_tokens": used.cache_write,
        "cache_read_input_tokens": used.cache_read,
    }


def _cache_creation(used: Usage) -> dict[str, Any]:
    short, long = used.cache_write_5m, used.cache_write_1h
    return {
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long}
    }


def _excludes(request: Request) -> bool:
    reasoning = getattr(request.body, "reasoning", None)
    return reasoning is not None and reasoning.exclude


def _stop_reason(finished: Finished, *, called: bool, refused: bool) -> str:
    """A turn that holds calls is a tool turn, whatever the vendor said."""
    match finished.reason:
        case "length":
            word = "model_context_window_exceeded"
            return word if finished.upstream_reason == word else "max_tokens"
        case "content_filter":
            return "refusal"
        case "tool_calls":
            return "tool_use"
        case "error":
            raise AssertionError("an error is no stop reason: it is told as one")
        case "stop" | None:
            if called:
                return "tool_use"
            if refused:
                return "refusal"
            if finished.stop_sequence is not None:
                return "stop_sequence"
            return "pause_turn" if finished.upstream_reason == "pause_turn" else "end_turn"
        case _:
            assert_never(finished.reason)


def _own_fields(finished: Finished) -> dict[str, Any]:
    """Fields of the answer's envelope that only this format has."""
    return _pick(finished.extras, ("container", "context_management"))


def _pick(extras: dict[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any]:
    """Of a vendor's extras only what belongs here: another vendor's have other names."""
    return {name: extras[name] for name in names if name in extras} if extras else {}
