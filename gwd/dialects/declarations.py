"""Tools as clients declare them, read alike at every address.

Agents send the form of one address to another: flat (`{type, name, parameters}`), nested (`{type, function: {…}}`), and
with the schema under either vendor's name for it. What differs between the dialects (cache marks, fields that only
their own family knows, tools that the vendor runs) stays with them.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, Final

import msgspec

from gwd.core.errors import InvalidValue, MissingParameter
from gwd.core.foreign_blocks import TOOL_REFERENCE
from gwd.core.request import CacheTtl, Extras, Message, Tool, ToolCallPart, ToolChoice
from gwd.dialects import json_input
from gwd.dialects.schemas import Schema, modern

FORMS: Final = ("function", "custom")
KNOWN_FIELDS: Final = frozenset(
    (
        *("type", "name", "description", "parameters", "input_schema", "strict", "format"),
        *("cache_control", "defer_loading", *FORMS),
    )
)
_SCHEMA_NAMES: Final = ("parameters", "input_schema")
_VENDOR_SEARCH: Final = "tool_search"


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the client's own in the flat form; `at` is where its fields stand, `inner` the object they stood in."""

    kind: str
    fields: dict[str, Any]
    at: str
    inner: str | None = None


class _Wire(msgspec.Struct, frozen=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    description: str | None = None
    strict: bool | None = None
    format: dict[str, Any] | None = None
    defer_loading: bool | None = None


def declaration(tool: dict[str, Any], path: str) -> Declaration | None:
    """A tool of the client's own; None for a kind that only a vendor runs, or that is no tool at all."""
    kind = tool.get("type")
    if kind is None:
        kind = next((form for form in FORMS if isinstance(tool.get(form), dict)), "function")
    if kind not in FORMS:
        return None
    inner = tool.get(kind)
    if isinstance(inner, dict):
        outer = {name: value for name, value in tool.items() if name != kind}
        return Declaration(kind=kind, fields={**outer, **inner}, at=f"{path}.{kind}", inner=kind)
    return Declaration(kind=kind, fields=tool, at=path)


def tool_of(
    declared: Declaration,
    *,
    free_text: bool,
    cache: CacheTtl | None,
    extras: Extras | None,
) -> Tool:
    """The tool; `free_text` tells that it takes a text and no arguments.

    Raises MissingParameter or InvalidValue with the path of the field.
    """
    fields = declared.fields
    wire = json_input.typed_at(declared.at, fields, _Wire)
    return Tool(
        name=wire.name,
        description=wire.description,
        parameters=None if free_text else _schema(fields, declared.at),
        strict=None if free_text else wire.strict,
        custom=free_text,
        grammar=wire.format if free_text else None,
        deferred=wire.defer_loading is True,
        cache=cache,
        extras=extras,
    )


def is_free_text(declared: Declaration) -> bool:
    """Whether a tool of kind `custom` is one without a schema: one dialect uses the word for tools with one, too."""
    return declared.kind == "custom" and not any(declared.fields.get(n) for n in _SCHEMA_NAMES)


def folded(tools: Iterable[tuple[str, Tool]]) -> dict[str, Tool]:
    """The tools by name, each once: vendors refuse a name that is declared twice.

    Equal declarations are one. Raises InvalidValue naming both places where two differ, since either may be meant.
    """
    found: dict[str, Tool] = {}
    places: dict[str, str] = {}
    for path, tool in tools:
        first = found.get(tool.name)
        if first is None:
            found[tool.name], places[tool.name] = tool, path
        elif _unmarked(first) != _unmarked(tool):
            raise InvalidValue(
                f"`{path}` declares the tool {tool.name!r} again, and differently from `{places[tool.name]}`:"
                " give the two different names, or leave one out",
                param=path,
            )
        elif tool.cache is not None:
            found[tool.name] = tool
    return found


def in_sight(
    tools: Sequence[Tool],
    *,
    kinds: Collection[str],
    choice: ToolChoice | None,
    messages: Sequence[Message],
    conversation: object,
) -> tuple[Tool, ...]:
    """The tools, those still deferred that vendors without deferring must not show.

    A tool is found by a reference in the `conversation` as it came, by an earlier call, or by the choice. `kinds` are
    the types of all tools: where the vendor itself would search, only it can find them, so nothing is hidden; nor where
    nothing would be left to search with.
    """
    if not tools:
        return ()
    deferred = {tool.name for tool in tools if tool.deferred}
    if not deferred:
        return tuple(tools)
    can_be_found = len(deferred) < len(tools) and not any(
        kind.startswith(_VENDOR_SEARCH) for kind in kinds
    )
    hidden = deferred - _found(choice, messages, conversation) if can_be_found else set()
    return tuple(
        tool
        if tool.deferred == (tool.name in hidden)
        else msgspec.structs.replace(tool, deferred=False)
        for tool in tools
    )


def flat_choice(choice: dict[str, Any]) -> dict[str, Any]:
    """A tool choice in the flat form, whichever of the two it came in."""
    kind = choice.get("type")
    inner = choice.get(kind) if isinstance(kind, str) else None
    flat = {**choice, **inner} if isinstance(inner, dict) else choice
    flat = {name: value for name, value in flat.items() if name != kind or value is not inner}
    flat["type"] = kind
    listed = flat.get("tools")
    if isinstance(listed, list):
        flat["tools"] = [flat_choice(each) if isinstance(each, dict) else each for each in listed]
    return flat


def _schema(fields: dict[str, Any], at: str) -> Schema | None:
    for name in _SCHEMA_NAMES:
        match fields.get(name):
            case None | bool():
                continue  # a boolean schema: any arguments, which is what no schema says
            case []:
                return {}  # a language whose empty object is an empty list
            case dict() as schema:
                return modern(schema)
            case _:
                raise InvalidValue(
                    f"`{at}.{name}` must be an object: a JSON schema of the arguments",
                    param=f"{at}.{name}",
                )
    return None


def _unmarked(tool: Tool) -> Tool:
    return msgspec.structs.replace(tool, cache=None) if tool.cache is not None else tool


def _found(
    choice: ToolChoice | None, messages: Sequence[Message], conversation: object
) -> set[str]:
    found = {
        part.name
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    if choice is not None:
        found.update((choice.name,) if choice.name else choice.allowed or ())
    level: list[Any] = [conversation]
    while level:
        value = level.pop()
        if isinstance(value, list):
            level += value
        elif isinstance(value, dict):
            if value.get("type") == TOOL_REFERENCE and isinstance(value.get("tool_name"), str):
                found.add(value["tool_name"])
            level += (each for each in value.values() if isinstance(each, dict | list))
    return found


def needed(declared: Declaration) -> None:
    """Raises MissingParameter naming the nested object, for a dialect whose own form is the nested one."""
    if declared.inner is None and "name" not in declared.fields:
        param = f"{declared.at}.{declared.kind}"
        raise MissingParameter(f"`{param}` is required", param=param)
