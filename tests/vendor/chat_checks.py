"""What the vendor refuses at chat completions: unknown fields, values out of range, models that do not take them."""

from gwd.demo.refusals import RefusedError
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list, as_object, compact
from tests.vendor.chat_messages import check_messages
from tests.vendor.openai_fields import (
    check_at_least,
    check_boolean,
    check_function,
    check_name,
    check_number,
    check_schema,
    empty_array,
    invalid_type,
    invalid_value,
    known_keys,
    missing,
    need_list,
    need_object,
    need_text,
    unsupported,
)

FIELDS = frozenset(
    [
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "moderation",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    ]
)
_OPEN_SERVER_FIELDS = frozenset(
    {"top_k", "min_p", "repetition_penalty", "chat_template_kwargs", "reasoning"}
)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_MAX_TOOLS = 128
_MAX_STOPS = 4
_NOT_FOR_REASONING = (
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "stop",
)


def check_chat(body: Json, traits: ModelTraits) -> None:
    _check_fields(body, traits)
    check_messages(body, open_server=traits.open_server)
    _check_numbers(body)
    _check_caps(body, traits)
    _check_for_reasoning(body, traits)
    check_tools(body)
    _check_stop(body)
    _check_stream(body)
    _check_format(body)


def _check_fields(body: Json, traits: ModelTraits) -> None:
    known = FIELDS if traits.reasoning else FIELDS - {"reasoning_effort"}
    if traits.open_server:
        known = FIELDS | _OPEN_SERVER_FIELDS
    unknown = [name for name in body if name not in known]
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        raise RefusedError(f"Unrecognized request argument{plural} supplied: {', '.join(unknown)}")
    if traits.kind != "chat":
        raise RefusedError(
            "This is not a chat model and thus not supported in the v1/chat/completions endpoint.",
            status=404,
            param="model",
        )


def _check_numbers(body: Json) -> None:
    check_number(body, "temperature", 0, 2)
    check_number(body, "top_p", 0, 1)
    check_number(body, "frequency_penalty", -2, 2)
    check_number(body, "presence_penalty", -2, 2)
    check_at_least(body, "n", 1)
    for name in ("stream", "store", "logprobs", "parallel_tool_calls"):
        check_boolean(body, name)
    if (body.get("n") or 1) > 1:
        raise RefusedError(
            "Invalid 'n': integer above maximum value. Expected a value <= 1, but got "
            f"{body['n']} instead.",
            code="integer_above_max_value",
            param="n",
        )
    if body.get("top_logprobs") is not None and body.get("logprobs") is not True:
        raise RefusedError(
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
            param="top_logprobs",
        )
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in EFFORTS:
        raise invalid_value("reasoning_effort", effort, EFFORTS)


def _check_caps(body: Json, traits: ModelTraits) -> None:
    caps = [name for name in ("max_tokens", "max_completion_tokens") if body.get(name) is not None]
    if len(caps) > 1:
        raise RefusedError(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            code="invalid_parameter_combination",
            param="max_tokens",
        )
    for name in caps:
        check_at_least(body, name, 1)
        if body[name] > traits.max_output:
            raise RefusedError(
                f"{name} is too large: {body[name]}. This model supports at most {traits.max_output} "
                f"completion tokens, whereas you provided {body[name]}.",
                code="invalid_value",
                param=name,
            )


def _check_for_reasoning(body: Json, traits: ModelTraits) -> None:
    if not traits.reasoning:
        return
    if body.get("max_tokens") is not None:
        raise unsupported("max_tokens", " Use 'max_completion_tokens' instead.")
    for name in _NOT_FOR_REASONING:
        if body.get(name) is not None:
            raise unsupported(name)
    for name in ("temperature", "top_p"):
        if body.get(name) not in (None, 1):
            raise RefusedError(
                f"Unsupported value: '{name}' does not support {body[name]} with this model. Only the "
                "default (1) value is supported.",
                code="unsupported_value",
                param=name,
            )


def check_tools(body: Json) -> None:
    tools = body.get("tools")
    if "tools" in body:
        tools = need_list(tools, "tools")
        if not tools:
            raise empty_array("tools")
        if len(tools) > _MAX_TOOLS:
            raise RefusedError(
                f"Invalid 'tools': array too long. Expected an array with maximum length {_MAX_TOOLS}, "
                f"but got an array with length {len(tools)} instead.",
                code="array_above_max_length",
                param="tools",
            )
        for index, tool in enumerate(tools):
            _check_tool(tool, f"tools[{index}]")
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and not tools:
            raise RefusedError(
                f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.",
                param=name,
            )
    if body.get("tool_choice") is not None:
        _check_tool_choice(body["tool_choice"], _names(body))


def _check_tool(tool: object, path: str) -> None:
    tool = need_object(tool, path)
    if tool.get("type") != "function":
        if "type" not in tool:
            raise missing(f"{path}.type")
        raise invalid_value(f"{path}.type", tool["type"], ("function",))
    known_keys(tool, frozenset({"type", "function"}), path)
    if "function" not in tool:
        raise missing(f"{path}.function")
    function = need_object(tool["function"], f"{path}.function")
    known_keys(
        function, frozenset({"name", "description", "parameters", "strict"}), f"{path}.function"
    )
    check_function(function, f"{path}.function")


def _check_tool_choice(choice: object, names: list[str]) -> None:
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            raise invalid_value("tool_choice", choice, ("none", "auto", "required"))
        return
    choice = need_object(choice, "tool_choice")
    match choice.get("type"):
        case "function":
            name = as_object(choice.get("function")).get("name")
            if name is None:
                raise missing("tool_choice.function")
            if name not in names:
                raise RefusedError(
                    f"Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice"
                )
        case "allowed_tools":
            allowed = as_object(choice.get("allowed_tools"))
            if allowed.get("mode") not in ("auto", "required"):
                raise invalid_value(
                    "tool_choice.allowed_tools.mode", allowed.get("mode"), ("auto", "required")
                )
        case other:
            raise invalid_value("tool_choice.type", other, ("function", "allowed_tools"))


def _names(body: Json) -> list[str]:
    return [as_object(tool.get("function")).get("name", "") for tool in as_list(body.get("tools"))]


def _check_stop(body: Json) -> None:
    stop = body.get("stop")
    if stop is None or isinstance(stop, str):
        return
    stops = need_list(stop, "stop")
    if len(stops) > _MAX_STOPS:
        raise RefusedError(
            f"Invalid 'stop': array too long. Expected an array with maximum length {_MAX_STOPS}, but got "
            f"an array with length {len(stops)} instead.",
            code="array_above_max_length",
            param="stop",
        )
    for index, one in enumerate(stops):
        need_text(one, f"stop[{index}]")


def _check_stream(body: Json) -> None:
    options = body.get("stream_options")
    if options is None:
        return
    if body.get("stream") is not True:
        raise RefusedError(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )
    options = need_object(options, "stream_options")
    known_keys(options, frozenset({"include_usage", "include_obfuscation"}), "stream_options")


def _check_format(body: Json) -> None:
    wanted = body.get("response_format")
    if wanted is None:
        return
    wanted = need_object(wanted, "response_format")
    match wanted.get("type"):
        case "text":
            return
        case "json_object":
            if "json" not in compact(body["messages"]).lower():
                raise RefusedError(
                    "'messages' must contain the word 'json' in some form, to use 'response_format' of "
                    "type 'json_object'.",
                    param="messages",
                )
        case "json_schema":
            inner = need_object(wanted.get("json_schema"), "response_format.json_schema")
            known_keys(
                inner,
                frozenset({"name", "description", "schema", "strict"}),
                "response_format.json_schema",
            )
            check_named_schema(inner, "response_format.json_schema")
        case other:
            raise invalid_value(
                "response_format.type", other, ("json_object", "json_schema", "text")
            )


def check_named_schema(inner: Json, path: str) -> None:
    """Name and schema of a structured output."""
    if "name" not in inner:
        raise missing(f"{path}.name")
    check_name(need_text(inner["name"], f"{path}.name"), f"{path}.name")
    if "schema" not in inner:
        raise missing(f"{path}.schema")
    schema = inner["schema"]
    if not isinstance(schema, dict):
        raise invalid_type(f"{path}.schema", "an object", schema)
    check_schema(
        schema,
        strict=inner.get("strict") is True,
        whose=f"response_format '{inner['name']}'",
        code="invalid_json_schema",
        param=path.split(".")[0],
    )
