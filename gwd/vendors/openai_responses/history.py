"""The conversation as input items: every call is answered right after its turn, and by exactly one result.

A call nobody answered gets a result that says so, a result nobody asked for becomes text of the user; the vendor
refuses both. Reasoning goes back only with its own encrypted content, and only in front of what it led to.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gwd.core.request import (
    Generate,
    Message,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from gwd.core.target import Flags
from gwd.vendors.openai_responses.content import Contents
from gwd.vendors.openai_responses.format import SIGNATURE_FORMAT
from gwd.vendors.tool_names import ToolNames, UniqueIds, call_id_for

MAX_CALL_ID: Final = 64
NOT_EXECUTED: Final = "This call was not executed."
Item = dict[str, Any]


class History:
    """Builds `instructions` and `input` of one request."""

    def __init__(self, body: Generate, names: ToolNames, contents: Contents, flags: Flags) -> None:
        self._is_own = contents.is_own_family
        self._names = names
        self._contents = contents
        self._flags = flags
        self._custom = frozenset(tool.name for tool in body.tools if tool.custom)
        self._results = _results_by_call(body.messages)
        self._answered: set[int] = set()
        self._ids = UniqueIds(length=MAX_CALL_ID)
        self._items: list[Item] = []
        self._messages = deque(body.messages)

    def instructions(self) -> str | None:
        """The leading system text, taken off the conversation. Developer messages stay items of their own."""
        texts = []
        while self._messages and self._is_instruction(self._messages[0]):
            message = self._messages.popleft()
            texts += [self._contents.text(p) for p in message.parts if isinstance(p, TextPart)]
        return "\n\n".join(text for text in texts if text) or None

    def as_items(self, instructions: str | None) -> list[Item]:
        """Instructions as the only message of a conversation."""
        if not instructions:
            return []
        return [self._system_item([{"type": "input_text", "text": instructions}])]

    def items(self) -> list[Item]:
        """What remains after `instructions`, in order."""
        for message in self._messages:
            match message.role:
                case "system":
                    self._system(message)
                case "assistant":
                    self._assistant(message)
                case "user" | "tool":
                    self._user(message)
        return self._items

    def _is_instruction(self, message: Message) -> bool:
        is_marked = self._flags.cache_breakpoints and any(
            isinstance(part, TextPart) and part.cache is not None for part in message.parts
        )
        return message.role == "system" and not message.developer and not is_marked

    def _system(self, message: Message) -> None:
        content = self._contents.inputs([p for p in message.parts if isinstance(p, TextPart)])
        if content:
            self._items.append(self._system_item(content))

    def _system_item(self, content: list[Item]) -> Item:
        role = "system" if self._flags.developer_role is False else "developer"
        return {"type": "message", "role": role, "content": content}

    def _user(self, message: Message) -> None:
        parts: list[Part] = []
        for part in message.parts:
            if not isinstance(part, ToolResultPart):
                parts.append(part)
            elif id(part) not in self._answered:
                parts += (TextPart(text=f"Result of the call {part.call_id}:"), *part.parts)
        content = self._contents.inputs(parts)
        if content:
            self._items.append({"type": "message", "role": "user", "content": content})

    def _assistant(self, message: Message) -> None:
        turn: list[Item] = []
        answers: list[Item] = []
        for part in message.parts:
            match part:
                case TextPart(extras={"item": {"type": str()} as item}) if self._is_own:
                    turn.append(item)
                case TextPart() | RefusalPart():
                    _add_text(turn, part)
                case ToolCallPart():
                    call_id = self._ids.add(call_id_for(part.call_id, length=MAX_CALL_ID))
                    turn.append(self._call(part, call_id))
                    answers.append(self._answer(part, call_id))
                case ReasoningPart():
                    _add_reasoning(turn, part)
                case _:
                    pass  # This format has no place for images and files of the assistant.
        self._items += _led_somewhere(turn)
        self._items += answers

    def _call(self, part: ToolCallPart, call_id: str) -> Item:
        name = self._names.upstream(part.name)
        if part.name in self._custom:
            text = _custom_input(part.arguments)
            return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": text}
        arguments = part.arguments if part.arguments.strip() else "{}"
        return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}

    def _answer(self, part: ToolCallPart, call_id: str) -> Item:
        kind = "custom_tool_call_output" if part.name in self._custom else "function_call_output"
        waiting = self._results[part.call_id]
        if not waiting:
            return {"type": kind, "call_id": call_id, "output": NOT_EXECUTED}
        result = waiting.popleft()
        self._answered.add(id(result))
        return {"type": kind, "call_id": call_id, "output": self._contents.result(result)}


def _results_by_call(messages: Sequence[Message]) -> defaultdict[str, deque[ToolResultPart]]:
    results: defaultdict[str, deque[ToolResultPart]] = defaultdict(deque)
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                results[part.call_id].append(part)
    return results


def _add_text(turn: list[Item], part: TextPart | RefusalPart) -> None:
    """Neighbouring texts are one message, unless the client told commentary from the final answer."""
    if not part.text:
        return
    if isinstance(part, RefusalPart):
        content, phase = {"type": "refusal", "refusal": part.text}, None
    else:
        content = {"type": "output_text", "text": part.text}
        phase = part.extras.get("phase") if part.extras else None
    last = turn[-1] if turn else None
    if last is not None and last["type"] == "message" and last.get("phase") == phase:
        last["content"].append(content)
        return
    message: Item = {"type": "message", "role": "assistant", "content": [content]}
    if phase is not None:
        message["phase"] = phase
    turn.append(message)


def _add_reasoning(turn: list[Item], part: ReasoningPart) -> None:
    sealed = part.signature or part.redacted
    if part.format != SIGNATURE_FORMAT:
        return
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    last = turn[-1] if turn else None
    if last is not None and last["type"] == "reasoning" and _is_same(last, part.item_id):
        last["summary"] += summary
        last["encrypted_content"] = sealed or last["encrypted_content"]
        return
    item: Item = {"type": "reasoning", "summary": summary, "encrypted_content": sealed}
    if part.item_id:
        item["id"] = part.item_id
    turn.append(item)


def _is_same(item: Item, item_id: str | None) -> bool:
    return item_id is not None and item.get("id") == item_id


def _led_somewhere(turn: Sequence[Item]) -> list[Item]:
    """The turn without reasoning that cannot be read back, or that nothing follows: both are refused."""
    kept: list[Item] = []
    for item in reversed(turn):
        if item["type"] != "reasoning" or (kept and item["encrypted_content"]):
            kept.append(item)
    kept.reverse()
    return kept


def _custom_input(arguments: str) -> str:
    """The free text of a custom call; history of other making may hold any JSON."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    found = value.get("input") if isinstance(value, dict) else None
    return found if isinstance(found, str) else arguments
