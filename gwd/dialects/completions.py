"""The legacy completions dialect: a prompt becomes one user message, the answer is text."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from gwd.core import sse
from gwd.core.errors import (
    GatewayError,
    InvalidValue,
    MissingParameter,
    UnsupportedInput,
    UpstreamFailed,
)
from gwd.core.events import (
    Completion,
    Event,
    Failed,
    Finished,
    PartDelta,
    PartStarted,
    Settled,
    Started,
)
from gwd.core.request import (
    DialectName,
    Generate,
    Message,
    ReasoningPart,
    RefusalPart,
    Request,
    TextPart,
)
from gwd.dialects import extensions, json_input
from gwd.dialects.base import EVENT_STREAM, Reply
from gwd.dialects.chat_completions.common import (
    check_single_choice,
    output_cap,
    reasoning_of,
    sampling_of,
    sent_words,
)
from gwd.dialects.chat_completions.render import failure_frames, in_stream_error
from gwd.dialects.chat_completions.usage import usage_object
from gwd.dialects.chat_completions.wire import CommonWire
from gwd.dialects.envelope import choice_error, ended_in_error, error_body

MAX_PROMPTS: Final = 2_000
_ENCODE: Final = msgspec.json.Encoder().encode
_END: Final = b',"finish_reason":null,"logprobs":null}]}\n\n'
_CHOICE: Final = b',"choices":[{"index":0,"text":'


class CompletionsWire(CommonWire, frozen=True, kw_only=True):
    prompt: Annotated[
        str | Annotated[list[Any], Meta(max_length=MAX_PROMPTS)] | None,
        Meta(description="The text to go on from; several are one message, a line each."),
    ] = None
    best_of: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Ignored: one answer is made.")
    ] = None


class Completions:
    """Stateless; one instance serves every request."""

    name: DialectName = "completions"
    path = "/completions"
    framing = EVENT_STREAM

    def parse(self, body: bytes, headers: Mapping[str, str]) -> Request:
        """Raises InvalidRequest subclasses whose `param` names the field."""
        wire = json_input.typed(json_input.load(body), CompletionsWire)
        check_single_choice(wire)
        # `suffix`, `echo`, `best_of` and `logprobs` mean nothing to a chat model: dropped, as any unknown field.
        message = Message(role="user", parts=(TextPart(text=_prompt(wire.prompt)),))
        return Request(
            dialect="completions",
            family="openai_chat",
            models=extensions.models_of(wire.model, wire.models),
            body=Generate(
                messages=(message,),
                sampling=sampling_of(wire),
                reasoning=reasoning_of(wire),
                max_output_tokens=output_cap(wire),
            ),
            preferences=extensions.preferences_of(wire.provider),
            stream=wire.stream is True,
            include_cost=extensions.wants_cost(wire.usage),
            include_receipt=extensions.wants_receipt(headers),
            sender=extensions.sender_of(
                headers, session_id=wire.session_id, user=wire.user, metadata=wire.metadata
            ),
            sent_parameters=frozenset(sent_words(wire, None)),
            body_bytes=len(body),
        )

    def renderer(self, request: Request, reply: Reply) -> "CompletionsRenderer":
        return CompletionsRenderer(request, reply)

    def error(self, error: GatewayError, request_id: str) -> bytes:
        return error_body(error, request_id)


class CompletionsRenderer:
    """Renders one generation; refusals are text here, tool calls cannot occur, reasoning stands beside the text."""

    def __init__(self, request: Request, reply: Reply) -> None:
        assert isinstance(request.body, Generate)
        self._request = request
        self._reply = reply
        asked = request.body.reasoning
        self._shows_reasoning = not (asked is not None and asked.exclude)
        self._started = Started()
        self._envelope = b""
        self._head = b""
        self._kind = "text"
        self._end: Finished | Failed | None = None

    def feed(self, events: Sequence[Event]) -> bytes:
        """Frames for these events, joined."""
        frames: list[bytes] = []
        for event in events:
            match event:
                case PartDelta():
                    if self._kind in ("text", "refusal"):
                        frames += (self._head, _ENCODE(event.text), _END)
                    elif self._kind == "reasoning" and self._shows_reasoning:
                        frames.append(self._chunk(reasoning=event.text))
                case Started():
                    self._started = event
                case PartStarted():
                    self._open()
                    self._kind = event.kind
                case Finished() | Failed():
                    self._end = event
                case Settled():
                    frames.append(self._settle(event))
                case _:
                    pass
        return b"".join(frames)

    def idle(self) -> bytes:
        return sse.COMMENT

    def whole(self, completion: Completion, settled: Settled) -> bytes:
        finished = completion.finished
        choice: dict[str, Any] = {
            "index": 0,
            "text": _text(completion),
            "finish_reason": _reason(finished),
            "native_finish_reason": finished.upstream_reason,
            "logprobs": None,
        }
        if finished.reason == "error":
            choice["error"] = choice_error(finished)
        thought = "".join(p.text for p in completion.parts if isinstance(p, ReasoningPart))
        if thought and self._shows_reasoning:
            choice["reasoning"] = thought
        self._started = completion.started
        body = {**self._fields(), "choices": [choice], "usage": self._usage(settled)}
        if settled.receipt is not None:
            body["gateway_metadata"] = settled.receipt
        return _ENCODE(body)

    def _fields(self) -> dict[str, Any]:
        reply = self._reply
        extras = self._started.extras or {}
        return {
            "id": reply.generation_id,
            "object": "text_completion",
            "created": reply.created_s,
            "model": reply.model,
            "provider": reply.vendor,
            "system_fingerprint": extras.get("system_fingerprint"),
        }

    def _open(self) -> None:
        if not self._envelope:
            self._envelope = b"data: " + _ENCODE(self._fields())[:-1]
            self._head = self._envelope + _CHOICE

    def _chunk(self, **choice: object) -> bytes:
        fields = {"index": 0, "text": "", "finish_reason": None, "logprobs": None, **choice}
        return self._envelope + b',"choices":[' + _ENCODE(fields) + b"]}\n\n"

    def _usage(self, settled: Settled) -> Any:
        return usage_object(settled, include_cost=self._request.include_cost)

    def _settle(self, settled: Settled) -> bytes:
        self._open()
        match self._end:
            case Failed(error=error):
                reported = error or UpstreamFailed("the upstream failed while answering")
                return self._failure(reported, settled)
            case Finished(reason="error") as finished:
                return self._failure(
                    ended_in_error(finished), settled, native=finished.upstream_reason
                )
            case Finished() as finished:
                end = self._chunk(
                    finish_reason=_reason(finished), native_finish_reason=finished.upstream_reason
                )
                usage = self._envelope + b',"choices":[],"usage":' + _ENCODE(self._usage(settled))
                if settled.receipt is not None:
                    usage += b',"gateway_metadata":' + bytes(settled.receipt)
                return end + usage + b"}\n\n" + sse.DONE
            case None:
                raise AssertionError("settled before the end")

    def _failure(self, error: GatewayError, settled: Settled, native: str | None = None) -> bytes:
        choice = {"index": 0, "text": "", "finish_reason": "error", "logprobs": None}
        if native is not None:
            choice["native_finish_reason"] = native
        shown = in_stream_error(error, settled, self._reply.generation_id)
        return failure_frames(self._envelope, choice, shown, self._usage(settled))


def _prompt(prompt: str | list[Any] | None) -> str:
    """Several prompts are one message, a line each. Raises UnsupportedInput for tokens."""
    if prompt is None or prompt == []:
        raise MissingParameter("`prompt` is required", param="prompt")
    pieces = [prompt] if isinstance(prompt, str) else prompt
    for index, piece in enumerate(pieces):
        if isinstance(piece, int | list):
            raise UnsupportedInput(
                "`prompt`: token arrays are not supported; send text", param="prompt"
            )
        if not isinstance(piece, str):
            raise InvalidValue(f"`prompt[{index}]` must be a string", param=f"prompt[{index}]")
    return "\n".join(pieces)


def _text(completion: Completion) -> str:
    return "".join(p.text for p in completion.parts if isinstance(p, TextPart | RefusalPart))


def _reason(finished: Finished) -> str | None:
    return "stop" if finished.reason == "tool_calls" else finished.reason


DIALECT: Final = Completions()
