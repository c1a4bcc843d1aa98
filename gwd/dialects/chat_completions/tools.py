"""Tools and tool_choice of a chat request."""

from collections.abc import Sequence
from typing import Any, Final

from gwd.core.errors import InvalidValue, MissingParameter, UnsupportedTool
from gwd.core.request import Extras, Tool, ToolChoice
from gwd.dialects import json_input
from gwd.dialects.chat_completions.messages import ttl_of
from gwd.dialects.chat_completions.wire import (
    AllowedToolsWire,
    ChatWire,
    CustomToolWire,
    FunctionWire,
    ToolChoiceWire,
    ToolWire,
)
from gwd.dialects.schemas import without_nulls

_TOOL_FIELDS: Final = json_input.field_names(ToolWire)
_FUNCTION_FIELDS: Final = json_input.field_names(FunctionWire)
_CUSTOM_FIELDS: Final = json_input.field_names(CustomToolWire)


def tools_of(wires: Sequence[ToolWire], raw: Sequence[dict[str, Any]]) -> tuple[Tool, ...]:
    """Raises UnsupportedTool for anything but function and custom tools."""
    return tuple(
        _tool(wire, source, f"tools[{index}]")
        for index, (wire, source) in enumerate(zip(wires, raw, strict=True))
    )


def tool_choice_of(wire: ChatWire, tools: Sequence[Tool]) -> ToolChoice | None:
    """None without tools: a choice among nothing is left out. Raises InvalidValue for a tool that is not offered."""
    if not tools:
        return None
    choice = wire.tool_choice
    parallel = wire.parallel_tool_calls
    if choice is None:
        return None if parallel is None else ToolChoice(parallel=parallel)
    if isinstance(choice, str):
        choice = ToolChoiceWire(type=choice)
    offered = {tool.name for tool in tools}
    match choice.type:
        case "auto" | "none" | "required":
            return ToolChoice(mode=choice.type, parallel=parallel)
        case "any":
            return ToolChoice(mode="required", parallel=parallel)
        case "function" | "custom":
            named = choice.function or choice.custom
            if named is None:
                at = f"tool_choice.{choice.type}"
                raise MissingParameter(f"`{at}` is required", param=at)
            _check_offered(named.name, offered, f"tool_choice.{choice.type}.name")
            return ToolChoice(mode="named", name=named.name, parallel=parallel)
        case "allowed_tools" if choice.allowed_tools is not None:
            names = _allowed_names(choice.allowed_tools, offered)
            return ToolChoice(mode=choice.allowed_tools.mode, allowed=names, parallel=parallel)
        case _:
            raise InvalidValue(
                "`tool_choice` must be auto, none, required, a function or allowed_tools",
                param="tool_choice",
            )


def _tool(wire: ToolWire, raw: dict[str, Any], at: str) -> Tool:
    if wire.type == "function" and wire.function is not None:
        function = wire.function
        return Tool(
            name=function.name,
            description=function.description,
            parameters=without_nulls(function.parameters),
            strict=function.strict,
            cache=ttl_of(wire.cache_control or function.cache_control),
            extras=_extras(raw, raw["function"], "function", _FUNCTION_FIELDS),
        )
    if wire.type == "custom" and wire.custom is not None:
        return Tool(
            name=wire.custom.name,
            description=wire.custom.description,
            custom=True,
            grammar=wire.custom.format,
            cache=ttl_of(wire.cache_control or wire.custom.cache_control),
            extras=_extras(raw, raw["custom"], "custom", _CUSTOM_FIELDS),
        )
    if wire.type in ("function", "custom"):
        raise MissingParameter(f"`{at}.{wire.type}` is required", param=f"{at}.{wire.type}")
    raise UnsupportedTool(
        f"`{at}.type`: {wire.type!r} is not supported; declare a function", param=f"{at}.type"
    )


def _extras(
    raw: dict[str, Any], inner: dict[str, Any], name: str, known: frozenset[str]
) -> Extras | None:
    """Unknown fields of the tool, those of its function under the function's own name."""
    found = dict(json_input.extras(raw, _TOOL_FIELDS) or {})
    inside = json_input.extras(inner, known)
    if inside:
        found[name] = inside
    return found or None


def _allowed_names(wire: AllowedToolsWire, offered: set[str]) -> tuple[str, ...]:
    names = []
    for index, entry in enumerate(wire.tools):
        named = entry.function or entry.custom
        at = f"tool_choice.allowed_tools.tools[{index}]"
        if named is None:
            raise MissingParameter(f"`{at}.function` is required", param=f"{at}.function")
        _check_offered(named.name, offered, f"{at}.function.name")
        names.append(named.name)
    if not names:
        at = "tool_choice.allowed_tools.tools"
        raise InvalidValue(f"`{at}` must name at least one tool", param=at)
    return tuple(names)


def _check_offered(name: str, offered: set[str], at: str) -> None:
    if name not in offered:
        raise InvalidValue(f"`{at}`: no tool of that name is in `tools`", param=at)
