"""What the vendor refuses in the messages of a chat completion: parts, tool calls and their results."""

from gwd.demo.refusals import RefusedError
from gwd.demo.wire import Json
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

ROLES = ("system", "assistant", "user", "tool", "developer")
_MAX_CALL_ID = 40
_COMMON = frozenset({"role", "content", "name"})
_ASSISTANT = _COMMON | {"tool_calls", "refusal", "audio", "annotations", "function_call"}
_SHOWN_REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
_PART_KEYS = {
    "text": frozenset({"type", "text", "prompt_cache_breakpoint"}),
    "image_url": frozenset({"type", "image_url", "prompt_cache_breakpoint"}),
    "file": frozenset({"type", "file", "prompt_cache_breakpoint"}),
    "input_audio": frozenset({"type", "input_audio"}),
    "refusal": frozenset({"type", "refusal"}),
}
_PARTS_OF = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "system": ("text",),
    "developer": ("text",),
    "tool": ("text",),
}


def check_messages(body: Json, *, open_server: bool = False) -> None:
    if "messages" not in body:
        raise missing("messages")
    messages = need_list(body["messages"], "messages")
    if not messages:
        raise empty_array("messages")
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        message = need_object(message, path)
        role = message.get("role")
        if "role" not in message:
            raise missing(f"{path}.role")
        if role not in ROLES:
            raise invalid_value(f"{path}.role", role, ROLES)
        if role == "tool":
            _check_result(message, index, open_calls)
        elif open_calls:
            raise _unanswered(open_calls, index)
        else:
            _check_message(message, path, open_server=open_server)
            open_calls = [call["id"] for call in message.get("tool_calls") or []]
    if open_calls:
        raise _unanswered(open_calls, len(messages))


def _check_message(message: Json, path: str, *, open_server: bool) -> None:
    role = message["role"]
    allowed = _ASSISTANT if role == "assistant" else _COMMON
    known_keys(message, allowed | _SHOWN_REASONING if open_server else allowed, path)
    if "tool_calls" in message:
        _check_calls(message["tool_calls"], f"{path}.tool_calls")
    content = message.get("content")
    if content is None:
        if role == "assistant" and (message.get("tool_calls") or message.get("refusal")):
            return
        if "content" not in message and role != "assistant":
            raise missing(f"{path}.content")
        raise RefusedError(
            "Invalid value for 'content': expected a string, got null.", param=f"{path}.content"
        )
    _check_content(content, role, f"{path}.content")


def _check_content(content: object, role: str, path: str) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise invalid_type(path, "one of a string or array of objects", content)
    if not content:
        raise empty_array(path)
    for index, part in enumerate(content):
        here = f"{path}[{index}]"
        part = need_object(part, here)
        kind = part.get("type")
        if kind is None:
            raise missing(f"{here}.type")
        if kind not in _PARTS_OF[role]:
            raise invalid_value(f"{here}.type", kind, _PARTS_OF[role])
        known_keys(part, _PART_KEYS[kind], here)
        if kind not in part:
            raise missing(f"{here}.{kind}")
        _check_part(part, kind, here)


def _check_part(part: Json, kind: str, here: str) -> None:
    match kind:
        case "text" | "refusal":
            need_text(part[kind], f"{here}.{kind}")
        case "image_url":
            image = need_object(part["image_url"], f"{here}.image_url")
            known_keys(image, frozenset({"url", "detail"}), f"{here}.image_url")
            check_url(need_text(image.get("url"), f"{here}.image_url.url"), f"{here}.image_url")
        case "file":
            file = need_object(part["file"], f"{here}.file")
            known_keys(file, frozenset({"file_data", "file_id", "filename"}), f"{here}.file")
            if file.get("file_data") is None and file.get("file_id") is None:
                raise missing(f"{here}.file.file_id")
            if "file_data" in file:
                check_file(file["file_data"], f"{here}.file.file_data")
        case _:
            need_object(part[kind], f"{here}.{kind}")


def check_url(url: str, param: str) -> None:
    if not url.startswith(("https://", "http://", "data:image/")):
        raise RefusedError(
            f"Invalid '{param}.url'. Expected a valid URL, but got a value with an invalid format.",
            code="invalid_value",
            param=f"{param}.url",
        )
    if url.startswith("data:") and ";base64," not in url:
        raise RefusedError(
            "You uploaded an unsupported image. Please make sure your image is valid.",
            code="invalid_base64_image",
            param=param,
        )


def check_file(data: object, param: str) -> None:
    text = need_text(data, param)
    if not (text.startswith("data:") and ";base64," in text):
        raise RefusedError(
            f"Invalid file data: '{param}'. Expected a base64-encoded data URL with an application/pdf "
            "MIME type (e.g. 'data:application/pdf;base64,aGVsbG8gd29ybGQK').",
            code="invalid_value",
            param=param,
        )


def _check_calls(calls: object, path: str) -> None:
    calls = need_list(calls, path)
    if not calls:
        raise empty_array(path)
    for index, call in enumerate(calls):
        here = f"{path}[{index}]"
        call = need_object(call, here)
        known_keys(call, frozenset({"id", "type", "function"}), here)
        for name in ("id", "type", "function"):
            if name not in call:
                raise missing(f"{here}.{name}")
        check_length(need_text(call["id"], f"{here}.id"), _MAX_CALL_ID, f"{here}.id")
        if call["type"] != "function":
            raise invalid_value(f"{here}.type", call["type"], ("function",))
        function = need_object(call["function"], f"{here}.function")
        known_keys(function, frozenset({"name", "arguments"}), f"{here}.function")
        check_name(
            need_text(function.get("name"), f"{here}.function.name"), f"{here}.function.name"
        )
        need_text(function.get("arguments"), f"{here}.function.arguments")


def _check_result(message: Json, index: int, open_calls: list[str]) -> None:
    """One result takes its call from the open ones."""
    path = f"messages[{index}]"
    known_keys(message, frozenset({"role", "content", "tool_call_id"}), path)
    call_id = message.get("tool_call_id")
    if call_id is None:
        raise missing(f"{path}.tool_call_id")
    if call_id not in open_calls:
        raise RefusedError(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
            "with 'tool_calls'.",
            param=f"messages.[{index}].role",
        )
    open_calls.remove(call_id)
    if message.get("content") is None:
        raise missing(f"{path}.content")
    _check_content(message["content"], "tool", f"{path}.content")


def _unanswered(open_calls: list[str], index: int) -> RefusedError:
    return RefusedError(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: "
        f"{', '.join(open_calls)}",
        param=f"messages.[{index}].role",
    )
