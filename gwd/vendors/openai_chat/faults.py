"""OpenAI-format errors, as HTTP answers and inside answers of status 200, to Faults."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gwd.core.errors import Fault
from gwd.vendors import faults

_DECODE: Final = msgspec.json.Decoder().decode


def fault_of(status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """Why an HTTP answer of another status than 200 failed."""
    readable = True
    try:
        value = _DECODE(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value, readable = None, False
    code, kind, message = _fields(value)
    if not message:
        message = f"the vendor answered with status {status} and without an error message"
    return faults.classify(
        status, headers, code=code, kind=kind, message=message, readable=readable
    )


def fault_inside(error: object) -> Fault:
    """The fault of an error object in an answer of status 200; a numeric code is the status it stands for."""
    code, kind, message = _fields({"error": error})
    status = int(code) if code is not None and code.isdigit() and len(code) == 3 else None
    if status is not None and not 400 <= status <= 599:
        status = None
    return faults.classify(
        status,
        {},
        code=code,
        kind=kind,
        message=message or "the vendor sent an error without a message",
    )


def error_in(value: object) -> object | None:
    """The error object of a decoded answer, in any of the usual places; None if it holds none."""
    if not isinstance(value, dict):
        return None
    if value.get("error"):
        found: object = value["error"]
        return found
    if value.get("object") == "error" or ("choices" not in value and value.get("message")):
        return value
    return None


def _fields(value: object) -> tuple[str | None, str | None, str]:
    """Code, type and message of an error body; some servers wrap it in a list or send bare text."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = value.get("error") or value.get("errors") or value
        if isinstance(value, list) and value:
            value = value[0]
    if isinstance(value, str):
        return None, None, value
    if not isinstance(value, dict):
        return None, None, ""
    return (
        _text(value.get("code")),
        _text(value.get("type") or value.get("status")),
        _message(value),
    )


def _message(error: dict[str, Any]) -> str:
    message = error.get("message") or error.get("detail") or error.get("msg")
    if message is None:
        return ""
    return message if isinstance(message, str) else msgspec.json.encode(message).decode()


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if type(value) is int else None
