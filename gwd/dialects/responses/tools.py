"""Tools and tool_choice of a request: own tools stay, namespaces are flattened, hosted tools are dropped."""

from collections.abc import Callable, Sequence
from typing import Any, Final, assert_never

import msgspec

from gwd.core.errors import InvalidValue, MissingParameter, UnsupportedTool
from gwd.core.request import Tool, ToolChoice
from gwd.dialects import json_input
from gwd.dialects.responses.namespaces import Namespaces
from gwd.dialects.responses.paths import typed_at
from gwd.dialects.responses.wire import (
    AllowedChoice,
    CustomTool,
    FunctionTool,
    NamedChoice,
    NamespaceTool,
)

MAX_TOOLS: Final = 512
_FUNCTION_FIELDS: Final = json_input.field_names(FunctionTool) | {"type", "defer_loading"}
_CUSTOM_FIELDS: Final = json_input.field_names(CustomTool) | {"type", "defer_loading"}


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a request: `echo` is what the response repeats, `hosted` the types that were dropped."""

    tools: tuple[Tool, ...]
    namespaces: Namespaces
    echo: tuple[dict[str, Any], ...]
    hosted: tuple[str, ...]


def offer_of(wanted: Sequence[dict[str, Any]] | None) -> Offer:
    """Read the `tools` list. A tool type that the vendor itself would run is dropped, not refused: Codex always
    sends one (api.md 3.5)."""
    entries = [
        (f"tools[{at}]", _kind(f"tools[{at}]", tool), tool) for at, tool in enumerate(wanted or ())
    ]
    namespaces = Namespaces(
        str(tool.get("name")) for _, kind, tool in entries if kind in ("function", "custom")
    )
    tools: list[Tool] = []
    echo: list[dict[str, Any]] = []
    hosted: list[str] = []
    for path, kind, tool in entries:
        match kind:
            case "function" | "custom":
                tools.append(_tool(path, kind, tool, lambda name: name))
                echo.append(_echo(tool))
            case "namespace":
                members = _members(path, tool, namespaces)
                tools.extend(members)
                if members:
                    echo.append(_echo(tool))
            case _:
                hosted.append(kind)
    if len(tools) > MAX_TOOLS:
        raise InvalidValue(f"`tools`: at most {MAX_TOOLS} tools", param="tools")
    return Offer(tools=tuple(tools), namespaces=namespaces, echo=tuple(echo), hosted=tuple(hosted))


def choice_of(
    wanted: str | dict[str, Any] | None, *, parallel: bool | None, offer: Offer
) -> ToolChoice | None:
    """Read `tool_choice` and `parallel_tool_calls`. Without tools both mean nothing and are left out.

    Raises UnsupportedTool when a hosted tool is forced, InvalidValue for a tool that is not on offer.
    """
    match wanted:
        case None:
            choice = ToolChoice()
        case "auto" | "none":
            choice = ToolChoice(mode=wanted)
        case "required":
            if offer.hosted and not offer.tools:
                raise _unsupported(offer.hosted[0])
            choice = ToolChoice(mode="required")
        case str():
            raise InvalidValue(
                "`tool_choice` must be auto, none, required or an object", param="tool_choice"
            )
        case dict():
            choice = _object_choice(wanted, offer)
        case _:
            assert_never(wanted)
    if not offer.tools or (wanted is None and parallel is None):
        return None
    return msgspec.structs.replace(choice, parallel=parallel)


def _object_choice(wanted: dict[str, Any], offer: Offer) -> ToolChoice:
    kind = _kind("tool_choice", wanted)
    match kind:
        case "function" | "custom":
            named = typed_at("tool_choice", wanted, NamedChoice)
            return ToolChoice(mode="named", name=_known("tool_choice", named, offer))
        case "namespace":
            named = typed_at("tool_choice", wanted, NamedChoice)
            return ToolChoice(
                mode="required", allowed=_whole_namespace("tool_choice", named, offer)
            )
        case "allowed_tools":
            return _allowed_choice(typed_at("tool_choice", wanted, AllowedChoice), offer)
        case _:
            raise _unsupported(kind)


def _allowed_choice(choice: AllowedChoice, offer: Offer) -> ToolChoice:
    allowed: list[str] = []
    hosted: str | None = None
    for at, entry in enumerate(choice.tools):
        path = f"tool_choice.tools[{at}]"
        match _kind(path, entry):
            case "function" | "custom":
                allowed.append(_known(path, typed_at(path, entry, NamedChoice), offer))
            case "namespace":
                allowed.extend(_whole_namespace(path, typed_at(path, entry, NamedChoice), offer))
            case kind:
                hosted = kind
    if allowed:
        return ToolChoice(mode=choice.mode, allowed=tuple(dict.fromkeys(allowed)))
    if choice.mode == "required":
        if hosted is not None:
            raise _unsupported(hosted)
        raise InvalidValue(
            "`tool_choice.tools` must name at least one tool", param="tool_choice.tools"
        )
    return ToolChoice(mode="none")


def _known(path: str, named: NamedChoice, offer: Offer) -> str:
    flat = offer.namespaces.flat(named.namespace, named.name)
    if offer.tools and all(tool.name != flat for tool in offer.tools):
        raise InvalidValue(f"`{path}.name`: {named.name!r} is not in `tools`", param=f"{path}.name")
    return flat


def _whole_namespace(path: str, named: NamedChoice, offer: Offer) -> tuple[str, ...]:
    members = offer.namespaces.members_of(named.name)
    if not members and offer.tools:
        raise InvalidValue(f"`{path}.name`: {named.name!r} is not in `tools`", param=f"{path}.name")
    return members


def _members(path: str, tool: dict[str, Any], namespaces: Namespaces) -> list[Tool]:
    namespace = typed_at(path, tool, NamespaceTool)
    _need_name(path, namespace.name)
    members = []
    for at, member in enumerate(namespace.tools):
        where = f"{path}.tools[{at}]"
        kind = _kind(where, member)
        if kind in ("function", "custom"):
            members.append(
                _tool(where, kind, member, lambda name: namespaces.add(namespace.name, name))
            )
    return members


def _tool(path: str, kind: str, tool: dict[str, Any], flat: Callable[[str], str]) -> Tool:
    if kind == "custom":
        custom = typed_at(path, tool, CustomTool)
        _need_name(path, custom.name)
        return Tool(
            name=flat(custom.name),
            description=custom.description,
            custom=True,
            grammar=custom.format,
            extras=json_input.extras(tool, _CUSTOM_FIELDS),
        )
    function = typed_at(path, tool, FunctionTool)
    _need_name(path, function.name)
    return Tool(
        name=flat(function.name),
        description=function.description,
        parameters=function.parameters,
        strict=function.strict,
        extras=json_input.extras(tool, _FUNCTION_FIELDS),
    )


def _echo(tool: dict[str, Any]) -> dict[str, Any]:
    """The tool as the response repeats it; SDK models want these keys on every function."""
    if tool["type"] == "function":
        return {"description": None, "parameters": None, "strict": None, **tool}
    return tool


def _kind(path: str, value: dict[str, Any]) -> str:
    kind = value.get("type")
    if kind is None:
        raise MissingParameter(f"`{path}.type` is required", param=f"{path}.type")
    if not isinstance(kind, str):
        raise InvalidValue(f"`{path}.type` must be a string", param=f"{path}.type")
    return kind


def _need_name(path: str, name: str) -> None:
    if not name:
        raise InvalidValue(f"`{path}.name` must not be empty", param=f"{path}.name")


def _unsupported(kind: str) -> UnsupportedTool:
    return UnsupportedTool(
        f"`tool_choice` forces the hosted tool {kind!r}, which is not available here; "
        "offer a function tool instead",
        param="tool_choice",
    )
