"""Events to chat completion chunks, or to one chat completion.

The constant head and tail of a chunk are encoded once per generation; a text delta costs one JSON string and one join.
Everything after the last delta waits for `Settled`.
"""

from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec

from gwd.core import sse
from gwd.core.errors import GatewayError, UpstreamFailed
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
from gwd.core.request import Generate, ReasoningPart, Request
from gwd.dialects.base import Reply
from gwd.dialects.chat_completions import reasoning
from gwd.dialects.chat_completions.usage import usage_object
from gwd.dialects.chat_completions.whole import extra_content, whole_body
from gwd.dialects.envelope import ended_in_error, error_object
from gwd.dialects.free_text import free_text

_ENCODE: Final = msgspec.json.Encoder().encode
_END: Final = b'},"finish_reason":null}]}\n\n'
_CHOICE: Final = b',"choices":[{"index":0,"delta":{'


class ChatRenderer:
    """Renders one generation."""

    def __init__(self, request: Request, reply: Reply) -> None:
        assert isinstance(request.body, Generate)
        self._request = request
        self._reply = reply
        asked = request.body.reasoning
        self._shows_reasoning = not (asked is not None and asked.exclude)
        self._custom_tools = frozenset(tool.name for tool in request.body.tools if tool.custom)
        self._started = Started()
        self._envelope = b""
        self._content_head = b""
        self._opened = False
        self._part: PartStarted | None = None
        self._reasoning: ReasoningPart | None = None
        self._details = 0
        self._calls = 0
        self._arguments_sent = False
        self._custom_input: list[str] = []
        self._end: Finished | Failed | None = None

    def feed(self, events: Sequence[Event]) -> bytes:
        """Frames for these events, joined."""
        frames: list[bytes] = []
        for event in events:
            match event:
                case PartDelta():
                    part = self._part
                    if part is not None and part.kind == "text" and event.extras is None:
                        frames += (self._content_head, _ENCODE(event.text), _END)
                    else:
                        frames.append(self._delta(event))
                case Started():
                    self._started = event
                case PartStarted():
                    frames.append(self._start(event))
                case PartEnded():
                    frames.append(self._close(event))
                case Finished() | Failed():
                    self._end = event
                case Settled():
                    frames.append(self._settle(event))
                case Embedded():
                    pass
                case _:
                    assert_never(event)
        return b"".join(frames)

    def idle(self) -> bytes:
        return sse.COMMENT

    def whole(self, completion: Completion, settled: Settled) -> bytes:
        return whole_body(self._request, self._reply, completion, settled)

    def _open(self) -> bytes:
        """The first chunk, with the role. The envelope is final once there is output."""
        self._opened = True
        reply = self._reply
        fields = {
            "id": reply.generation_id,
            "object": "chat.completion.chunk",
            "created": reply.created_s,
            "model": reply.model,
            "provider": reply.vendor,
            **{n: value for n, value in (self._started.extras or {}).items() if value is not None},
        }
        self._envelope = b"data: " + _ENCODE(fields)[:-1]
        self._content_head = self._envelope + _CHOICE + b'"content":'
        return self._chunk({"role": "assistant", "content": ""})

    def _chunk(
        self, delta: dict[str, Any], beside: dict[str, Any] | None = None, **choice: object
    ) -> bytes:
        """A chunk; `beside` are fields of the vendor that stand beside its choice."""
        fields = {"index": 0, "delta": delta, "finish_reason": None, **choice}
        more = b"," + _ENCODE(beside)[1:] if beside else b"}"
        return self._envelope + b',"choices":[' + _ENCODE(fields) + b"]" + more + b"\n\n"

    def _start(self, event: PartStarted) -> bytes:
        opening = b"" if self._opened else self._open()
        self._part = event
        match event.kind:
            case "text" | "refusal":
                return opening
            case "reasoning":
                return opening + self._start_reasoning(event)
            case "tool_call":
                self._arguments_sent = False
                self._custom_input = []
                return opening + self._start_call(event)
        assert_never(event.kind)

    def _start_reasoning(self, event: PartStarted) -> bytes:
        part = ReasoningPart(
            redacted=event.redacted,
            format=event.format or "unknown",
            summary=event.summary,
            item_id=event.item_id,
        )
        self._reasoning = part
        if event.redacted is None or not self._shows_reasoning:
            return b""
        detail = reasoning.encrypted_detail(
            event.redacted, part_format=part.format, item_id=part.item_id, index=self._details
        )
        return self._chunk({"content": "", "reasoning_details": [detail]})

    def _start_call(self, event: PartStarted) -> bytes:
        call = {"index": self._calls, "id": event.call_id, **extra_content(event.extras)}
        if event.name in self._custom_tools:
            called = {"name": event.name, "input": ""}
            return self._chunk({"tool_calls": [{**call, "type": "custom", "custom": called}]})
        function = {"name": event.name, "arguments": ""}
        return self._chunk({"tool_calls": [{**call, "type": "function", "function": function}]})

    def _delta(self, event: PartDelta) -> bytes:
        part = self._part
        assert part is not None
        match part.kind:
            case "text":
                extras = event.extras or {}
                delta: dict[str, Any] = {"content": event.text}
                if "annotations" in extras:
                    delta["annotations"] = extras["annotations"]
                choice = {"logprobs": extras["logprobs"]} if "logprobs" in extras else {}
                return self._chunk(delta, **choice)
            case "refusal":
                return self._chunk({"refusal": event.text})
            case "reasoning":
                return self._reasoning_delta(event.text)
            case "tool_call":
                if part.name in self._custom_tools:
                    self._custom_input.append(event.text)
                    return b""
                return self._arguments(event.text)
        assert_never(part.kind)

    def _reasoning_delta(self, text: str) -> bytes:
        assert self._reasoning is not None
        if not self._shows_reasoning or not text:
            return b""
        detail = reasoning.text_detail(self._reasoning, index=self._details, text=text)
        return self._chunk(
            {
                "content": "",
                "reasoning": text,
                "reasoning_content": text,
                "reasoning_details": [detail],
            }
        )

    def _arguments(self, text: str) -> bytes:
        if not text:
            return b""
        self._arguments_sent = True
        call = {"index": self._calls, "function": {"arguments": text}}
        return self._chunk({"tool_calls": [call]})

    def _close(self, event: PartEnded) -> bytes:
        part = self._part
        assert part is not None
        self._part = None
        match part.kind:
            case "reasoning":
                return self._close_reasoning(event)
            case "tool_call":
                return self._close_call(event, part) + self._call_signature(event, part)
            case "text" | "refusal":
                frames = b""
                if event.extras and "annotations" in event.extras:
                    delta = {"content": "", "annotations": event.extras["annotations"]}
                    frames = self._chunk(delta)
                return frames + self._call_signature(event, part)
        assert_never(part.kind)

    def _close_reasoning(self, event: PartEnded) -> bytes:
        part, index = self._reasoning, self._details
        assert part is not None
        self._details += 1
        if event.signature is None or not self._shows_reasoning:
            return b""
        if reasoning.has_own_detail(part):
            index, self._details = self._details, self._details + 1
        detail = reasoning.closing_detail(part, index=index, signature=event.signature)
        return self._chunk({"content": "", "reasoning_details": [detail]})

    def _close_call(self, event: PartEnded, part: PartStarted) -> bytes:
        frames = b""
        late = extra_content(event.extras)
        if late:
            frames = self._chunk({"tool_calls": [{"index": self._calls, **late}]})
        if part.name in self._custom_tools:
            text = free_text("".join(self._custom_input))
            call = {"index": self._calls, "custom": {"input": text}}
            frames += self._chunk({"tool_calls": [call]})
        elif not self._arguments_sent:
            frames += self._arguments("{}")
        self._calls += 1
        return frames

    def _call_signature(self, event: PartEnded, part: PartStarted) -> bytes:
        """A vendor's signature on a call or on text, shown beside it under the call's id."""
        if event.signature is None or not self._shows_reasoning:
            return b""
        detail = reasoning.encrypted_detail(
            event.signature,
            part_format=part.format or "unknown",
            item_id=part.call_id,
            index=self._details,
        )
        self._details += 1
        return self._chunk({"content": "", "reasoning_details": [detail]})

    def _settle(self, settled: Settled) -> bytes:
        opening = b"" if self._opened else self._open()
        match self._end:
            case Failed(error=error):
                reported = error or UpstreamFailed("the upstream failed while answering")
                return opening + self._failure(reported, settled)
            case Finished(reason="error") as finished:
                return opening + self._failure(
                    ended_in_error(finished), settled, native=finished.upstream_reason
                )
            case Finished() as finished:
                return opening + self._finish(finished) + self._usage(settled) + sse.DONE
            case None:
                raise AssertionError("settled before the end")

    def _finish(self, finished: Finished) -> bytes:
        frames = b""
        if finished.reason == "content_filter" and finished.explanation:
            frames = self._chunk({"refusal": finished.explanation})
        return frames + self._chunk(
            {},
            (finished.extras or {}).get("envelope"),
            finish_reason=finished.reason,
            native_finish_reason=finished.upstream_reason,
        )

    def _usage(self, settled: Settled) -> bytes:
        usage = usage_object(settled, include_cost=self._request.include_cost)
        frame = self._envelope + b',"choices":[],"usage":' + _ENCODE(usage)
        if settled.receipt is not None:
            frame += b',"gateway_metadata":' + bytes(settled.receipt)
        return frame + b"}\n\n"

    def _failure(self, error: GatewayError, settled: Settled, native: str | None = None) -> bytes:
        """`native` is the vendor's own word, where it ended its answer with one."""
        choice: dict[str, Any] = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        if native is not None:
            choice["native_finish_reason"] = native
        usage = usage_object(settled, include_cost=self._request.include_cost)
        shown = in_stream_error(error, settled, self._reply.generation_id)
        return failure_frames(self._envelope, choice, shown, usage)


def failure_frames(
    envelope: bytes, choice: dict[str, Any], shown: dict[str, Any], usage: object
) -> bytes:
    """Three parts: clients differ in which of them they notice."""
    fields = {"choices": [choice], "error": shown, "usage": usage}
    chunk = envelope + b"," + _ENCODE(fields)[1:] + b"\n\n"
    bare = {key: shown[key] for key in ("code", "type", "message")}
    return chunk + sse.data_frame({"error": {**bare, "param": None}}) + sse.DONE


def in_stream_error(error: GatewayError, settled: Settled, request_id: str) -> dict[str, Any]:
    """The error object of a stream that broke, with the receipt in its metadata where one was asked for."""
    shown = error_object(error, request_id)
    metadata = dict(shown["metadata"])
    if settled.receipt is not None:
        metadata["gateway_metadata"] = settled.receipt
    return {
        "code": shown["code"],
        "type": shown["type"],
        "message": shown["message"],
        "metadata": metadata,
    }
