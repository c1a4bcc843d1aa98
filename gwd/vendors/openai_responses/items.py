"""Output items of an answer, found again by id or index, and the parts they turn into.

Ids and indices of servers are hints at best: some send index 0 for every item, some a new id with every event. An id
that is known wins, an index comes second, and an item that is announced is always a new one.
"""

from typing import Any, Final

import msgspec

from gwd.core import ids
from gwd.core.events import PartStarted
from gwd.core.vendor_items import is_vendor_item
from gwd.vendors.openai_responses.format import SIGNATURE_FORMAT
from gwd.vendors.openai_responses.parts import Parts, Slot, logprobs_of
from gwd.vendors.tool_names import ToolNames

_ENCODE: Final = msgspec.json.Encoder().encode
_CALLS: Final = ("function_call", "custom_tool_call")


class Item:
    """One output item; `slots` are its parts by content index (calls and reasoning have one, at 0)."""

    __slots__ = ("call_id", "id", "is_done", "kind", "last_piece", "name", "slots")

    def __init__(self, kind: str, fields: dict[str, Any]) -> None:
        self.kind = kind
        self.id = _text(fields.get("id"))
        self.call_id = _text(fields.get("call_id"))
        self.name = _text(fields.get("name"))
        self.slots: dict[int, Slot] = {}
        self.last_piece: tuple[str, int] | None = None
        self.is_done = False


class Items:
    """All items of one answer. Calls that the vendor runs itself are shown where it was asked to run them."""

    def __init__(self, parts: Parts, names: ToolNames, *, runs_tools: bool = False) -> None:
        self._searches: set[str] = set()
        self._runs_tools = runs_tools
        self._parts = parts
        self._names = names
        self._by_id: dict[str, Item] = {}
        self._by_index: dict[int, Item] = {}
        self._call_ids: set[str] = set()
        self.has_whole_call = False

    @property
    def searches(self) -> int:
        """How many searches the vendor has run for this answer."""
        return len(self._searches)

    def add(self, fields: dict[str, Any], output_index: object) -> Item:
        """An item that the vendor announces."""
        item = Item(_text(fields.get("type")) or "", fields)
        if item.id is not None:
            self._by_id[item.id] = item
        if type(output_index) is int:
            self._by_index[output_index] = item
        if item.kind in _CALLS and item.name is not None:
            self._open_call(item)
            if item.kind == "function_call":
                self._parts.complete(item.slots[0], fields.get("arguments"))
            else:
                self.custom_input(item, fields.get("input"), whole=True)
        return item

    def find(self, item_id: object, output_index: object) -> Item | None:
        known = self._by_id.get(item_id) if isinstance(item_id, str) else None
        if known is None and type(output_index) is int:
            known = self._by_index.get(output_index)
        return known

    def find_or_add(self, kind: str, item_id: object, output_index: object) -> Item:
        """The item that an event speaks of; a server may leave out its announcement."""
        found = self.find(item_id, output_index)
        if found is not None and found.kind == kind:
            return found
        return self.add({"type": kind, "id": item_id}, output_index)

    def text_slot(self, item: Item, content_index: object, kind: str) -> Slot:
        """The part at a place of a message."""
        place = content_index if type(content_index) is int else 0
        slot = item.slots.get(place)
        if slot is None:
            opening = PartStarted(0, "refusal" if kind == "refusal" else "text")
            slot = item.slots[place] = self._parts.open(opening)
        return slot

    def reasoning(self, item: Item, text: str, *, kind: str, place: object) -> None:
        """A piece of reasoning. Where a server sends summary and raw text of one item, the first kind counts."""
        slot = item.slots.get(0)
        if slot is None:
            if not text:
                return
            slot = self._open_reasoning(item, is_summary=kind == "summary")
        at = place if type(place) is int else 0
        if slot.opening.summary != (kind == "summary"):
            return
        if item.last_piece is not None and item.last_piece[1] != at:
            self._parts.feed(slot, "\n\n")
        item.last_piece = (kind, at)
        self._parts.feed(slot, text)

    def custom_input(self, item: Item, text: object, *, whole: bool = False) -> None:
        """Free text of a custom call, wrapped as the value of `input` in JSON while it streams."""
        slot = item.slots.get(0)
        if slot is None or not isinstance(text, str) or slot.is_closed or not text:
            return
        if whole and slot.length:
            return
        if not slot.length:
            self._parts.feed(slot, '{"input":"')
        self._parts.feed(slot, _ENCODE(text).decode()[1:-1])

    def finish(self, fields: dict[str, Any], output_index: object) -> None:
        """An item that is complete: fill in what its deltas left out, and close its parts."""
        item = self.find(fields.get("id"), output_index)
        if item is None or item.is_done or item.kind != fields.get("type"):
            item = self.add(fields, output_index)
        item.is_done = True
        if item.kind == "web_search_call" and _is_search(fields):
            # A call may stand in an event of its own and once more in the answer as a whole.
            self._searches.add(item.id or f"{len(self._searches)}")
        match item.kind:
            case "message":
                self._finish_message(item, fields)
            case "function_call" | "custom_tool_call":
                self._finish_call(item, fields)
                self.has_whole_call = self.has_whole_call or fields.get("status") != "incomplete"
            case "reasoning":
                self._finish_reasoning(item, fields)
            case kind if is_vendor_item(kind) or (self._runs_tools and kind.endswith("_call")):
                item.slots[0] = self._parts.open(PartStarted(0, "text", item=fields))
            case _:
                pass  # None of the tools that the vendor runs itself were asked for.
        for slot in item.slots.values():
            self._parts.close(slot)

    def _finish_message(self, item: Item, fields: dict[str, Any]) -> None:
        for place, part in enumerate(_dicts(fields.get("content"))):
            kind = part.get("type")
            if kind == "output_text":
                slot = self.text_slot(item, place, "text")
                self._parts.complete(slot, part.get("text"), logprobs_of(part.get("logprobs")))
                if not slot.annotations:
                    slot.annotations += _dicts(part.get("annotations"))
            elif kind == "refusal":
                self._parts.complete(self.text_slot(item, place, "refusal"), part.get("refusal"))

    def _finish_call(self, item: Item, fields: dict[str, Any]) -> None:
        if 0 not in item.slots:
            item.name = item.name or _text(fields.get("name")) or ""
            item.call_id = item.call_id or _text(fields.get("call_id"))
            self._open_call(item)
        slot = item.slots[0]
        if item.kind == "function_call":
            arguments = fields.get("arguments")
            whole = _ENCODE(arguments).decode() if isinstance(arguments, dict) else arguments
            self._parts.complete(slot, whole)
            return
        self.custom_input(item, fields.get("input"), whole=True)
        self._parts.feed(slot, '"}' if slot.length else '{"input":""}')

    def _finish_reasoning(self, item: Item, fields: dict[str, Any]) -> None:
        sealed = _text(fields.get("encrypted_content"))
        summary = _texts(fields.get("summary"))
        raw = _texts(fields.get("content"))
        slot = item.slots.get(0)
        if slot is None:
            if not (sealed or summary or raw):
                return
            slot = self._open_reasoning(item, is_summary=bool(summary) or not raw)
            self._parts.feed(slot, summary or raw)
        slot.signature = sealed

    def _open_reasoning(self, item: Item, *, is_summary: bool) -> Slot:
        opening = PartStarted(
            0, "reasoning", format=SIGNATURE_FORMAT, summary=is_summary, item_id=item.id
        )
        slot = item.slots[0] = self._parts.open(opening)
        return slot

    def _open_call(self, item: Item) -> None:
        call_id = item.call_id or item.id
        if call_id is None or call_id in self._call_ids:
            call_id = ids.mint("call_")
        self._call_ids.add(call_id)
        name = self._names.client(item.name or "")
        item.slots[0] = self._parts.open(PartStarted(0, "tool_call", call_id=call_id, name=name))


def _is_search(fields: dict[str, Any]) -> bool:
    """Whether a call of the vendor's web search is one that it bills: opening a page it found is free."""
    action = fields.get("action")
    kind = action.get("type") if isinstance(action, dict) else None
    return kind in (None, "search") and fields.get("status") != "failed"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _dicts(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _texts(value: object) -> str:
    return "\n\n".join(text for entry in _dicts(value) if (text := _text(entry.get("text"))))
