"""Server-sent events as a client sees them, and the derived objects of `client_stream`."""

import json
from collections.abc import Iterable
from typing import Any

from .assertions import compact_json, load_json, load_json_or_none

PROPER_ENDS = {"message_stop", "response.completed", "response.incomplete"}
Json = dict[str, Any]
Frame = tuple[int, str]  # (milliseconds since the request, data of the event)
START_TYPES = {"message_start", "response.created"}


class EventReader:
    """Bytes in, (at_ms, data) out, by the standard: an event counts when its blank line has come."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._rest = b""
        self._data: list[str] = []

    def feed(self, chunk: bytes, at_ms: int) -> list[Frame]:
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        before = len(self.frames)
        for line in lines:
            self._line(line.removesuffix(b"\r").decode("utf-8", "replace"), at_ms)
        return self.frames[before:]

    def _line(self, line: str, at_ms: int) -> None:
        if line == "" and self._data:
            self.frames.append((at_ms, "\n".join(self._data)))
            self._data = []
        elif line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))


def text_of(dialect: str, event: Any) -> str:
    """The text delta in one event, or the empty string."""
    if not isinstance(event, dict):
        return ""
    if dialect == "messages":
        delta = event.get("delta") if event.get("type") == "content_block_delta" else None
        return (delta or {}).get("text") or ""
    if dialect == "responses":
        return event.get("delta", "") if event.get("type") == "response.output_text.delta" else ""
    choice = _first_choice(event)
    return (choice.get("text") if dialect == "completions" else _delta(choice).get("content")) or ""


def client_stream(
    dialect: str,
    status: int | None,
    headers: dict[str, str],
    raw: str,
    frames: list[Frame],
) -> Json:
    """The root object of client_stream assertions; `frames` are (at_ms, data)."""
    events: list[Any] = []
    bad_data: list[str] = []
    first_text_ms: int | None = None
    for at_ms, data in frames:
        if data == "[DONE]":
            continue
        try:
            events.append(load_json(data))
        except ValueError:
            bad_data.append(data)
            continue
        if first_text_ms is None and text_of(dialect, events[-1]):
            first_text_ms = at_ms
    dicts = [event for event in events if isinstance(event, dict)]
    types = [event["type"] for event in dicts if "type" in event]
    terminal = types[-1] if types else None
    ends_with_done = bool(frames) and frames[-1][1] == "[DONE]"
    derive = {"messages": _messages, "responses": _responses}.get(dialect, _chat)
    return {
        "status": status,
        "headers": headers,
        "raw": raw,
        "events": events,
        "bad_data": bad_data,
        "types": types,
        "terminal": terminal,
        "objects": sorted({event["object"] for event in dicts if "object" in event}),
        "done": terminal in PROPER_ENDS if dialect in ("messages", "responses") else ends_with_done,
        "text": "".join(text_of(dialect, event) for event in dicts),
        "errors": _errors(dicts),
        "starts": sum(map(_is_start, dicts)),
        "receipt": next(filter(None, map(_receipt, reversed(dicts))), None),
        "first_text_ms": first_text_ms,
        **derive(dicts),
    }


def _first_choice(event: Json) -> Json:
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _delta(choice: Json) -> Json:
    return choice.get("delta") or {}


def _last(values: Iterable[Any]) -> Any:
    return next((value for value in reversed(list(values)) if value is not None), None)


def _chat(events: list[Json]) -> Json:
    """Chat and completions: calls joined strictly by index, the way clients concatenate strings."""
    calls: dict[Any, dict[str, str]] = {}
    for event in events:
        for part in _delta(_first_choice(event)).get("tool_calls") or []:
            call = calls.setdefault(part.get("index"), {"id": "", "name": "", "arguments": ""})
            function = part.get("function") or {}
            call["id"] += part.get("id") or ""
            call["name"] += function.get("name") or ""
            call["arguments"] += function.get("arguments") or ""
    return {
        "tool_calls": [{"index": index, **call} for index, call in calls.items()],
        "finish": _last(_first_choice(event).get("finish_reason") for event in events),
        "usage": _last(event.get("usage") for event in events),
    }


def _messages(events: list[Json]) -> Json:
    """Messages: content blocks rebuilt by index; usage of start and delta merged."""
    usage: Json = {}
    finish = None
    shelf = _Blocks()
    for event in events:
        shelf.feed(event)
        if event.get("type") == "message_start":
            usage |= (event.get("message") or {}).get("usage") or {}
        elif event.get("type") == "message_delta":
            counts = (event.get("usage") or {}).items()
            usage |= {key: value for key, value in counts if value is not None}
            finish = (event.get("delta") or {}).get("stop_reason") or finish
    return {
        "tool_calls": shelf.calls(),
        "blocks": list(shelf.blocks.values()),
        "block_order_ok": shelf.in_order,
        "finish": finish,
        "usage": usage or None,
    }


class _Blocks:
    """Content blocks of a messages stream: each started once, fed only while open, stopped before the end."""

    def __init__(self) -> None:
        self.blocks: dict[Any, Json] = {}
        self.in_order = True
        self._fragments: dict[Any, str] = {}
        self._open: set[Any] = set()

    def feed(self, event: Json) -> None:
        index = event.get("index")
        match event.get("type"):
            case "content_block_start":
                self.in_order &= index not in self.blocks
                self.blocks[index] = dict(event.get("content_block") or {})
                self._fragments[index] = ""
                self._open.add(index)
            case "content_block_delta":
                self.in_order &= index in self._open
                self._grow(index, event.get("delta") or {})
            case "content_block_stop":
                self.in_order &= index in self._open
                self._open.discard(index)
            case "message_delta":
                self.in_order &= not self._open
            case _:
                pass

    def calls(self) -> list[Json]:
        calls = []
        for index, block in self.blocks.items():
            if block.get("type") == "tool_use":
                arguments = self._fragments[index] or compact_json(block.get("input") or {})
                block["input"] = load_json_or_none(arguments)
                named = {"id": block.get("id"), "name": block.get("name")}
                calls.append({"index": index, **named, "arguments": arguments})
        return calls

    def _grow(self, index: Any, delta: Json) -> None:
        block = self.blocks.setdefault(index, {})
        for field in ("text", "thinking", "signature"):
            if field in delta:
                block[field] = (block.get(field) or "") + delta[field]
        self._fragments[index] = self._fragments.get(index, "") + delta.get("partial_json", "")


def _responses(events: list[Json]) -> Json:
    """Responses: calls joined by item; status and usage of the last response object."""
    calls: dict[Any, Json] = {}
    for event in events:
        kind, item = event.get("type"), event.get("item") or {}
        if kind == "response.output_item.added" and item.get("type") == "function_call":
            calls[item.get("id")] = {
                "index": event.get("output_index"),
                "id": item.get("call_id"),
                "name": item.get("name"),
                "arguments": item.get("arguments") or "",
            }
        elif kind == "response.function_call_arguments.delta" and event.get("item_id") in calls:
            calls[event["item_id"]]["arguments"] += event.get("delta") or ""
    objects = [event["response"] for event in events if isinstance(event.get("response"), dict)]
    return {
        "tool_calls": list(calls.values()),
        "finish": _last(response.get("status") for response in objects),
        "usage": _last(response.get("usage") for response in objects),
    }


def _errors(events: list[Json]) -> list[Any]:
    """Error objects; one that repeats the code and message of an earlier one is the same error."""
    found: dict[Any, Any] = {}
    for event in events:
        error = event.get("error") or (event.get("response") or {}).get("error")
        if event.get("type") == "error" and not error:
            error = {key: value for key, value in event.items() if key != "type"}
        if error:
            key = (
                (error.get("code"), error.get("message"))
                if isinstance(error, dict)
                else json.dumps(error)
            )
            found.setdefault(key, error)
    return list(found.values())


def _is_start(event: Json) -> bool:
    return (
        event.get("type") in START_TYPES or _delta(_first_choice(event)).get("role") == "assistant"
    )


def _receipt(value: Any) -> Any:
    """gateway_metadata wherever it sits."""
    if isinstance(value, dict):
        return value.get("gateway_metadata") or next(
            filter(None, map(_receipt, value.values())), None
        )
    if isinstance(value, list):
        return next(filter(None, map(_receipt, value)), None)
    return None
