"""Errors of responses servers, as HTTP answers and inside answers of status 200, to Faults."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gwd.core.errors import Fault
from gwd.vendors import faults

# Codes of a failed response that blame the request; anything else is the vendor's own trouble.
_CALLERS_FAULT: Final = (
    "invalid_",
    "image_",
    "empty_image",
    "unsupported_",
    "failed_to_download_image",
    "context_length_exceeded",
)


def fault_of(status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """Why an HTTP answer of another status than 200 failed."""
    readable = True
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value, readable = None, False
    code, kind, message = _fields(value)
    if not message:
        message = f"the vendor answered with status {status} and without an error message"
    return faults.classify(
        status, headers, code=code, kind=kind, message=message, readable=readable
    )


def fault_inside(error: object) -> Fault:
    """The fault of a failed response, an error event or an error object in an answer of status 200."""
    code, kind, message = _fields(error)
    status = int(code) if code is not None and code.isdigit() and 400 <= int(code) <= 599 else None
    if status is None and code is not None and code.startswith(_CALLERS_FAULT):
        kind = "invalid_request_error"
    return faults.classify(
        status,
        {},
        code=code,
        kind=kind,
        message=message or "the vendor ended its answer with an error and said nothing about it",
    )


def _fields(value: object) -> tuple[str | None, str | None, str]:
    """Code, type and message; an error may be bare, nested under `error`, in a list, or just text."""
    for _ in range(3):
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict) and value.get("error"):
            value = value["error"]
    if isinstance(value, str):
        return None, None, value
    if not isinstance(value, dict):
        return None, None, ""
    kind = _text(value.get("type"))
    return _text(value.get("code")), None if kind == "error" else kind, _message(value)


def _message(error: dict[str, Any]) -> str:
    message = error.get("message") or error.get("detail") or error.get("msg")
    if message is None:
        return ""
    return message if isinstance(message, str) else msgspec.json.encode(message).decode()


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if type(value) is int else None
