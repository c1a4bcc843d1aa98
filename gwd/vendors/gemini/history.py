"""The conversation as Gemini wants it: turns of user and model, each call answered right behind it.

Neighbours of one role are one turn. The results of a model's turn stand first in the user's turn behind it, in the
order of the calls and exactly one for each, because results are matched by name and place. A call nobody answered
gets a result that says so; a result nobody asked for becomes text.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, Final, Literal, assert_never

import msgspec

from gwd.core.errors import InvalidRequest
from gwd.core.request import (
    FilePart,
    Generate,
    ImagePart,
    Message,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from gwd.core.target import Target
from gwd.vendors.gemini.content import Contents
from gwd.vendors.gemini.format import SIGNATURE_FORMAT
from gwd.vendors.tool_names import ToolNames, UniqueIds, call_id_for

Json = dict[str, Any]

MAX_CALL_ID: Final = 64
PLACEHOLDER: Final = "."
CONTINUE: Final = "Please continue."
NOT_EXECUTED: Final = "This call was not executed."
BAD_ARGUMENTS_NOTE: Final = (
    "Note: the arguments of this call were not a JSON object and were replaced by an empty one.\n"
)
# What the vendor's documentation offers for calls it has not made itself (thought signatures, 2026-11-28).
NO_SIGNATURE: Final = "skip_thought_signature_validator"


class History:
    """Builds `systemInstruction` and `contents` of one request."""

    def __init__(
        self, body: Generate, names: ToolNames, contents: Contents, target: Target
    ) -> None:
        self._names = names
        self._contents = contents
        self._target = target
        # The models that think by budget, or not at all, ask for no signature.
        self._wants_signatures = target.flags.thinking_form not in ("budget", "none")
        self._messages = deque(body.messages)
        self._results = _results_by_call(body.messages)
        self._answered: set[int] = set()
        self._ids = UniqueIds(length=MAX_CALL_ID)
        self._is_only_system = False
        self._turns: list[Json] = []
        self._unanswered: list[tuple[ToolCallPart, Json]] = []

    def system(self) -> list[Json]:
        """The parts of the leading system text, taken off the conversation; later system text stays in its place."""
        parts: list[Json] = []
        while self._messages and self._messages[0].role == "system":
            parts += self._texts(self._messages.popleft())
        self._is_only_system = bool(parts) and not self._messages
        return parts

    def turns(self) -> list[Json]:
        """What remains after `system`. Raises InvalidRequest if nothing is left to answer."""
        for place, message in enumerate(self._messages):
            is_last = place == len(self._messages) - 1
            if message.role != "assistant":
                self._answer_calls()
            match message.role:
                case "system":
                    self._append("user", self._texts(message))
                case "assistant":
                    self._assistant(message)
                case "user" | "tool":
                    self._user(message, is_last=is_last)
                case _:
                    assert_never(message.role)
        self._answer_calls()
        if not self._turns and not self._is_only_system:
            raise InvalidRequest(
                "`messages` holds nothing to answer: send a message with text", param="messages"
            )
        if not self._turns or self._turns[0]["role"] != "user":
            self._turns.insert(0, _turn("user", {"text": PLACEHOLDER}))
        if self._turns[-1]["role"] == "model" and self._target.flags.supports_prefill is False:
            self._turns.append(_turn("user", {"text": CONTINUE}))
        return self._turns

    def _texts(self, message: Message) -> list[Json]:
        return [
            built
            for part in message.parts
            if isinstance(part, TextPart) and (built := self._contents.part(part)) is not None
        ]

    def _user(self, message: Message, *, is_last: bool) -> None:
        parts: list[Json] = []
        holds_results = False
        for part in message.parts:
            match part:
                case ToolResultPart():
                    holds_results = True
                    if id(part) not in self._answered:
                        parts += self._orphan(part)
                case TextPart() | ImagePart() | FilePart():
                    built = self._contents.part(part)
                    parts += [built] if built is not None else []
                case RefusalPart():
                    parts += [{"text": part.text}] if part.text else []
                case ToolCallPart() | ReasoningPart():
                    pass
                case _:
                    assert_never(part)
        if is_last and not parts and not holds_results:
            raise InvalidRequest(
                "the last message is empty: send text, an image, a file or a tool result",
                param="messages",
            )
        self._append("user", parts)

    def _assistant(self, message: Message) -> None:
        """Parts of the model, each with the signature it came with. Images are dropped: this is no place for them.

        A client that cannot keep a signature on its part keeps it on a piece of reasoning: it goes on the part behind.
        """
        parts: list[Json] = []
        calls: list[tuple[ToolCallPart, Json]] = []
        carried: str | None = None
        for part in message.parts:
            built: Json
            match part:
                case ReasoningPart():
                    carried = _own(part.signature, part.format) or carried
                    continue
                case TextPart() | RefusalPart():
                    if not part.text:
                        continue
                    built = {"text": part.text}
                case ToolCallPart():
                    built = self._call(part)
                    calls.append((part, built))
                case _:
                    continue
            extras = part.extras if isinstance(part, TextPart | ToolCallPart) else None
            signature = _own((extras or {}).get("signature"), (extras or {}).get("format"))
            if signature is None:
                signature, carried = carried, None
            if signature is not None:
                built["thoughtSignature"] = signature
            parts.append(built)
        if carried is not None and parts:
            # The vendor itself puts a signature that has no part on an empty text at the end.
            parts.append({"text": "", "thoughtSignature": carried})
        if self._wants_signatures and calls and not self._unanswered:
            calls[0][1].setdefault("thoughtSignature", NO_SIGNATURE)
        self._append("model", parts)
        self._unanswered += calls

    def _call(self, part: ToolCallPart) -> Json:
        arguments, _ = _arguments(part.arguments)
        call_id = self._ids.add(call_id_for(part.call_id, length=MAX_CALL_ID))
        name = self._names.upstream(part.name)
        return {"functionCall": {"id": call_id, "name": name, "args": arguments}}

    def _answer_calls(self) -> None:
        """The results of the model's turn that has just ended; media that cannot stand inside come behind them."""
        results: list[Json] = []
        behind: list[Json] = []
        for part, built in self._unanswered:
            call = built["functionCall"]
            waiting = self._results[part.call_id]
            fields: Json = {"response": {"error": NOT_EXECUTED}}
            if waiting:
                result = waiting.popleft()
                self._answered.add(id(result))
                _, is_valid = _arguments(part.arguments)
                fields, media = self._contents.result(
                    result, "" if is_valid else BAD_ARGUMENTS_NOTE
                )
                behind += media
            head = {"id": call["id"], "name": call["name"]}
            results.append({"functionResponse": {**head, **fields}})
        self._unanswered = []
        self._append("user", [*results, *behind])

    def _orphan(self, part: ToolResultPart) -> list[Json]:
        built = [found for piece in part.parts if (found := self._contents.part(piece)) is not None]
        return [{"text": f"Result of an earlier tool call ({part.call_id}):"}, *built]

    def _append(self, role: Literal["user", "model"], parts: list[Json]) -> None:
        if not parts:
            return
        if self._turns and self._turns[-1]["role"] == role:
            self._turns[-1]["parts"] += parts
        else:
            self._turns.append(_turn(role, *parts))


def _turn(role: Literal["user", "model"], *parts: Json) -> Json:
    return {"role": role, "parts": list(parts)}


def _own(signature: object, format_: object) -> str | None:
    """A signature of this vendor's; those of others mean nothing to it."""
    return (
        signature
        if isinstance(signature, str) and signature and format_ == SIGNATURE_FORMAT
        else None
    )


def _results_by_call(messages: Sequence[Message]) -> defaultdict[str, deque[ToolResultPart]]:
    results: defaultdict[str, deque[ToolResultPart]] = defaultdict(deque)
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                results[part.call_id].append(part)
    return results


def _arguments(text: str) -> tuple[Json, bool]:
    """The object a call's arguments are, and whether they were one: a call cut by the token limit is not."""
    if not text.strip():
        return {}, True
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}, False
    return (value, True) if isinstance(value, dict) else ({}, False)
