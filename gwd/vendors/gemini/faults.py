"""Gemini's errors, as HTTP answers and inside answers of status 200, to Faults (api.md 5.1, 6.4)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gwd.core.errors import Fault, FaultReason
from gwd.vendors import faults

_DECODE: Final = msgspec.json.Decoder().decode
_DELAY: Final = re.compile(r"(\d+(?:\.\d+)?)s")
_BAD_KEYS: Final = frozenset(("API_KEY_INVALID", "API_KEY_EXPIRED", "CONSUMER_SUSPENDED"))
_LEAKED_KEY: Final = "reported as leaked"
_WRONG_PLACE: Final = "user location is not supported"


def fault_of(status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """Why an HTTP answer of another status than 200 failed."""
    readable = True
    try:
        value = _DECODE(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value, readable = None, False
    message = f"the vendor answered with status {status} and without an error message"
    return _fault(status, headers, error_in(value), message, readable=readable)


def fault_inside(error: object) -> Fault:
    """The fault of an error object in an answer of status 200; its `code` is the status it stands for."""
    code = error.get("code") if isinstance(error, dict) else None
    status = code if type(code) is int and 400 <= code <= 599 else None
    return _fault(status, {}, error, "the vendor sent an error without a message")


def error_in(value: object) -> object | None:
    """The error object of a decoded answer, which may be wrapped in a list; None if it holds none."""
    if isinstance(value, list):
        return next((found for item in value if (found := error_in(item)) is not None), None)
    return (value.get("error") or None) if isinstance(value, dict) else None


def _fault(
    status: int | None,
    headers: Mapping[str, str],
    error: object,
    without_message: str,
    *,
    readable: bool = True,
) -> Fault:
    fields: dict[str, Any] = error if isinstance(error, dict) else {}
    message = fields.get("message") if fields else error
    word = fields.get("status")
    details = [detail for detail in _list(fields.get("details")) if isinstance(detail, dict)]
    delay_s = _delay_s(details)
    fault = faults.classify(
        status,
        headers,
        code=word if isinstance(word, str) and word else None,
        kind=None,
        message=message if isinstance(message, str) and message else without_message,
        readable=readable,
        retry_after_s=delay_s,
    )
    reason = _reason(fault, details, is_delayed=delay_s is not None)
    return fault if reason == fault.reason else msgspec.structs.replace(fault, reason=reason)


def _reason(fault: Fault, details: list[dict[str, Any]], *, is_delayed: bool) -> FaultReason:
    """What the details tell better than the status and the words do."""
    text = fault.message.lower()
    if any(detail.get("reason") in _BAD_KEYS for detail in details) or _LEAKED_KEY in text:
        return "auth_invalid"
    if _WRONG_PLACE in text:
        return "model_access_denied"
    if fault.status == 429 or fault.code == "RESOURCE_EXHAUSTED":
        # The vendor says "exceeded your current quota … billing" also for the limits of a minute.
        if any("PerDay" in quota for quota in _quotas(details)):
            return "quota_exhausted"
        if is_delayed:
            return "rate_limited"
    return fault.reason


def _delay_s(details: list[dict[str, Any]]) -> float | None:
    """The `retryDelay` of a RetryInfo, such as "37s"."""
    for detail in details:
        found = _DELAY.fullmatch(str(detail.get("retryDelay", "")))
        if found is not None:
            return float(found[1])
    return None


def _quotas(details: list[dict[str, Any]]) -> Iterator[str]:
    """The names of the quotas a QuotaFailure lists."""
    for detail in details:
        for violation in _list(detail.get("violations")):
            if isinstance(violation, dict):
                yield str(violation.get("quotaId", ""))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
