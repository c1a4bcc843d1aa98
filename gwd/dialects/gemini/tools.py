"""Function declarations, tools that the vendor runs, and the choice among functions."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from gwd.core.errors import InvalidValue
from gwd.core.request import Extras, Tool, ToolChoice
from gwd.dialects import json_input
from gwd.dialects.declarations import Declaration, folded, tool_of
from gwd.dialects.gemini.schemas import json_schema
from gwd.dialects.gemini.wire import CallingConfigWire, ToolConfigWire

MAX_TOOLS: Final = 512
_DECLARATIONS: Final = "functionDeclarations"
_PLAIN: Final = frozenset(("name", "description"))
_KNOWN: Final = _PLAIN | {"parameters", "parametersJsonSchema"}
_MODES: Final = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
_CAPITAL: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def tools_of(tools: Sequence[dict[str, Any]]) -> tuple[Tool, ...]:
    """The client's functions. Raises MissingParameter or InvalidValue with the path of the field."""
    found = tuple(folded(_functions(tools)).values())
    if len(found) > MAX_TOOLS:
        raise InvalidValue(f"`tools`: at most {MAX_TOOLS} functions", param="tools")
    return found


def hosted_of(tools: Sequence[dict[str, Any]]) -> tuple[Extras, ...]:
    """Tools of the vendor's making, each with its type (`google_search`) beside its field."""
    return tuple(
        {"type": _snake(name), name: value}
        for tool in tools
        for name, value in tool.items()
        if name != _DECLARATIONS and value is not None
    )


def choice_of(config: ToolConfigWire | None, tools: Sequence[Tool]) -> ToolChoice | None:
    """None without tools: a choice among nothing is left out. Raises InvalidValue for an unknown mode or function."""
    wanted = config.function_calling_config if config is not None else None
    if wanted is None or not tools:
        return None
    at = "toolConfig.functionCallingConfig"
    mode = (wanted.mode or _MODES[0]).upper()
    if mode not in _MODES:
        raise InvalidValue(f"`{at}.mode` must be AUTO, ANY, NONE or VALIDATED", param=f"{at}.mode")
    allowed = _allowed(wanted, {tool.name for tool in tools}, f"{at}.allowedFunctionNames")
    match mode:
        case "NONE":
            return ToolChoice(mode="none")
        case "ANY" if allowed is not None and len(allowed) == 1:
            return ToolChoice(mode="named", name=allowed[0])
        case "ANY":
            return ToolChoice(mode="required", allowed=allowed)
        case "VALIDATED":
            return ToolChoice(mode="auto", allowed=allowed)
        case _:
            return ToolChoice(mode="auto")


def _functions(tools: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Tool]]:
    for index, tool in enumerate(tools):
        path = f"tools[{index}].{_DECLARATIONS}"
        for place, declared in enumerate(tool.get(_DECLARATIONS) or ()):
            at = f"{path}[{place}]"
            if not isinstance(declared, dict):
                raise InvalidValue(f"`{at}` must be an object", param=at)
            yield at, _function(declared, at)


def _function(declared: dict[str, Any], at: str) -> Tool:
    fields = {name: value for name, value in declared.items() if name in _PLAIN}
    own, open_api = declared.get("parametersJsonSchema"), declared.get("parameters")
    if own is not None:
        fields["parameters"] = own
    elif open_api is not None:
        fields["parameters"] = json_schema(open_api) if isinstance(open_api, dict) else open_api
    extras = json_input.extras(declared, _KNOWN)
    return tool_of(
        Declaration(kind="function", fields=fields, at=at),
        free_text=False,
        cache=None,
        extras=extras,
    )


def _allowed(wanted: CallingConfigWire, offered: set[str], at: str) -> tuple[str, ...] | None:
    names = tuple(dict.fromkeys(wanted.allowed_function_names or ()))
    for index, name in enumerate(names):
        if name not in offered:
            raise InvalidValue(
                f"`{at}[{index}]`: no function of that name is in `tools`", param=f"{at}[{index}]"
            )
    return names or None


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c in _CAPITAL else c for c in name)
