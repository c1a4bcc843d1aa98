"""OpenAI-format errors, as HTTP answers and inside answers of status 200, to Faults."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gwd.core.errors import Fault
from gwd.vendors import faults

_DECODE: Final = msgspec.json.Decoder().decode
# What the codes of a `base_resp` (MiniMax) stand for.
_BASE_STATUS: Final = {
    1001: 504,
    1002: 429,
    1004: 401,
    1008: 402,
    1026: 400,
    1039: 429,
    1041: 429,
    2013: 400,
    2049: 401,
    2056: 402,
}


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
    named = _text(error.get("http_code")) if isinstance(error, dict) else None
    return faults.classify(
        _as_status(named) or _as_status(code),
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
    if (base := _base_error(value)) is not None:
        return base
    if value.get("object") == "error" or ("choices" not in value and value.get("message")):
        return value
    return None


def _fields(value: object) -> tuple[str | None, str | None, str]:
    """Code, type and message of an error body; some servers wrap it in a list or send bare text."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = value.get("error") or value.get("errors") or _base_error(value) or value
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


def _as_status(code: str | None) -> int | None:
    if code is None or not code.isdigit() or len(code) != 3:
        return None
    return int(code) if 400 <= int(code) <= 599 else None


def _base_error(value: dict[str, Any]) -> dict[str, Any] | None:
    """A `base_resp` that tells of a failure, which comes with status 200, as an error object."""
    base = value.get("base_resp")
    if not isinstance(base, dict):
        return None
    code = base.get("status_code")
    if type(code) is not int or code == 0:
        return None
    return {"code": code, "http_code": _BASE_STATUS.get(code), "message": base.get("status_msg")}


def _message(error: dict[str, Any]) -> str:
    message = error.get("message") or error.get("detail") or error.get("msg")
    if message is None:
        return ""
    return message if isinstance(message, str) else msgspec.json.encode(message).decode()


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if type(value) is int else None
