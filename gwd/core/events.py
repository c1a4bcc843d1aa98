"""The one internal stream: every decoder produces it, every renderer consumes it.

Grammar: `Started (PartStarted PartDelta* PartEnded)* | Started Embedded`, then `Finished` or `Failed`, then `Settled`.
One part is open at a time, indices count up from 0. `Failed` may come without `Started` and with a part open.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from gwd.core.cost import Cost
from gwd.core.errors import Fault, GatewayError
from gwd.core.extras import Given
from gwd.core.request import (
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
)
from gwd.core.usage import Usage

PartKind = Literal["text", "reasoning", "tool_call", "refusal"]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "error"]


class Started(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The vendor opened its answer; not output yet. `extras` holds fields of its envelope (system_fingerprint …)."""

    upstream_id: str | None = None
    upstream_model: str | None = None
    extras: dict[str, Any] | None = None


class PartStarted(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """A part opens. `call_id` and `name` for tool calls; the rest as on ReasoningPart for reasoning.

    `item` is an item of the vendor's own kind, whole: a text part without text, which only a dialect of the same family
    shows.
    `extras` are fields of the vendor's own on a call; `extra_content` goes back to its `origin` (openai_chat).
    """

    index: int
    kind: PartKind
    call_id: str | None = None
    name: str | None = None
    format: str | None = None
    redacted: str | None = None
    summary: bool = False
    item_id: str | None = None
    item: dict[str, Any] | None = None
    extras: dict[str, Any] | None = None


class PartDelta(msgspec.Struct, frozen=True, tag=True, omit_defaults=True, gc=False):
    """Text of the open part: answer text, reasoning text, refusal text, or JSON text of tool arguments."""

    index: int
    text: str
    extras: dict[str, Any] | None = None


class PartEnded(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The part is complete. `signature` closes reasoning; `extras` holds whole-part fields such as annotations."""

    index: int
    signature: str | None = None
    extras: dict[str, Any] | None = None


class Embedded(msgspec.Struct, frozen=True, tag=True):
    """Vectors in the order of the inputs."""

    vectors: tuple[tuple[float, ...], ...]


class Finished(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The vendor ended its answer.

    `reason` None is a blank finish. `upstream_reason` is the vendor's own word, `stop_sequence` the stop string that
    matched where the vendor says so, `explanation` its words on a refusal. `usage` None: nothing believable reported.
    `given` is what the vendor says of the priced extras.
    `extras` holds fields of its last event; those beside the choice of a chat answer are in `envelope`.
    """

    reason: FinishReason | None
    upstream_reason: str | None = None
    usage: Usage | None = None
    stop_sequence: str | None = None
    explanation: str | None = None
    extras: dict[str, Any] | None = None
    given: Given | None = None


class Failed(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The attempt broke. Decoders set `fault`; `error` is what the client is told, set by the pipeline."""

    fault: Fault
    error: GatewayError | None = None


class Settled(msgspec.Struct, frozen=True, tag=True):
    """The ledger has it: the last event. `receipt` is the `gateway_metadata` object as JSON, if asked for."""

    usage: Usage
    cost: Cost
    receipt: msgspec.Raw | None = None


Event = Started | PartStarted | PartDelta | PartEnded | Embedded | Finished | Failed | Settled
OUTPUT_EVENTS = (PartStarted, Embedded, Finished)
"""The first of these is the first output: the status line may go out, failover ends."""


class GrammarError(AssertionError):
    """A decoder broke the grammar; the text names the event and the rule."""


def check_grammar(events: Iterable[Event]) -> None:
    """Raise GrammarError at the first event that the grammar does not allow there."""
    checker = GrammarChecker()
    for event in events:
        checker.feed(event)


class GrammarChecker:
    """The grammar as a small state machine, one event at a time."""

    def __init__(self) -> None:
        self._state: Literal["new", "started", "open", "embedded", "ended", "settled"] = "new"
        self._next_index = 0

    def feed(self, event: Event) -> None:
        match event:
            case Started():
                self._need(event, "new")
                self._state = "started"
            case PartStarted():
                self._need(event, "started")
                if event.index != self._next_index:
                    raise GrammarError(f"part {event.index} started, {self._next_index} was next")
                self._state = "open"
            case PartDelta():
                self._need(event, "open")
                self._need_index(event.index)
            case PartEnded():
                self._need(event, "open")
                self._need_index(event.index)
                self._next_index += 1
                self._state = "started"
            case Embedded():
                self._need(event, "started")
                if self._next_index:
                    raise GrammarError("Embedded is not allowed after parts")
                self._state = "embedded"
            case Finished():
                self._need(event, "started", "embedded")
                self._state = "ended"
            case Failed():
                self._need(event, "new", "started", "open", "embedded")
                self._state = "ended"
            case Settled():
                self._need(event, "ended")
                self._state = "settled"

    def _need(self, event: Event, *states: str) -> None:
        if self._state not in states:
            raise GrammarError(f"{type(event).__name__} is not allowed in state {self._state}")

    def _need_index(self, index: int) -> None:
        if index != self._next_index:
            raise GrammarError(f"event for part {index}, open is {self._next_index}")


AnswerPart = TextPart | ToolCallPart | ReasoningPart | RefusalPart


class Completion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stream folded into a whole. `part_extras` holds the extras of deltas and part ends, by part index."""

    started: Started
    parts: tuple[AnswerPart, ...] = ()
    part_extras: dict[int, list[dict[str, Any]]] = {}
    vectors: tuple[tuple[float, ...], ...] = ()
    finished: Finished


def collect(events: Sequence[Event]) -> Completion:
    """Fold a complete, successful stream; the caller has dealt with `Failed` before."""
    started: Started | None = None
    finished: Finished | None = None
    vectors: tuple[tuple[float, ...], ...] = ()
    parts: list[AnswerPart] = []
    extras: dict[int, list[dict[str, Any]]] = {}
    opened: PartStarted | None = None
    texts: list[str] = []
    for event in events:
        match event:
            case PartDelta():
                texts.append(event.text)
                if event.extras:
                    extras.setdefault(event.index, []).append(event.extras)
            case PartStarted():
                opened, texts = event, []
            case PartEnded():
                assert opened is not None
                parts.append(_part(opened, "".join(texts), event))
                if event.extras:
                    extras.setdefault(event.index, []).append(event.extras)
            case Started():
                started = event
            case Embedded():
                vectors = event.vectors
            case Finished():
                finished = event
            case Failed() | Settled():
                pass
    assert started is not None
    assert finished is not None
    return Completion(
        started=started,
        parts=tuple(parts),
        part_extras=extras,
        vectors=vectors,
        finished=finished,
    )


def _part(opened: PartStarted, text: str, ended: PartEnded) -> AnswerPart:
    # A vendor's signature on text or on a call has no field of its own there: it travels in the extras.
    signature = ended.signature
    signed = {"signature": signature, "format": opened.format} if signature else None
    match opened.kind:
        case "text":
            return TextPart(text=text, extras={"item": opened.item} if opened.item else signed)
        case "refusal":
            return RefusalPart(text=text)
        case "tool_call":
            return ToolCallPart(
                call_id=opened.call_id or "",
                name=opened.name or "",
                arguments=text or "{}",
                extras={**(opened.extras or {}), **_late_content(ended), **(signed or {})} or None,
            )
        case "reasoning":
            return ReasoningPart(
                text=text,
                signature=signature,
                redacted=opened.redacted,
                format=opened.format or "unknown",
                summary=opened.summary,
                item_id=opened.item_id,
            )


def _late_content(ended: PartEnded) -> dict[str, Any]:
    extras = ended.extras or {}
    return extras if "extra_content" in extras else {}
