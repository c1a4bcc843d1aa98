"""Tools and tool_choice of a chat request."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gwd.core.errors import InvalidValue, MissingParameter, UnsupportedTool
from gwd.core.request import Extras, Message, Tool, ToolChoice
from gwd.dialects import json_input
from gwd.dialects.chat_completions.messages import ttl_of
from gwd.dialects.chat_completions.wire import CacheControlWire, ChatWire, ToolChoiceWire
from gwd.dialects.declarations import (
    FORMS,
    KNOWN_FIELDS,
    declaration,
    flat_choice,
    folded,
    in_sight,
    is_free_text,
    needed,
    tool_of,
)

_MODES: Final[dict[str, Any]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",
}


class _Marked(msgspec.Struct, frozen=True):
    cache_control: CacheControlWire | None = None


def tools_of(tools: Sequence[dict[str, Any]]) -> tuple[Tool, ...]:
    """Raises UnsupportedTool for anything but function and custom tools."""
    if not tools:
        return ()
    entries = ((f"tools[{index}]", tool) for index, tool in enumerate(tools))
    return tuple(folded((path, _tool(tool, path)) for path, tool in entries).values())


def visible(
    tools: tuple[Tool, ...],
    choice: ToolChoice | None,
    messages: Sequence[Message],
    raw: dict[str, Any],
) -> tuple[Tool, ...]:
    """The tools, with those that the model has yet to find told from the others."""
    return in_sight(tools, kinds=(), choice=choice, messages=messages, conversation=raw["messages"])


def tool_choice_of(wire: ChatWire, tools: Sequence[Tool]) -> ToolChoice | None:
    """None without tools: a choice among nothing is left out. Raises InvalidValue for a tool that is not offered."""
    if not tools:
        return None
    wanted = wire.tool_choice
    parallel = wire.parallel_tool_calls
    if wanted is None:
        return None if parallel is None else ToolChoice(parallel=parallel)
    choice = _choice(wanted)
    offered = {tool.name for tool in tools}
    match choice.type:
        case "auto" | "none" | "required" | "any":
            return ToolChoice(mode=_MODES[choice.type], parallel=parallel)
        case "function" | "custom" | "tool":
            at = _place(wanted, "tool_choice")
            if choice.name is None:
                raise MissingParameter(f"`{at}` is required", param=at)
            _check_offered(choice.name, offered, f"{at}.name")
            return ToolChoice(mode="named", name=choice.name, parallel=parallel)
        case "allowed_tools" if choice.tools is not None:
            names = _allowed_names(choice.tools, wanted, offered)
            mode = _MODES["required" if choice.mode == "required" else "auto"]
            return ToolChoice(mode=mode, allowed=names, parallel=parallel)
        case _:
            raise InvalidValue(
                "`tool_choice` must be auto, none, required, a function or allowed_tools",
                param="tool_choice",
            )


def _choice(wanted: str | dict[str, Any]) -> ToolChoiceWire:
    if isinstance(wanted, str):
        return ToolChoiceWire(type=wanted)
    return json_input.typed_at("tool_choice", flat_choice(wanted), ToolChoiceWire)


def _tool(tool: dict[str, Any], path: str) -> Tool:
    declared = declaration(tool, path)
    if declared is None:
        raise UnsupportedTool(
            f"`{path}.type`: {tool['type']!r} is not supported; declare a function",
            param=f"{path}.type",
        )
    needed(declared)
    marks = [json_input.typed_at(path, tool, _Marked).cache_control]
    if declared.inner is not None:
        marks.append(json_input.typed_at(declared.at, tool[declared.inner], _Marked).cache_control)
    return tool_of(
        declared,
        free_text=is_free_text(declared),
        cache=ttl_of(next((mark for mark in marks if mark is not None), None)),
        extras=_extras(tool, declared.inner),
    )


def _extras(tool: dict[str, Any], inner: str | None) -> Extras | None:
    """Unknown fields of the tool, those of its function under the function's own name."""
    found = dict(json_input.extras(tool, KNOWN_FIELDS) or {})
    inside = json_input.extras(tool[inner], KNOWN_FIELDS) if inner is not None else None
    if inner is not None and inside:
        found[inner] = inside
    return found or None


def _allowed_names(
    tools: Sequence[dict[str, Any]], wanted: str | dict[str, Any], offered: set[str]
) -> tuple[str, ...]:
    inside = isinstance(wanted, dict) and isinstance(wanted.get("allowed_tools"), dict)
    base = "tool_choice.allowed_tools.tools" if inside else "tool_choice.tools"
    names = []
    for index, entry in enumerate(tools):
        at = _place(entry, f"{base}[{index}]")
        name = entry.get("name")
        if not isinstance(name, str):
            raise MissingParameter(f"`{at}.name` is required", param=f"{at}.name")
        _check_offered(name, offered, f"{at}.name")
        names.append(name)
    if not names:
        raise InvalidValue(f"`{base}` must name at least one tool", param=base)
    return tuple(names)


def _place(wanted: str | dict[str, Any], at: str) -> str:
    """Where a choice names its tool: in the nested form inside an object of its own."""
    if isinstance(wanted, dict) and "name" not in wanted and wanted.get("type") in FORMS:
        return f"{at}.{wanted['type']}"
    return at


def _check_offered(name: str, offered: set[str], at: str) -> None:
    if name not in offered:
        raise InvalidValue(f"`{at}`: no tool of that name is in `tools`", param=at)
