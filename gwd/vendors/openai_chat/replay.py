"""Reasoning of earlier turns, where a server wants it back: from which turns, and under which name of a message.

The format has no place for it. Servers that think between calls ask for it, each in its own way, and others refuse
the field: the endpoint's flags `reasoning_replay` and `reasoning_field` say which kind this one is.
"""

from collections.abc import Sequence
from typing import Any, Final

from gwd.core.request import Message, ReasoningPart, ToolCallPart, ToolResultPart
from gwd.core.target import Replay, Target

Json = dict[str, Any]

USUAL_FIELD: Final = "reasoning_content"


class ReplayedReasoning:
    """What goes back of the reasoning in one conversation.

    `asked` is what the server said when it refused the call before: it wants none, or misses what was not there.
    """

    def __init__(self, messages: Sequence[Message], target: Target, *, asked: bool | None) -> None:
        self._field = target.flags.reasoning_field or USUAL_FIELD
        self._is_missed = asked is True
        self._turns = _turns_wanted(messages, "none" if asked is False else _wanted(target))

    def fields(self, index: int, message: Message) -> Json:
        """The fields to add to an assistant message. Reasoning that names another family is never sent.

        A server that misses the field gets it on every turn with calls: a space where nothing is known of the
        reasoning, as empty ones count as missing.
        """
        if index not in self._turns and not self._is_missed:
            return {}
        texts = [
            part.text
            for part in message.parts
            if isinstance(part, ReasoningPart) and part.format == "unknown" and part.text
        ]
        if not texts:
            calls = any(isinstance(part, ToolCallPart) for part in message.parts)
            if not self._is_missed or not calls:
                return {}
            texts = [" "]
        if self._field == "reasoning_details":
            details = [
                {"type": "reasoning.text", "text": text, "index": place}
                for place, text in enumerate(texts)
            ]
            return {self._field: details}
        return {self._field: "".join(texts)}


def _wanted(target: Target) -> Replay:
    """Without a flag a model that reasons gets it, save OpenAI's own, which take no reasoning in this format."""
    flags = target.flags
    if flags.reasoning_replay is not None:
        return flags.reasoning_replay
    if flags.developer_role or "reasoning" not in target.supported_parameters:
        return "none"
    return "tool_turns"


def _turns_wanted(messages: Sequence[Message], wanted: Replay) -> frozenset[int]:
    """The places of the assistant messages whose reasoning goes back.

    A turn runs from one question of the user to the next; a tool turn is one with a call anywhere in it, and the open
    loop the last turn up to its latest call.
    """
    if wanted == "none":
        return frozenset()
    places: set[int] = set()
    turn: list[int] = []
    has_call = False
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "assistant":
            calls = any(isinstance(part, ToolCallPart) for part in message.parts)
            has_call = has_call or calls
            if calls or wanted == "tool_turns":
                turn.append(index)
        elif is_users_own(message):
            places.update(turn if has_call else ())
            if wanted == "open_loop":
                return frozenset(places)
            turn, has_call = [], False
    places.update(turn if has_call else ())
    return frozenset(places)


def is_users_own(message: Message) -> bool:
    """Whether the user says something here: a message that is not only results."""
    return message.role == "user" and not all(isinstance(p, ToolResultPart) for p in message.parts)
