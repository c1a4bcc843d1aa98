"""What the vendor refuses in the tools, the tool choice and the output format of a message."""

import re

from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list, as_object
from tests.vendor.messages_errors import extra_input, refuse, required
from tests.vendor.schema_shape import misshapen

_TOOL_KEYS = frozenset(
    [
        "type",
        "name",
        "description",
        "input_schema",
        "cache_control",
        "strict",
        "input_examples",
        "allowed_callers",
        "defer_loading",
        "eager_input_streaming",
    ]
)
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_UNSUPPORTED_WORDS = ("minimum", "maximum", "multipleOf", "minLength", "maxLength", "maxItems")


def check_tools(body: Json, traits: ModelTraits) -> None:
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise refuse("tools: Input should be a valid list")
    names = [_checked_tool(tool, index) for index, tool in enumerate(tools or [])]
    if len(set(names)) < len(names):
        raise refuse("tools: Tool names must be unique.")
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not isinstance(choice, dict):
        raise refuse("tool_choice: Input should be an object")
    kind = choice.get("type")
    if kind not in ("auto", "any", "tool", "none"):
        raise refuse(
            f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
            "'auto', 'any', 'tool', 'none'"
        )
    _check_choice_keys(choice, kind)
    if not names:
        raise refuse("tool_choice may only be specified while providing tools.")
    if kind == "tool" and choice.get("name") not in names:
        raise refuse(f"tool_choice.name: Tool '{choice.get('name')}' not found in provided tools")
    if kind in ("any", "tool") and not traits.forced_tools:
        raise refuse(f'tool_choice: type "{kind}" is not supported for this model')


def _check_choice_keys(choice: Json, kind: str) -> None:
    allowed = {"type", "disable_parallel_tool_use"}
    if kind == "none":
        allowed = {"type"}
    elif kind == "tool":
        allowed.add("name")
    for name in choice:
        if name not in allowed:
            raise extra_input(f"tool_choice.{kind}.{name}")


def _checked_tool(tool: object, index: int) -> str:
    path = f"tools.{index}.custom"
    if not isinstance(tool, dict):
        raise refuse(f"tools.{index}: Input should be an object")
    for name in tool:
        if name not in _TOOL_KEYS:
            raise extra_input(f"{path}.{name}")
    if tool.get("type") not in (None, "custom"):
        raise refuse(
            f"tools.{index}: Input tag '{tool['type']}' found using 'type' does not match any of the "
            "expected tags: 'custom'"
        )
    for name in ("name", "input_schema"):
        if name not in tool:
            raise required(f"{path}.{name}")
    name, schema = tool["name"], tool["input_schema"]
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        raise refuse(f"{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    _check_input_schema(schema, f"{path}.input_schema")
    if tool.get("defer_loading") is True and tool.get("cache_control") is not None:
        # As reported on 2026-07-25: github.com/router-for-me/CLIProxyAPI/issues/4561.
        raise refuse(
            f"Tool '{name}' cannot have both defer_loading=true and cache_control set. "
            "Tools with defer_loading cannot use prompt caching."
        )
    return name


def _check_input_schema(schema: object, path: str) -> None:
    if not isinstance(schema, dict):
        raise refuse(f"{path}: Input should be an object")
    if "type" not in schema:
        raise required(f"{path}.type")
    if schema["type"] != "object":
        raise refuse(f"{path}.type: Input should be 'object'")
    if {"anyOf", "oneOf", "allOf"} & schema.keys():
        raise refuse(
            f"{path}: input_schema does not support oneOf, allOf, or anyOf at the top level"
        )
    _check_shape(schema, path)


def _check_shape(schema: Json, path: str) -> None:
    if (wrong := misshapen(schema)) is not None:
        raise refuse(
            f"{path}: JSON schema is invalid. It must match JSON Schema draft 2020-12: {wrong}"
        )


def check_output(body: Json) -> None:
    config = body.get("output_config")
    if config is None:
        return
    if not isinstance(config, dict):
        raise refuse("output_config: Input should be an object")
    for name in config:
        if name not in ("effort", "format"):
            raise extra_input(f"output_config.{name}")
    if config.get("effort") is not None and config["effort"] not in _EFFORTS:
        listed = ", ".join(f"'{one}'" for one in _EFFORTS)
        raise refuse(f"output_config.effort: Input should be {listed}")
    wanted = config.get("format")
    if wanted is None:
        return
    if as_object(wanted).get("type") != "json_schema":
        raise refuse("output_config.format.type: Input should be 'json_schema'")
    if not isinstance(wanted.get("schema"), dict):
        raise required("output_config.format.schema")
    _check_shape(wanted["schema"], "output_config.format.schema")
    _check_output_schema(wanted["schema"])


def _check_output_schema(schema: Json) -> None:
    path = "output_config.format.schema"
    kind = schema.get("type")
    if kind == "object" and schema.get("additionalProperties") is not False:
        raise refuse(
            f"{path}: For 'object' type, 'additionalProperties' must be explicitly set to false"
        )
    for word in _UNSUPPORTED_WORDS:
        if word in schema and kind is not None:
            raise refuse(f"{path}: For '{kind}' type, property '{word}' is not supported")
    inner = [
        *as_object(schema.get("properties")).values(),
        *as_object(schema.get("$defs")).values(),
    ]
    inner += [schema.get("items"), *as_list(schema.get("anyOf"))]
    for part in inner:
        if isinstance(part, dict):
            _check_output_schema(part)
