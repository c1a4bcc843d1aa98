"""Which turns of a conversation belong together, and which result answers which call; linear in the conversation."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from gwd.core.request import Message, ToolCallPart, ToolResultPart

Place = tuple[int, int]
"""The index of a message, and of a part in it."""


class Pairs:
    """Where the results of calls stand."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._calls: defaultdict[str, list[int]] = defaultdict(list)
        self._results: defaultdict[str, list[tuple[Place, ToolResultPart]]] = defaultdict(list)
        for index, message in enumerate(messages):
            for place, part in enumerate(message.parts):
                if isinstance(part, ToolResultPart):
                    if message.role != "assistant":
                        self._results[part.call_id].append(((index, place), part))
                elif isinstance(part, ToolCallPart) and message.role == "assistant":
                    turns = self._calls[part.call_id]
                    if not turns or turns[-1] != index:
                        turns.append(index)
        self._messages = messages
        self._ends: list[int] | None = None

    def results(
        self, index: int, call_id: str, count: int
    ) -> Iterator[tuple[Place, ToolResultPart]]:
        """The first results for an id behind an assistant turn, up to the next answer to the user.

        A slow tool may report when the assistant has gone on already; a call that uses an id again owns what follows.
        """
        if self._ends is None:
            self._ends = _answers_to_the_user(self._messages)
        turns = self._calls[call_id]
        later = bisect_left(turns, index + 1)
        end = self._ends[index]
        if later < len(turns):
            end = min(end, turns[later])
        results = self._results[call_id]
        first = bisect_left(results, index, key=lambda result: result[0][0])
        for at in range(first, min(first + count, len(results))):
            if results[at][0][0] >= end:
                return
            yield results[at]


def joined_turns(messages: Sequence[Message]) -> list[Message]:
    """The messages, with neighbours of the assistant made one where calls are among them: results must follow calls."""
    joined: list[Message] = []
    run: list[Message] = []
    has_calls = False
    for message in messages:
        if message.role != "assistant":
            joined += _one(run)
            joined.append(message)
            run, has_calls = [], False
            continue
        calls = any(isinstance(part, ToolCallPart) for part in message.parts)
        if run and not (has_calls or calls):
            joined += _one(run)
            run = []
        run.append(message)
        has_calls = has_calls or calls
    return joined + _one(run)


def has_tool_parts(messages: Sequence[Message]) -> bool:
    """Whether there are calls or results anywhere."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart | ToolResultPart):
                return True
    return False


def is_users_own(message: Message) -> bool:
    """Whether the user says something here: a message that is not only results."""
    return message.role == "user" and not all(isinstance(p, ToolResultPart) for p in message.parts)


def _one(run: list[Message]) -> list[Message]:
    """Neighbours as one message; the earliest name and the latest extras count."""
    if len(run) < 2:
        return run
    extras = {name: value for message in run for name, value in (message.extras or {}).items()}
    return [
        msgspec.structs.replace(
            run[0],
            parts=tuple(part for message in run for part in message.parts),
            name=next((message.name for message in run if message.name), None),
            extras=extras or None,
        )
    ]


def _answers_to_the_user(messages: Sequence[Message]) -> list[int]:
    """For each message the index of the next assistant turn behind something that the user says."""
    ends = [len(messages)] * len(messages)
    answer = end = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        ends[index] = end
        if messages[index].role == "assistant":
            answer = index
        elif is_users_own(messages[index]):
            end = answer
    return ends
