"""Function declarations and the choice among them."""

import re
from typing import Any, Final, assert_never

import msgspec

from gwd.core.request import Generate, Request, Tool, ToolChoice
from gwd.core.target import Target
from gwd.vendors.schemas import FREE_TEXT, object_root, without_draft
from gwd.vendors.tool_names import NameRule, ToolNames

Json = dict[str, Any]

NAMES: Final = NameRule(128, re.compile(r"[^a-zA-Z0-9_.:-]"), re.compile(r"[^a-zA-Z_]"))
# The model knows functions as members of this module, and at times calls them so.
_MODULE: Final = re.compile(r"default_api[.:]")


def tool_names(request: Request) -> ToolNames:
    """The bijection of this request's tool names: the same for build and decode."""
    tools = request.body.tools if isinstance(request.body, Generate) else ()
    return ToolNames((tool.name for tool in tools), rule=NAMES)


def called_name(name: str, names: ToolNames) -> str:
    """The client's name of what the model called; a module before the name is left out unless it was offered so."""
    if not names.offers(name) and (module := _MODULE.match(name)):
        bare = name[module.end() :]
        if names.offers(bare):
            return names.client(bare)
    return names.client(name)


def declaration(tool: Tool, names: ToolNames, *, is_own: bool) -> Json:
    """One function; a tool of free text is offered as a function of one string. `is_own`: its client speaks this
    format, so fields that we do not know belong here."""
    built: Json = {**((tool.extras or {}) if is_own else {}), "name": names.upstream(tool.name)}
    description = _with_grammar(tool) if tool.custom else tool.description
    if description:
        built["description"] = description
    schema = FREE_TEXT if tool.custom else _parameters(tool.parameters)
    if schema is not None:
        built["parametersJsonSchema"] = schema
    return built


def calling_config(body: Generate, target: Target, names: ToolNames) -> Json | None:
    """The `functionCallingConfig`; None leaves it at the vendor's default, which is auto."""
    choice = body.tool_choice or ToolChoice()
    if "tool_choice" not in target.supported_parameters and choice.mode != "none":
        choice = ToolChoice()
    if is_unforceable(choice, target):
        choice = ToolChoice()
    # Auto with schemas that bind, or among some of the tools only, has a mode of its own.
    auto = "VALIDATED" if any(tool.strict for tool in body.tools) else "AUTO"
    match choice.mode:
        case "none":
            return {"mode": "NONE"}
        case "named":
            return {"mode": "ANY", "allowedFunctionNames": [names.upstream(choice.name or "")]}
        case "auto" if choice.allowed is not None:
            return _among(choice.allowed, "VALIDATED", names)
        case "required" if choice.allowed is not None:
            return _among(choice.allowed, "ANY", names)
        case "required":
            return {"mode": "ANY"}
        case "auto":
            return {"mode": auto} if body.tool_choice or auto != "AUTO" else None
        case _:
            assert_never(choice.mode)


def is_unforceable(choice: ToolChoice, target: Target) -> bool:
    """Whether the client forces a call that this endpoint refuses to be forced to."""
    return target.flags.rejects_forced_tools and choice.mode in ("required", "named")


def _parameters(schema: Json | None) -> Json | None:
    """An object at the root; None where there is nothing to describe."""
    found = without_draft(object_root(schema, takes_unions=True))
    says_nothing = not found.get("properties") and not found.get("additionalProperties")
    if says_nothing and found.keys() <= {"type", "properties", "required", "additionalProperties"}:
        return None
    return found


def _among(allowed: tuple[str, ...], mode: str, names: ToolNames) -> Json:
    if not allowed:
        return {"mode": "NONE"}
    return {"mode": mode, "allowedFunctionNames": [names.upstream(name) for name in allowed]}


def _with_grammar(tool: Tool) -> str | None:
    if not tool.grammar:
        return tool.description
    shape = msgspec.json.encode(tool.grammar).decode()
    return f"{tool.description or ''}\nThe input must follow this format: {shape}".strip()
