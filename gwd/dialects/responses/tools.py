"""Tools and tool_choice of a request: own tools stay, namespaces are flattened, hosted tools stand apart."""

from collections.abc import Callable, Sequence
from typing import Any, Final, assert_never

import msgspec

from gwd.core.errors import InvalidValue, MissingParameter, UnsupportedTool
from gwd.core.request import Tool, ToolChoice
from gwd.dialects import json_input
from gwd.dialects.declarations import (
    FORMS,
    KNOWN_FIELDS,
    declaration,
    flat_choice,
    folded,
    is_free_text,
    tool_of,
)
from gwd.dialects.json_input import typed_at
from gwd.dialects.responses.cache import cache_of
from gwd.dialects.responses.namespaces import PLAIN, Namespaces
from gwd.dialects.responses.wire import (
    AdditionalToolsItem,
    AllowedChoice,
    NamedChoice,
    NamespaceTool,
)

MAX_TOOLS: Final = 512
ADDITIONAL_TOOLS: Final = "additional_tools"
_TOOL_FIELDS: Final = ("function", "custom", "parameters", "input_schema")

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
    """Read the `tools` list and the tools that items of `input` add to it; what a later list says of a name counts.

    A tool type that the vendor itself would run is never refused here: Codex always sends one.
    """
    listed = _entries("tools", wanted)
    lists = [listed, *_additional(items)]
    namespaces = Namespaces(_plain_names([entry for entries in lists for entry in entries]))
    tools: dict[str, Tool] = {}
    hosted: list[dict[str, Any]] = []
    count = 0
    for entries in lists:
        own: list[tuple[str, Tool]] = []
        for path, kind, tool in entries:
            match kind:
                case "function" | "custom":
                    own.append((path, _tool(path, tool, lambda name: name)))
                case "namespace":
                    own.extend(_members(path, tool, namespaces))
                case _:
                    hosted.append(tool)
        count += len(own)
        tools |= folded(own)
    if count > MAX_TOOLS:
        raise InvalidValue(f"`tools`: at most {MAX_TOOLS} tools", param="tools")
    return Offer(
        tools=tuple(tools.values()),
        namespaces=namespaces,
        echo=tuple(_echo(kind, tool) for _, kind, tool in listed if _is_offered(kind, tool)),
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
        case "required" | "any":
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
    wanted = flat_choice(wanted)
    kind = _kind("tool_choice", wanted)
    match kind:
        case "auto" | "none":
            return ToolChoice(mode=kind)
        case "required" | "any":
            return ToolChoice(mode="required")
        case "function" | "custom" | "tool":
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
    return [(place, _tool_kind(place, tool), tool) for place, tool in places]


def _additional(items: str | Sequence[dict[str, Any]] | None) -> list[list[Entry]]:
    """The tools of `additional_tools` items: newer agents offer all of theirs so."""
    lists: list[list[Entry]] = []
    if not isinstance(items, str):
        for at, item in enumerate(items or ()):
            if item.get("type") == ADDITIONAL_TOOLS:
                added = typed_at(f"input[{at}]", item, AdditionalToolsItem)
                lists.append(_entries(f"input[{at}].tools", added.tools))
    return lists


def _plain_names(entries: Sequence[Entry]) -> set[str]:
    """The names that no joined one may shadow."""
    names = {_name(tool) for _, kind, tool in entries if kind in FORMS}
    for path, kind, tool in entries:
        if kind == "namespace" and tool.get("name") == PLAIN:
            members = typed_at(path, tool, NamespaceTool).tools
            names |= {_name(member) for member in members}
    return names


def _name(tool: dict[str, Any]) -> str:
    declared = declaration(tool, "")
    return str(declared.fields.get("name")) if declared is not None else ""


def _is_offered(kind: str, tool: dict[str, Any]) -> bool:
    """Whether anything of an entry was kept."""
    if kind == "namespace":
        return any(member.get("type") in FORMS for member in tool["tools"])
    return kind in FORMS


def _members(path: str, tool: dict[str, Any], namespaces: Namespaces) -> list[tuple[str, Tool]]:
    namespace = typed_at(path, tool, NamespaceTool)
    if not namespace.name:
        raise InvalidValue(f"`{path}.name` must not be empty", param=f"{path}.name")
    members: list[tuple[str, Tool]] = []
    for at, member in enumerate(namespace.tools):
        where = f"{path}.tools[{at}]"
        if _tool_kind(where, member) in FORMS:
            read = _tool(where, member, lambda name: namespaces.add(namespace.name, name))
            members.append((where, read))
    cache = cache_of(path, tool)
    if members and cache is not None:
        where, last = members[-1]
        members[-1] = (where, msgspec.structs.replace(last, cache=cache))
    return members


def _tool(path: str, tool: dict[str, Any], flat: Callable[[str], str]) -> Tool:
    declared = declaration(tool, path)
    assert declared is not None
    read = tool_of(
        declared,
        free_text=is_free_text(declared),
        cache=cache_of(declared.at, declared.fields),
        extras=json_input.extras(declared.fields, KNOWN_FIELDS),
    )
    return msgspec.structs.replace(read, name=flat(read.name))


def _echo(kind: str, tool: dict[str, Any]) -> dict[str, Any]:
    """The tool as the response repeats it, in the flat form; SDK models want these keys on every function."""
    declared = declaration(tool, "")
    if declared is None:
        return tool
    flat = {**declared.fields, "type": kind}
    if kind != "function":
        return flat
    return {"description": None, "parameters": None, "strict": None, **flat}


def _tool_kind(path: str, tool: dict[str, Any]) -> str:
    """The kind of a tool, told by its other fields where a client of another address leaves it out."""
    if tool.get("type") is None and not tool.keys().isdisjoint(_TOOL_FIELDS):
        return "custom" if isinstance(tool.get("custom"), dict) else "function"
    return _kind(path, tool)


def _kind(path: str, value: dict[str, Any]) -> str:
    kind = value.get("type")
    if kind is None:
        raise MissingParameter(f"`{path}.type` is required", param=f"{path}.type")
    if not isinstance(kind, str):
        raise InvalidValue(f"`{path}.type` must be a string", param=f"{path}.type")
    return kind


def _unsupported(kind: str) -> UnsupportedTool:
    return UnsupportedTool(
        f"`tool_choice` forces the hosted tool {kind!r}, which is not available here; "
        "offer a function tool instead",
        param="tool_choice",
    )
