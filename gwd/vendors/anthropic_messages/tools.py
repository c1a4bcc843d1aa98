"""Tools, the choice among them, and the answer format where the model has none of its own."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from gwd.core.request import Generate, Request, Tool, ToolCallPart
from gwd.core.target import Target
from gwd.vendors.anthropic_messages.content import Block, mark
from gwd.vendors.anthropic_messages.schemas import answer_schema
from gwd.vendors.schemas import FREE_TEXT, object_root
from gwd.vendors.tool_names import ToolNames

JSON_ONLY: Final = (
    "Answer with one valid JSON object and nothing else: no explanation and no code fence."
)
_ANSWER_TOOL: Final = "Give your final answer by calling this tool exactly once."


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a call and the choice among them; `forces` tells that the model may not answer with text."""

    tools: list[Block]
    choice: dict[str, Any] | None = None

    @property
    def forces(self) -> bool:
        return self.choice is not None and self.choice["type"] in ("any", "tool")


def names_of(request: Request) -> ToolNames:
    """The bijection of tool names for this request: the same for build and decode."""
    body = request.body
    assert isinstance(body, Generate)
    return ToolNames([tool.name for tool in body.tools])


def answer_tool(request: Request, target: Target) -> str | None:
    """The name of the tool whose input is the answer, where the model has no structured output of its own."""
    body = request.body
    assert isinstance(body, Generate)
    if not wants_schema(body) or has_native_schema(target) or not takes_tools(target):
        return None
    names = names_of(request)
    taken = {names.upstream(tool.name) for tool in body.tools}
    assert body.output is not None
    wanted = ToolNames([body.output.name or "response"]).upstream(body.output.name or "response")
    name = wanted
    while name in taken:
        name = f"{name[:57]}_answer"
    return name


def wants_schema(body: Generate) -> bool:
    return body.output is not None and body.output.kind == "json_schema"


def has_native_schema(target: Target) -> bool:
    native = target.flags.native_json_schema
    return "structured_outputs" in target.supported_parameters if native is None else native


def takes_tools(target: Target) -> bool:
    return "tools" in target.supported_parameters


def choose(request: Request, target: Target, names: ToolNames) -> Choice:
    """The tools and the choice as the client wants them, before conflicts with thinking are looked at."""
    body = request.body
    assert isinstance(body, Generate)
    own = request.family == "anthropic_messages"
    offered = _offered(body, own=own) if takes_tools(target) else ()
    tools = [_tool(tool, request, target, names) for tool in offered]
    if takes_tools(target):
        tools = _with_hosted(tools, request)
    choice = _choice(body, target, names) if tools else None
    answer = answer_tool(request, target)
    if answer is not None:
        assert body.output is not None
        tools.append(_answer(answer, body.output.schema or {}, body.output.description))
        choice = {"type": "any"} if len(tools) > 1 else {"type": "tool", "name": answer}
    if not tools and (history := _tools_of_history(body, names)):
        # The vendor wants tools declared while the history holds calls; nobody may use these.
        return Choice(tools=history, choice={"type": "none"})
    return Choice(tools=tools, choice=choice)


def output_format(request: Request, target: Target) -> dict[str, Any] | None:
    """The vendor's own structured output for this request."""
    body = request.body
    assert isinstance(body, Generate)
    if not wants_schema(body) or not has_native_schema(target):
        return None
    assert body.output is not None
    return {"type": "json_schema", "schema": answer_schema(body.output.schema or {})}


def _offered(body: Generate, *, own: bool) -> Iterable[Tool]:
    tools = body.tools if own else body.tools_in_sight
    allowed = body.tool_choice.allowed if body.tool_choice else None
    if allowed is None:
        return tools
    return [tool for tool in tools if tool.name in allowed]


def _tool(tool: Tool, request: Request, target: Target, names: ToolNames) -> Block:
    own = request.family == "anthropic_messages"
    block: Block = {"name": names.upstream(tool.name)}
    description = tool.description
    if tool.custom and tool.grammar:
        grammar = tool.grammar.get("definition")
        if isinstance(grammar, str):
            description = (
                f"{description or ''}\nThe input must follow this grammar:\n{grammar}".strip()
            )
    if description:
        block["description"] = description
    schema = dict(FREE_TEXT) if tool.custom else object_root(tool.parameters)
    if own:
        block["input_schema"] = schema
        if tool.strict is not None:
            block["strict"] = tool.strict
    else:
        strict = tool.strict is True and has_native_schema(target)
        block["input_schema"] = answer_schema(schema) if strict else schema
        if strict:
            block["strict"] = True
    if tool.cache is not None:
        block["cache_control"] = mark(tool.cache)
    return {**block, **tool.extras} if own and tool.extras else block


def _with_hosted(tools: list[Block], request: Request) -> list[Block]:
    """The client's own list in its order, where it names tools that the vendor runs."""
    listed = (request.extras or {}).get("tools")
    if request.family != "anthropic_messages" or not isinstance(listed, list):
        return tools
    built = iter(tools)
    merged = []
    for tool in listed:
        is_custom = tool.get("type") in (None, "custom", "function")
        merged.append(next(built) if is_custom else dict(tool))
    return merged


def _choice(body: Generate, target: Target, names: ToolNames) -> dict[str, Any] | None:
    wish = body.tool_choice
    if wish is None:
        return None
    supported = target.supported_parameters
    mode = wish.mode if "tool_choice" in supported else "auto"
    if wish.mode == "none":
        return {"type": "none"}
    choice: dict[str, Any] = {"type": "auto"}
    if mode == "required":
        choice = {"type": "any"}
    elif mode == "named" and wish.name:
        choice = {"type": "tool", "name": names.upstream(wish.name)}
    if wish.parallel is False and "parallel_tool_calls" in supported:
        choice["disable_parallel_tool_use"] = True
    return choice


def _answer(name: str, schema: dict[str, Any], description: str | None) -> Block:
    text = f"{description}\n{_ANSWER_TOOL}" if description else _ANSWER_TOOL
    return {"name": name, "description": text, "input_schema": object_root(schema)}


def _tools_of_history(body: Generate, names: ToolNames) -> list[Block]:
    called = dict.fromkeys(
        names.upstream(part.name)
        for message in body.messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
    )
    return [{"name": name, "input_schema": object_root(None)} for name in called]
