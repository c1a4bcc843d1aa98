"""The conversation as this vendor wants it: alternating turns, each call answered right after it.

A message becomes blocks of a turn; neighbours of one role are one turn. The results of an assistant turn stand in the
user turn right after it, before anything else. A call nobody answered gets a result that says so; a result nobody
asked for becomes text; ids that occur twice are told apart.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from gwd.core.errors import InvalidRequest
from gwd.core.request import Extras, Message, ToolCallPart, ToolResultPart
from gwd.vendors.anthropic_messages.content import (
    BAD_ARGUMENTS_NOTE,
    ID_LENGTH,
    Block,
    Blocks,
    upstream_id,
)
from gwd.vendors.tool_names import UniqueIds

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
        self.following: Turn | None = None

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
        self._first: Turn | None = None
        self._last: Turn | None = None
        self._notes: dict[str, str] = {}
        self._waiting: defaultdict[str, deque[tuple[Turn, str]]] = defaultdict(deque)
        self._ids = UniqueIds(length=ID_LENGTH)
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
        last = self._last
        if self._own and message.extras and last is not None and last.role == role:
            last.extras |= message.extras

    def turns(self, *, after_system: bool) -> list[Turn]:
        """The finished turns. Raises InvalidRequest if nothing is left to answer.

        `after_system` says that instructions stand before the turns: they are answered even where no turn follows.
        """
        if self._last_is_empty:
            raise InvalidRequest(
                "the last message is empty: send text, an image, a file or a tool result",
                param="messages",
            )
        for turn in self._in_order():
            if turn.open_calls:
                answer = self._turn_after(turn)
                answer.results += (_not_executed(call_id) for call_id in turn.open_calls.values())
        turns = [turn for turn in self._in_order() if turn.content]
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
        call_id = self._ids.add(upstream_id(part.call_id))
        block, valid = self._blocks.call(part, call_id)
        turn.blocks.append(block)
        turn.open_calls[call_id] = call_id
        self._waiting[part.call_id].append((turn, call_id))
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
        turn, call_id = waiting.popleft()
        del turn.open_calls[call_id]
        block = self._blocks.result(part, call_id, self._notes.get(call_id, ""))
        self._turn_after(turn).results.append(block)

    def _append(self, role: Role, blocks: Sequence[Block | None]) -> None:
        kept = [block for block in blocks if block is not None]
        if kept:
            self._turn(role).blocks.extend(kept)

    def _turn(self, role: Role) -> Turn:
        last = self._last
        if last is None or last.role != role:
            turn = self._last = Turn(role)
            if last is None:
                self._first = turn
            else:
                last.following = turn
            return turn
        return last

    def _turn_after(self, turn: Turn) -> Turn:
        """The user turn right behind an assistant turn, made if something else stands there."""
        behind = turn.following
        if behind is not None and behind.role == "user":
            return behind
        made = turn.following = Turn("user")
        made.following = behind
        if turn is self._last:
            self._last = made
        return made

    def _in_order(self) -> Iterator[Turn]:
        turn = self._first
        while turn is not None:
            yield turn
            turn = turn.following


def _not_executed(call_id: str) -> Block:
    return {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": NOT_EXECUTED,
        "is_error": True,
    }
