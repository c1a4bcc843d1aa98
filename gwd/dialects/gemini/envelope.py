"""Errors as a client of Google's format reads them: an HTTP code, a word for it, and details by their types."""

from typing import Any, Final

import msgspec

from gwd.core.errors import GatewayError

_GENERIC: Final = (
    "something went wrong in the gateway; try again, and quote request {} if it persists"
)
_WORDS: Final = {
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}
_TYPES: Final = "type.googleapis.com/google.rpc."


def error_body(error: GatewayError, request_id: str) -> bytes:
    """The body of an HTTP error."""
    return msgspec.json.encode(envelope(error, request_id))


def envelope(error: GatewayError, request_id: str) -> dict[str, Any]:
    """The error object. Its details name our code, the field and the wait, in the types that the SDKs look for.

    A 500 says nothing about its cause: that is for the operator's log.
    """
    is_ours = error.status == 500
    told: dict[str, Any] = {
        "code": error.status,
        "message": _GENERIC.format(request_id) if is_ours else error.message,
        "status": status_word(error.status),
        "details": _details(error),
    }
    if error.metadata and not is_ours:
        told["metadata"] = error.metadata
    return {"error": told}


def status_word(status: int) -> str:
    """Google's word for an HTTP status."""
    return _WORDS.get(status) or ("INVALID_ARGUMENT" if status < 500 else "INTERNAL")


def _details(error: GatewayError) -> list[dict[str, Any]]:
    details: list[dict[str, Any]] = [
        {"@type": f"{_TYPES}ErrorInfo", "reason": error.code, "domain": "gwd"}
    ]
    if error.param is not None:
        violation = {"field": error.param, "description": error.message}
        details.append({"@type": f"{_TYPES}BadRequest", "fieldViolations": [violation]})
    if error.retry_after_s is not None:
        wait = {"@type": f"{_TYPES}RetryInfo", "retryDelay": f"{error.retry_after_s}s"}
        details.append(wait)
    return details
