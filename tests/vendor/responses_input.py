"""What the vendor refuses in the input items of a response: wrong parts, calls and outputs without a pair."""

from gwd.demo.refusals import RefusedError
from gwd.demo.wire import Json
from tests.vendor.chat_messages import check_file, check_url
from tests.vendor.openai_fields import (
    check_length,
    check_name,
    empty_array,
    invalid_type,
    invalid_value,
    known_keys,
    missing,
    need_list,
    need_object,
    need_text,
)
from tests.vendor.signatures import is_encrypted

_MAX_CALL_ID = 64
_KEYS = {
    "message": frozenset({"type", "id", "role", "content", "status", "phase"}),
    "function_call": frozenset(
        {"type", "id", "call_id", "name", "arguments", "status", "namespace"}
    ),
    "function_call_output": frozenset({"type", "id", "call_id", "output", "status"}),
    "custom_tool_call": frozenset(
        {"type", "id", "call_id", "name", "input", "status", "namespace"}
    ),
    "custom_tool_call_output": frozenset({"type", "id", "call_id", "output", "status"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
    "item_reference": frozenset({"type", "id"}),
}
_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "reasoning": "rs",
}
_PART_KEYS = {
    "input_text": frozenset({"type", "text", "prompt_cache_breakpoint"}),
    "input_image": frozenset({"type", "image_url", "detail", "file_id", "prompt_cache_breakpoint"}),
    "input_file": frozenset(
        {
            "type",
            "file_data",
            "file_id",
            "file_url",
            "filename",
            "detail",
            "prompt_cache_breakpoint",
        }
    ),
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
    "refusal": frozenset({"type", "refusal"}),
}
_INPUT_PARTS = ("input_text", "input_image", "input_file")
_OUTPUT_PARTS = ("output_text", "refusal")
_ROLES = ("assistant", "system", "developer", "user")


def check_input(given: object) -> None:
    if isinstance(given, str):
        return
    if not isinstance(given, list):
        raise invalid_type("input", "one of a string or array of objects", given)
    if not given:
        raise empty_array("input")
    called: dict[str, str] = {}
    answered: set[str] = set()
    for index, item in enumerate(given):
        path = f"input[{index}]"
        item = need_object(item, path)
        kind = item.get("type", "message" if "role" in item else None)
        if kind not in _KEYS:
            raise invalid_value(path, kind, tuple(_KEYS))
        known_keys(item, _KEYS[kind], path)
        _check_id(item, kind, path)
        _check_item(item, kind, path)
        if kind in ("function_call", "custom_tool_call"):
            called[item["call_id"]] = kind
        elif kind in ("function_call_output", "custom_tool_call_output"):
            _check_pair(item["call_id"], kind, called)
            answered.add(item["call_id"])
    for call_id, kind in called.items():
        if call_id not in answered:
            word = kind.replace("_", " ")
            raise RefusedError(f"No tool output found for {word} {call_id}.", param="input")


def _check_pair(call_id: str, kind: str, called: dict[str, str]) -> None:
    if called.get(call_id) != kind.removesuffix("_output"):
        word = kind.replace("_", " ")
        raise RefusedError(f"No tool call found for {word} with call_id {call_id}.", param="input")


def _check_id(item: Json, kind: str, path: str) -> None:
    given, prefix = item.get("id"), _PREFIXES.get(kind)
    if given is None or prefix is None:
        return
    check_length(need_text(given, f"{path}.id"), _MAX_CALL_ID, f"{path}.id")
    if not given.startswith(prefix):
        raise RefusedError(
            f"Invalid '{path}.id': '{given}'. Expected an ID that begins with '{prefix}'.",
            code="invalid_value",
            param=f"{path}.id",
        )


def _check_item(item: Json, kind: str, path: str) -> None:
    match kind:
        case "message":
            _check_message(item, path)
        case "function_call" | "custom_tool_call":
            said = "arguments" if kind == "function_call" else "input"
            for name in ("call_id", "name", said):
                if name not in item:
                    raise missing(f"{path}.{name}")
                need_text(item[name], f"{path}.{name}")
            check_length(item["call_id"], _MAX_CALL_ID, f"{path}.call_id")
            check_name(item["name"], f"{path}.name")
        case "function_call_output" | "custom_tool_call_output":
            for name in ("call_id", "output"):
                if name not in item:
                    raise missing(f"{path}.{name}")
            if not isinstance(item["output"], str):
                _check_parts(item["output"], _INPUT_PARTS, f"{path}.output")
        case "reasoning":
            _check_reasoning(item, path)
        case _:
            raise _not_found(item.get("id"))


def _check_message(item: Json, path: str) -> None:
    role = item.get("role")
    if "role" not in item:
        raise missing(f"{path}.role")
    if role not in _ROLES:
        raise invalid_value(f"{path}.role", role, _ROLES)
    if "content" not in item:
        raise missing(f"{path}.content")
    if isinstance(item["content"], str):
        return
    allowed = _OUTPUT_PARTS if role == "assistant" else _INPUT_PARTS
    _check_parts(item["content"], allowed, f"{path}.content")


def _check_parts(parts: object, allowed: tuple[str, ...], path: str) -> None:
    for index, part in enumerate(need_list(parts, path)):
        here = f"{path}[{index}]"
        part = need_object(part, here)
        kind = part.get("type")
        if kind is None:
            raise missing(f"{here}.type")
        if kind not in allowed:
            raise invalid_value(here, kind, allowed)
        known_keys(part, _PART_KEYS[kind], here)
        match kind:
            case "input_text" | "output_text":
                need_text(part.get("text"), f"{here}.text")
            case "refusal":
                need_text(part.get("refusal"), f"{here}.refusal")
            case "input_image":
                if part.get("image_url") is None and part.get("file_id") is None:
                    raise missing(f"{here}.image_url")
                if part.get("image_url") is not None:
                    check_url(
                        need_text(part["image_url"], f"{here}.image_url"), f"{here}.image_url"
                    )
            case _:
                if part.get("file_data") is not None:
                    check_file(part["file_data"], f"{here}.file_data")
                elif part.get("file_url") is None and part.get("file_id") is None:
                    raise missing(f"{here}.file_id")


def _check_reasoning(item: Json, path: str) -> None:
    if "summary" not in item:
        raise missing(f"{path}.summary")
    need_list(item["summary"], f"{path}.summary")
    encrypted = item.get("encrypted_content")
    if encrypted is None:
        raise _not_found(item.get("id"))
    if not is_encrypted(encrypted):
        raise RefusedError(
            f"The encrypted content {str(encrypted)[:4]}... could not be verified. Reason: Encrypted "
            "content could not be decrypted or parsed.",
            code="invalid_encrypted_content",
        )


def _not_found(item_id: object) -> RefusedError:
    return RefusedError(
        f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to false. Try "
        "again with `store` set to true, or remove this item from your input.",
        status=404,
        param="input",
    )
