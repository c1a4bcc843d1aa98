"""A messages body and its headers to a Request.

What an agent adds is kept, never refused: unknown fields, thinking kinds and block kinds go to `extras`, together with
the fields whose exact form matters to their own vendor (`thinking`, `output_config`, `metadata`, tools it runs).
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

import msgspec

from gwd.core.errors import (
    InvalidRequest,
    InvalidValue,
    MissingParameter,
    UnknownParameter,
)
from gwd.core.request import (
    EFFORTS,
    Effort,
    Extras,
    Generate,
    Message,
    OutputFormat,
    Reasoning,
    Request,
    Sampling,
    Sender,
    Tool,
    ToolChoice,
)
from gwd.dialects import json_input
from gwd.dialects.declarations import declaration, folded, in_sight, is_free_text, tool_of
from gwd.dialects.extensions import (
    clean_text,
    models_of,
    preferences_of,
    sender_of,
    wants_cost,
    wants_receipt,
)
from gwd.dialects.messages.blocks import (
    cache_of,
    extras_of_tool,
    message_parts,
    system_parts,
    typed_at,
)
from gwd.dialects.messages.threads import refuse_thread
from gwd.dialects.messages.wire import (
    CountBody,
    FormatWire,
    MessagesBody,
    MessageWire,
    ToolChoiceWire,
    ToolWire,
)
from gwd.dialects.schemas import modern
from gwd.dialects.sizes import checked_messages, checked_stops

MAX_FALLBACKS: Final = 3
MAX_TOOLS: Final = 512

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
# Read into the Request's own fields; everything else travels in `extras` to its own family.
_READ: Final = json_input.field_names(MessagesBody) - {
    "thinking",
    "output_config",
    "output_format",
    "metadata",
}
# Fields that other routers define for themselves: no vendor knows them, so they are never sent on.
_ROUTER_FIELDS: Final = frozenset(
    ("transforms", "plugins", "route", "preset", "debug", "trace", "image_config")
)
# What a message holds that the client knows, and what an answer holds that some clients replay whole.
_MESSAGE_FIELDS: Final = json_input.field_names(MessageWire) | {
    "id",
    "type",
    "model",
    "provider",
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "usage",
    "container",
    "context_management",
    "diagnostics",
    "gateway_metadata",
}
_MODES: Final[dict[str, Any]] = {"auto": "auto", "any": "required", "tool": "named", "none": "none"}


def parse(body: bytes, headers: Mapping[str, str]) -> Request:
    """A request for an answer. Raises InvalidRequest subclasses with `param` naming the field."""
    raw = json_input.load(body)
    wire = json_input.typed(raw, MessagesBody)
    _check_numbers(wire)
    return _request(wire, raw, headers, len(body))


def parse_count(body: bytes, headers: Mapping[str, str]) -> Request:
    """A request for a token count: the same body, of which only what the model would read matters."""
    raw = json_input.load(body)
    return _request(json_input.typed(raw, CountBody), raw, headers, len(body))


def _request(
    wire: CountBody, raw: dict[str, Any], headers: Mapping[str, str], body_bytes: int
) -> Request:
    refuse_thread(raw)
    full = wire if isinstance(wire, MessagesBody) else MessagesBody(messages=[])
    tools = _tools(wire.tools)
    choice = _tool_choice(wire.tool_choice, wire.tools)
    reasoning = _reasoning(wire)
    output = _output(wire)
    sampling = Sampling(
        temperature=full.temperature,
        top_p=full.top_p,
        top_k=full.top_k,
        stop=checked_stops(tuple(full.stop_sequences or ()), "stop_sequences"),
    )
    messages = _messages(wire, raw)
    generate = Generate(
        messages=messages,
        tools=in_sight(
            tuple(tools.values()),
            kinds=[str(tool.get("type")) for tool in wire.tools or ()],
            choice=choice,
            messages=messages,
            conversation=raw["messages"],
        ),
        tool_choice=choice,
        sampling=sampling,
        reasoning=reasoning,
        output=output,
        max_output_tokens=full.max_tokens,
    )
    return Request(
        dialect="messages",
        family="anthropic_messages",
        models=models_of(wire.model, _fallback_models(wire)),
        body=generate,
        preferences=preferences_of(wire.provider),
        stream=full.stream is True,
        include_cost=wants_cost(wire.usage),
        include_receipt=wants_receipt(headers),
        sender=_sender(wire, headers),
        sent_parameters=_sent(generate),
        vendor_headers=_vendor_headers(headers),
        extras=_extras(raw, wire.tools, tools),
        body_bytes=body_bytes,
    )


def _check_numbers(wire: MessagesBody) -> None:
    for name, value, low, high in (
        ("max_tokens", wire.max_tokens, 0, None),
        ("temperature", wire.temperature, 0, 2),
        ("top_p", wire.top_p, 0, 1),
        ("top_k", wire.top_k, 0, None),
    ):
        if value is not None and (value < low or (high is not None and value > high)):
            span = f"at least {low}" if high is None else f"between {low} and {high}"
            raise InvalidValue(f"`{name}` must be {span}", param=name)


def _messages(wire: CountBody, raw: dict[str, Any]) -> tuple[Message, ...]:
    if not wire.messages:
        raise InvalidValue("`messages` must hold at least one message", param="messages")
    messages = []
    system = system_parts(wire.system)
    if system:
        messages.append(Message(role="system", parts=system))
    for index, message in enumerate(wire.messages):
        path = f"messages[{index}]"
        messages.append(
            Message(
                role=message.role,
                parts=message_parts(message.content, role=message.role, path=path),
                extras=_message_extras(raw["messages"][index]),
            )
        )
    return checked_messages(tuple(messages), "messages")


def _message_extras(raw: dict[str, Any]) -> Extras | None:
    found = json_input.extras(raw, _MESSAGE_FIELDS) or {}
    return {name: value for name, value in found.items() if value is not None} or None


def _tools(tools: list[dict[str, Any]] | None) -> dict[str, Tool]:
    """The client's own tools by name. Tools of the vendor's making have a type of their own: see `_extras`."""
    if tools is None:
        return {}
    if len(tools) > MAX_TOOLS:
        raise InvalidValue(f"`tools`: at most {MAX_TOOLS} tools", param="tools")
    entries = ((f"tools[{index}]", tool) for index, tool in enumerate(tools))
    return folded((path, _tool(tool, path)) for path, tool in entries if not _is_hosted(tool))


def _tool(tool: dict[str, Any], path: str) -> Tool:
    declared = declaration(tool, path)
    assert declared is not None
    fields = declared.fields
    wire = typed_at(fields, ToolWire, declared.at)
    return tool_of(
        declared,
        # Here the word `custom` means a tool with a schema, in the flat form at least.
        free_text=declared.inner == "custom" and is_free_text(declared),
        cache=cache_of(wire.cache_control),
        extras=extras_of_tool(fields),
    )


def _listed(tools: list[dict[str, Any]], own: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """The client's list for its own vendor, in its order, without what declares one of its own tools again."""
    waiting = set(own)
    listed = []
    for tool in tools:
        if not _is_hosted(tool):
            declared = declaration(tool, "tools")
            name = declared.fields["name"] if declared is not None else None
            if name not in waiting:
                continue
            waiting.remove(name)
        listed.append(tool)
    return listed


def _is_hosted(tool: dict[str, Any]) -> bool:
    return tool.get("type") not in (None, "custom", "function")


def _tool_choice(
    choice: ToolChoiceWire | None, tools: list[dict[str, Any]] | None
) -> ToolChoice | None:
    if choice is None or not tools:
        return None
    if choice.type == "tool" and not choice.name:
        raise MissingParameter("`tool_choice.name` is required", param="tool_choice.name")
    return ToolChoice(
        mode=_MODES[choice.type],
        name=choice.name if choice.type == "tool" else None,
        parallel=False if choice.disable_parallel_tool_use else None,
    )


def _reasoning(wire: CountBody) -> Reasoning | None:
    """Thinking and effort in the internal form; a kind of thinking we do not know says nothing to other vendors."""
    effort = _effort(wire)
    thinking = wire.thinking
    if thinking is None:
        return None if effort is None else Reasoning(effort=effort)
    budget = thinking.budget_tokens
    if budget is not None and budget < 1:
        param = "thinking.budget_tokens"
        raise InvalidValue(f"`{param}` must be at least 1024", param=param)
    exclude = thinking.display == "omitted"
    match thinking.type:
        case "disabled":
            return Reasoning(enabled=False)
        case "enabled":
            return Reasoning(enabled=True, max_tokens=budget, effort=effort, exclude=exclude)
        case "adaptive":
            return Reasoning(enabled=True, adaptive=True, effort=effort, exclude=exclude)
        case _:
            return None if effort is None else Reasoning(effort=effort, exclude=exclude)


def _effort(wire: CountBody) -> Effort | None:
    wanted = wire.output_config.effort if wire.output_config else None
    return next((effort for effort in EFFORTS if effort == wanted), None)


def _output(wire: CountBody) -> OutputFormat | None:
    config = wire.output_config
    format_: FormatWire | None = (config.format if config else None) or wire.output_format
    if format_ is None or format_.type != "json_schema":
        return None
    if format_.schema is None:
        param = "output_config.format.schema"
        raise MissingParameter(f"`{param}` is required", param=param)
    schema = modern(format_.schema)
    return OutputFormat(kind="json_schema", name="response", schema=schema)


def _fallback_models(wire: CountBody) -> list[str] | None:
    """`models`, or its alias `fallbacks: [{model}]`."""
    if wire.fallbacks is None:
        return wire.models
    if wire.models is not None:
        raise InvalidRequest("send `models` or `fallbacks`, not both", param="fallbacks")
    if len(wire.fallbacks) > MAX_FALLBACKS:
        raise InvalidValue(f"`fallbacks`: at most {MAX_FALLBACKS}", param="fallbacks")
    models = []
    for index, entry in enumerate(wire.fallbacks):
        path = f"fallbacks[{index}]"
        model = entry.get("model")
        if not isinstance(model, str):
            raise MissingParameter(f"`{path}.model` is required", param=f"{path}.model")
        for name in entry:
            if name != "model":
                raise UnknownParameter(f"`{path}`: only `model` is taken", param=f"{path}.{name}")
        models.append(model)
    return models


def _sender(wire: CountBody, headers: Mapping[str, str]) -> Sender:
    """Who asks, as in every dialect; an agent's own session header and user id stand in where ours are missing."""
    user = wire.metadata.user_id if wire.metadata else None
    sender = sender_of(headers, session_id=wire.session_id, user=wire.user)
    session_id = (
        sender.session_id or clean_text(headers.get("x-claude-code-session-id", "")) or None
    )
    user_id = sender.user_id or (clean_text(user) or None if user else None)
    return msgspec.structs.replace(sender, session_id=session_id, user_id=user_id)


def _vendor_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What belongs to an upstream of this format: the version the client speaks and the betas it wants."""
    found: dict[str, str] = {}
    for name in ("vendor-version", "anthropic-version"):
        text = headers.get(name, "").strip()
        if text:
            _check_date(text, name)
            found["anthropic-version"] = text
    beta = headers.get("anthropic-beta", "")
    if beta := "".join(c for c in beta if " " <= c <= "~").strip(" ,"):
        found["anthropic-beta"] = beta
    return found


def _check_date(text: str, name: str) -> None:
    try:
        good = _DATE.fullmatch(text) is not None
        date.fromisoformat(text)
    except ValueError:
        good = False
    if not good:
        raise InvalidValue(f"the header `{name}` must be a date such as 2023-06-01", param=name)


def _sent(body: Generate) -> frozenset[str]:
    """The words of `supported_parameters` that this body uses.

    A cap is left out: it is sent to every model, under one name or the other.
    """
    sampling, choice, reasoning = body.sampling, body.tool_choice, body.reasoning
    thinks = reasoning is not None and reasoning.enabled is not False
    wants = {
        "temperature": sampling.temperature is not None,
        "top_p": sampling.top_p is not None,
        "top_k": sampling.top_k is not None,
        "stop": bool(sampling.stop),
        "tools": bool(body.tools),
        "tool_choice": choice is not None,
        "parallel_tool_calls": choice is not None and choice.parallel is not None,
        "reasoning": thinks,
        "response_format": body.output is not None,
        "structured_outputs": body.output is not None,
    }
    return frozenset(word for word, used in wants.items() if used)


def _extras(
    raw: dict[str, Any], tools: list[dict[str, Any]] | None, own: Mapping[str, Tool]
) -> Extras | None:
    """Fields for an upstream of this family. The whole tools list is among them if it names a tool the vendor runs."""
    extras = {
        name: value
        for name, value in raw.items()
        if name not in _READ and name not in _ROUTER_FIELDS and value is not None
    }
    if tools and any(map(_is_hosted, tools)):
        extras["tools"] = _listed(tools, own)
    config = extras.get("output_config")
    if config and config.get("format"):
        extras["output_config"] = {**config, "format": _plain_format(config["format"])}
    if "output_format" in extras:
        extras["output_format"] = _plain_format(extras["output_format"])
    return extras or None


def _plain_format(format_: dict[str, Any]) -> dict[str, Any]:
    """The client's own answer format, without the nulls of its schema."""
    schema = format_.get("schema")
    return {**format_, "schema": modern(schema)} if schema else format_
