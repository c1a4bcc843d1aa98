"""What the vendor refuses at responses: unknown fields, tools without `strict`, items that do not fit together.

Vendor facts (OpenAI API reference, SDK 3.57 models and error texts, read 2026-11): identifiers of replayed items carry
the prefix of their kind; nothing is stored, so an item given by reference, or reasoning without its encrypted content,
is not found; the smallest cap is 16 tokens.
"""

from gwd.demo.refusals import RefusedError
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list
from tests.vendor.chat_checks import check_named_schema
from tests.vendor.openai_fields import (
    check_at_least,
    check_boolean,
    check_function,
    check_name,
    check_number,
    empty_array,
    invalid_type,
    invalid_value,
    known_keys,
    missing,
    need_list,
    need_object,
    need_text,
    unknown_parameter,
    unsupported,
)
from tests.vendor.responses_input import check_input

_FIELDS = frozenset(
    [
        "background",
        "context_management",
        "conversation",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]
)
_MOVED = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
}
_INCLUDES = (
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
)
HOSTED_TOOLS = frozenset(
    [
        "web_search",
        "web_search_preview",
        "file_search",
        "code_interpreter",
        "image_generation",
        "mcp",
        "computer_use_preview",
        "local_shell",
        "shell",
        "apply_patch",
    ]
)
_TOOL_TYPES = ("function", "custom", *sorted(HOSTED_TOOLS))
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_SUMMARIES = ("auto", "concise", "detailed")
_MIN_OUTPUT = 16


def check_responses(body: Json, traits: ModelTraits) -> None:
    _check_fields(body)
    if traits.kind != "chat":
        raise RefusedError(
            f"The model '{traits.name}' is not supported in the Responses API.", param="model"
        )
    _check_numbers(body, traits)
    _check_reasoning(body, traits)
    _check_tools(body)
    _check_text(body)
    _check_state(body)
    if body.get("input") is None and body.get("prompt") is None:
        raise missing("input")
    check_input(body["input"])


def _check_fields(body: Json) -> None:
    for name in body:
        if name in _MOVED:
            raise RefusedError(
                f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to "
                f"'{_MOVED[name]}'. Try again with the new parameter.",
                code="unsupported_parameter",
                param=name,
            )
        if name not in _FIELDS:
            raise unknown_parameter(name)
    for name in ("stream", "store", "parallel_tool_calls", "background"):
        check_boolean(body, name)
    for index, one in enumerate(as_list(body.get("include"))):
        if one not in _INCLUDES:
            raise invalid_value(f"include[{index}]", one, _INCLUDES)
    if body.get("stream_options") is not None:
        if body.get("stream") is not True:
            raise RefusedError(
                "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
                param="stream_options",
            )
        known_keys(body["stream_options"], frozenset({"include_obfuscation"}), "stream_options")
    for name in ("instructions", "user", "prompt_cache_key", "safety_identifier"):
        if body.get(name) is not None:
            need_text(body[name], name)


def _check_numbers(body: Json, traits: ModelTraits) -> None:
    check_number(body, "temperature", 0, 2)
    check_number(body, "top_p", 0, 1)
    check_at_least(body, "max_output_tokens", _MIN_OUTPUT)
    limit = body.get("max_output_tokens")
    if limit is not None and limit > traits.max_output:
        raise RefusedError(
            f"Invalid 'max_output_tokens': integer above maximum value. Expected a value <= "
            f"{traits.max_output}, but got {limit} instead.",
            code="integer_above_max_value",
            param="max_output_tokens",
        )


def _check_reasoning(body: Json, traits: ModelTraits) -> None:
    reasoning = body.get("reasoning")
    if reasoning is not None:
        reasoning = need_object(reasoning, "reasoning")
        known_keys(
            reasoning, frozenset({"effort", "summary", "generate_summary", "context"}), "reasoning"
        )
        for name, supported in (("effort", _EFFORTS), ("summary", _SUMMARIES)):
            value = reasoning.get(name)
            if value is None:
                continue
            if value not in supported:
                raise invalid_value(f"reasoning.{name}", value, supported)
            if not traits.reasoning:
                raise unsupported(f"reasoning.{name}")
    if traits.reasoning:
        for name in ("temperature", "top_p"):
            if body.get(name) not in (None, 1):
                raise unsupported(name)


def _check_tools(body: Json) -> None:
    tools = need_list(body["tools"], "tools") if body.get("tools") is not None else []
    names = []
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        tool = need_object(tool, path)
        kind = tool.get("type")
        if kind is None:
            raise missing(f"{path}.type")
        if kind not in _TOOL_TYPES:
            raise invalid_value(f"{path}.type", kind, _TOOL_TYPES)
        if kind == "function":
            _check_function_tool(tool, path)
        elif kind == "custom":
            known_keys(tool, frozenset({"type", "name", "description", "format"}), path)
            check_name(need_text(tool.get("name"), f"{path}.name"), f"{path}.name")
        names.append(tool.get("name"))
    choice = body.get("tool_choice")
    if choice is not None:
        _check_choice(choice, tools, names)


def _check_function_tool(tool: Json, path: str) -> None:
    if "function" in tool:
        # The nested form of chat completions.
        raise missing(f"{path}.name")
    known_keys(tool, frozenset({"type", "name", "description", "parameters", "strict"}), path)
    for name in ("name", "parameters", "strict"):
        if name not in tool:
            raise missing(f"{path}.{name}")
    if tool["strict"] is not None and not isinstance(tool["strict"], bool):
        raise invalid_type(f"{path}.strict", "a boolean", tool["strict"])
    check_function(tool, path)


def _check_choice(choice: object, tools: list[Json], names: list[object]) -> None:
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            raise invalid_value("tool_choice", choice, ("none", "auto", "required"))
        if choice == "required" and not tools:
            raise RefusedError(
                "Tool choice 'required' must be specified with 'tools' parameter.",
                param="tool_choice",
            )
        return
    choice = need_object(choice, "tool_choice")
    match choice.get("type"):
        case "function" | "custom" as kind:
            if "name" not in choice:
                raise missing("tool_choice.name")
            if choice["name"] not in names:
                raise RefusedError(
                    f"Tool choice '{kind}' not found in 'tools' parameter.", param="tool_choice"
                )
        case "allowed_tools":
            if choice.get("mode") not in ("auto", "required"):
                raise invalid_value("tool_choice.mode", choice.get("mode"), ("auto", "required"))
        case hosted if hosted in HOSTED_TOOLS:
            return
        case other:
            raise invalid_value("tool_choice.type", other, ("function", "custom", "allowed_tools"))


def _check_text(body: Json) -> None:
    text = body.get("text")
    if text is None:
        return
    text = need_object(text, "text")
    known_keys(text, frozenset({"format", "verbosity"}), "text")
    if text.get("verbosity") not in (None, "low", "medium", "high"):
        raise invalid_value("text.verbosity", text["verbosity"], ("low", "medium", "high"))
    wanted = text.get("format")
    if wanted is None:
        return
    wanted = need_object(wanted, "text.format")
    kinds = ("json_object", "json_schema", "text")
    if wanted.get("type") not in kinds:
        raise invalid_value("text.format.type", wanted.get("type"), kinds)
    if wanted["type"] == "json_schema":
        known_keys(
            wanted, frozenset({"type", "name", "description", "schema", "strict"}), "text.format"
        )
        check_named_schema(wanted, "text.format")


def _check_state(body: Json) -> None:
    """Nothing is kept from earlier calls."""
    earlier = body.get("previous_response_id")
    if earlier is not None:
        raise RefusedError(
            f"Previous response with id '{earlier}' not found.",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    if body.get("conversation") is not None:
        raise RefusedError("Conversation not found.", status=404, param="conversation")
    if "tools" in body and body["tools"] == [] and body.get("tool_choice") == "required":
        raise empty_array("tools")
