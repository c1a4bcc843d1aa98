"""Tools and tool_choice of a request: own tools stay, namespaces are flattened, hosted tools stand apart."""

from collections.abc import Callable, Sequence
from typing import Any, Final, assert_never

import msgspec

from gwd.core.errors import InvalidValue, MissingParameter, UnsupportedTool
from gwd.core.request import Tool, ToolChoice
from gwd.dialects import json_input
from gwd.dialects.responses.cache import cache_of
from gwd.dialects.responses.namespaces import PLAIN, Namespaces
from gwd.dialects.responses.paths import typed_at
from gwd.dialects.responses.wire import (
    AdditionalToolsItem,
    AllowedChoice,
    CustomTool,
    FunctionTool,
    NamedChoice,
    NamespaceTool,
)
from gwd.dialects.schemas import without_nulls

MAX_TOOLS: Final = 512
ADDITIONAL_TOOLS: Final = "additional_tools"
_OWN_KINDS: Final = ("function", "custom")
_OTHER_FIELDS: Final = frozenset(("type", "defer_loading", "cache_control"))
_FUNCTION_FIELDS: Final = json_input.field_names(FunctionTool) | _OTHER_FIELDS
_CUSTOM_FIELDS: Final = json_input.field_names(CustomTool) | _OTHER_FIELDS

Entry = tuple[str, str, dict[str, Any]]
"""Where a tool stands in the body, its type, and itself."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a request: `echo` is what the response repeats, `hosted` the tools that the
    vendor would run: only an endpoint that has a price for them is sent them."""

    tools: tuple[Tool, ...]
    namespaces: Namespaces
    echo: tuple[dict[str, Any], ...]
    hosted: tuple[dict[str, Any], ...]


def offer_of(
    wanted: Sequence[dict[str, Any]] | None, items: str | Sequence[dict[str, Any]] | None = None
) -> Offer:
    """Read the `tools` list and the tools that items of `input` add to it; of two with one name the later counts.

    A tool type that the vendor itself would run is never refused here: Codex always sends one.
    """
    listed = _entries("tools", wanted)
    entries = listed + _additional(items)
    namespaces = Namespaces(_plain_names(entries))
    tools: list[Tool] = []
    hosted: list[dict[str, Any]] = []
    for path, kind, tool in entries:
        match kind:
            case "function" | "custom":
                tools.append(_tool(path, kind, tool, lambda name: name))
            case "namespace":
                tools.extend(_members(path, tool, namespaces))
            case _:
                hosted.append(tool)
    if len(tools) > MAX_TOOLS:
        raise InvalidValue(f"`tools`: at most {MAX_TOOLS} tools", param="tools")
    return Offer(
        tools=tuple({tool.name: tool for tool in tools}.values()),
        namespaces=namespaces,
        echo=tuple(_echo(tool) for _, kind, tool in listed if _is_offered(kind, tool)),
        hosted=tuple(hosted),
    )


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
                raise _unsupported(offer.hosted[0]["type"])
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


def _entries(path: str, tools: Sequence[dict[str, Any]] | None) -> list[Entry]:
    places = ((f"{path}[{at}]", tool) for at, tool in enumerate(tools or ()))
    return [(place, _kind(place, tool), tool) for place, tool in places]


def _additional(items: str | Sequence[dict[str, Any]] | None) -> list[Entry]:
    """The tools of `additional_tools` items: newer agents offer all of theirs so."""
    entries: list[Entry] = []
    if not isinstance(items, str):
        for at, item in enumerate(items or ()):
            if item.get("type") == ADDITIONAL_TOOLS:
                added = typed_at(f"input[{at}]", item, AdditionalToolsItem)
                entries += _entries(f"input[{at}].tools", added.tools)
    return entries


def _plain_names(entries: Sequence[Entry]) -> set[str]:
    """The names that no joined one may shadow."""
    names = {str(tool.get("name")) for _, kind, tool in entries if kind in _OWN_KINDS}
    for path, kind, tool in entries:
        if kind == "namespace" and tool.get("name") == PLAIN:
            members = typed_at(path, tool, NamespaceTool).tools
            names |= {str(member.get("name")) for member in members}
    return names


def _is_offered(kind: str, tool: dict[str, Any]) -> bool:
    """Whether anything of an entry was kept."""
    if kind == "namespace":
        return any(member.get("type") in _OWN_KINDS for member in tool["tools"])
    return kind in _OWN_KINDS


def _members(path: str, tool: dict[str, Any], namespaces: Namespaces) -> list[Tool]:
    namespace = typed_at(path, tool, NamespaceTool)
    _need_name(path, namespace.name)
    members = []
    for at, member in enumerate(namespace.tools):
        where = f"{path}.tools[{at}]"
        kind = _kind(where, member)
        if kind in _OWN_KINDS:
            members.append(
                _tool(where, kind, member, lambda name: namespaces.add(namespace.name, name))
            )
    cache = cache_of(path, tool)
    if members and cache is not None:
        members[-1] = msgspec.structs.replace(members[-1], cache=cache)
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
            cache=cache_of(path, tool),
            extras=json_input.extras(tool, _CUSTOM_FIELDS),
        )
    function = typed_at(path, tool, FunctionTool)
    _need_name(path, function.name)
    return Tool(
        name=flat(function.name),
        description=function.description,
        parameters=without_nulls(function.parameters),
        strict=function.strict,
        cache=cache_of(path, tool),
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
