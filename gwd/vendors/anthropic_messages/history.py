"""The conversation as this vendor wants it: alternating turns, each call answered right after it (api.md 5.2, 5.7).

A message becomes blocks of a turn; neighbours of one role are one turn. The results of an assistant turn stand in the
user turn right after it, before anything else. A call nobody answered gets a result that says so; a result nobody
asked for becomes text; ids that occur twice are told apart.
"""

from collections.abc import Sequence
from typing import Final, Literal

from gwd.core.errors import InvalidRequest
from gwd.core.request import Extras, Message, ToolCallPart, ToolResultPart
from gwd.vendors.anthropic_messages.content import (
    BAD_ARGUMENTS_NOTE,
    Block,
    Blocks,
    upstream_id,
)

PLACEHOLDER: Final = "."
NOT_EXECUTED: Final = "This call was not executed."
CONTINUE: Final = "Please continue."

Role = Literal["user", "assistant", "system"]


class Turn:
    """One message towards the vendor while it is put together; `results` go before `blocks`."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.blocks: list[Block] = []
        self.results: list[Block] = []
        self.open_calls: dict[str, str] = {}
        self.extras: Extras = {}

    @property
    def content(self) -> list[Block]:
        return self.results + self.blocks

    def as_wire(self) -> dict[str, object]:
        return {"role": self.role, "content": self.content, **self.extras}


class History:
    """Builds the turns from messages in order."""

    def __init__(self, blocks: Blocks, *, own: bool, mid_system: bool) -> None:
        self._blocks = blocks
        self._own = own
        self._mid_system = mid_system
        self._turns: list[Turn] = []
        self._notes: dict[str, str] = {}
        self._waiting: dict[str, list[tuple[Turn, str]]] = {}
        self._used_ids: set[str] = set()
        self._last_is_empty = False

    def add(self, message: Message) -> None:
        self._last_is_empty = False
        match message.role:
            case "assistant":
                self._assistant(message)
            case "system" if self._mid_system:
                self._append("system", [self._blocks.system(part) for part in message.parts])
            case "system":
                self._append("user", [self._blocks.system(part) for part in message.parts])
            case "user" | "tool":
                self._user(message)
        role = "user" if message.role == "tool" else message.role
        if self._own and message.extras and self._turns and self._turns[-1].role == role:
            self._turns[-1].extras |= message.extras

    def turns(self, *, after_system: bool) -> list[Turn]:
        """The finished turns. Raises InvalidRequest if nothing is left to answer.

        `after_system` says that instructions stand before the turns: they are answered even where no turn follows.
        """
        if self._last_is_empty:
            raise InvalidRequest(
                "the last message is empty: send text, an image, a file or a tool result",
                param="messages",
            )
        for turn in [turn for turn in self._turns if turn.open_calls]:
            answer = self._turn_after(turn)
            for call_id in turn.open_calls.values():
                answer.results.append(_not_executed(call_id))
        turns = [turn for turn in self._turns if turn.content]
        if all(turn.role == "system" for turn in turns) and (turns or not after_system):
            raise InvalidRequest(
                "`messages` holds nothing to answer: send a message with text", param="messages"
            )
        if not turns or turns[0].role != "user":
            opening = Turn("user")
            opening.blocks.append({"type": "text", "text": PLACEHOLDER})
            turns.insert(0, opening)
        return turns

    def _assistant(self, message: Message) -> None:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                self._call(part)
            else:
                self._append("assistant", [self._blocks.assistant(part)])

    def _call(self, part: ToolCallPart) -> None:
        turn = self._turn("assistant")
        call_id = self._unique(upstream_id(part.call_id))
        block, valid = self._blocks.call(part, call_id)
        turn.blocks.append(block)
        turn.open_calls[call_id] = call_id
        self._waiting.setdefault(part.call_id, []).append((turn, call_id))
        if not valid:
            self._notes[call_id] = BAD_ARGUMENTS_NOTE

    def _user(self, message: Message) -> None:
        self._last_is_empty = True
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                self._result(part)
                self._last_is_empty = False
            elif (block := self._blocks.user(part)) is not None:
                self._append("user", [block])
                self._last_is_empty = False

    def _result(self, part: ToolResultPart) -> None:
        waiting = self._waiting.get(part.call_id)
        if not waiting:
            self._append("user", self._blocks.result_as_text(part))
            return
        turn, call_id = waiting.pop(0)
        del turn.open_calls[call_id]
        block = self._blocks.result(part, call_id, self._notes.get(call_id, ""))
        self._turn_after(turn).results.append(block)

    def _append(self, role: Role, blocks: Sequence[Block | None]) -> None:
        kept = [block for block in blocks if block is not None]
        if kept:
            self._turn(role).blocks.extend(kept)

    def _turn(self, role: Role) -> Turn:
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(Turn(role))
        return self._turns[-1]

    def _turn_after(self, turn: Turn) -> Turn:
        """The user turn right behind an assistant turn, made if something else stands there."""
        index = next(i for i in range(len(self._turns), 0, -1) if self._turns[i - 1] is turn)
        if index == len(self._turns) or self._turns[index].role != "user":
            self._turns.insert(index, Turn("user"))
        return self._turns[index]

    def _unique(self, call_id: str) -> str:
        unique, count = call_id, 1
        while unique in self._used_ids:
            count += 1
            unique = f"{call_id[:58]}_{count}"
        self._used_ids.add(unique)
        return unique


def _not_executed(call_id: str) -> Block:
    return {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": NOT_EXECUTED,
        "is_error": True,
    }
