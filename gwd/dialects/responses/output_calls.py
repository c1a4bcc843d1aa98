"""Calls while they grow: function calls with their JSON arguments, custom calls with their free text."""

from typing import Any

from gwd.core.events import PartEnded, PartStarted
from gwd.dialects.responses.custom_input import CustomInput
from gwd.dialects.responses.event_writer import EventWriter, delta_head
from gwd.dialects.responses.namespaces import Member
from gwd.dialects.responses.output_items import ItemStatus


class FunctionCallOutput:
    """A call of a function tool, under the name and namespace that the client gave it."""

    def __init__(
        self, writer: EventWriter, item_id: str, output_index: int, call: PartStarted, tool: Member
    ) -> None:
        self.id = item_id
        self.part_is_open = False
        self._writer = writer
        self._call_id = call.call_id or ""
        self._tool = tool
        self._at = {"item_id": item_id, "output_index": output_index}
        self._head = delta_head("response.function_call_arguments.delta", self._at)
        self._texts: list[str] = []

    def takes(self, part: PartStarted) -> bool:
        return False

    def start(self, part: PartStarted) -> None:
        self.part_is_open = True

    def delta(self, text: str, extras: dict[str, Any] | None) -> None:
        self._texts.append(text)
        self._writer.delta(self._head, text)

    def end(self, ended: PartEnded) -> None:
        self.part_is_open = False
        if not any(self._texts):
            self.delta("{}", None)
        self._writer.event(
            "response.function_call_arguments.done",
            {**self._at, "name": self._tool.name, "arguments": "".join(self._texts)},
        )

    def body(self, status: ItemStatus) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "function_call",
            "call_id": self._call_id,
            "name": self._tool.name,
            **({"namespace": self._tool.namespace} if self._tool.namespace else {}),
            "arguments": "".join(self._texts),
            "status": status,
        }


class CustomCallOutput:
    """A call of a custom tool: its free text, unwrapped from the internal JSON form."""

    def __init__(
        self, writer: EventWriter, item_id: str, output_index: int, call: PartStarted, tool: Member
    ) -> None:
        self.id = item_id
        self.part_is_open = False
        self._writer = writer
        self._call_id = call.call_id or ""
        self._tool = tool
        self._at = {"item_id": item_id, "output_index": output_index}
        self._head = delta_head("response.custom_tool_call_input.delta", self._at)
        self._input = CustomInput()

    def takes(self, part: PartStarted) -> bool:
        return False

    def start(self, part: PartStarted) -> None:
        self.part_is_open = True

    def delta(self, text: str, extras: dict[str, Any] | None) -> None:
        self._write(self._input.feed(text))

    def end(self, ended: PartEnded) -> None:
        self.part_is_open = False
        self._write(self._input.close())
        self._writer.event(
            "response.custom_tool_call_input.done", {**self._at, "input": self._input.text}
        )

    def body(self, status: ItemStatus) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "custom_tool_call",
            "call_id": self._call_id,
            "name": self._tool.name,
            **({"namespace": self._tool.namespace} if self._tool.namespace else {}),
            "input": self._input.text,
            "status": status,
        }

    def _write(self, text: str) -> None:
        if text:
            self._writer.delta(self._head, text)
