"""Errors as a messages client reads them."""

from typing import Any, Final

import msgspec

from gwd.core.errors import GatewayError
from gwd.dialects.messages.threads import ThreadRefused

_GENERIC: Final = (
    "something went wrong in the gateway; try again, and quote request {} if it persists"
)
_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error_body(error: GatewayError, request_id: str) -> bytes:
    """The body of an HTTP error."""
    return msgspec.json.encode(envelope(error, request_id))


def envelope(error: GatewayError, request_id: str) -> dict[str, Any]:
    """The error object; `details.error_code` is what this dialect's SDK offers to branch on.

    A 500 says nothing about its cause: that is for the operator's log.
    """
    if error.status == 500:
        inner: dict[str, Any] = {
            "type": "api_error",
            "message": _GENERIC.format(request_id),
            "details": {"error_code": error.code},
        }
        return {"type": "error", "error": inner, "request_id": request_id}
    details: dict[str, Any] = {"error_code": error.code}
    if error.param is not None:
        details["param"] = error.param
    if isinstance(error, ThreadRefused):
        details |= error.details
    inner = {
        "type": _type_of(error.status),
        "message": error.message,
        "details": details,
    }
    if error.metadata:
        inner["metadata"] = error.metadata
    return {"type": "error", "error": inner, "request_id": request_id}


def _type_of(status: int) -> str:
    return _TYPES.get(status) or ("invalid_request_error" if status < 500 else "api_error")
