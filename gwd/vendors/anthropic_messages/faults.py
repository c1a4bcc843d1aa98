"""Errors inside an answer of status 200: the status that each type stands for; the rest is read as in every format."""

from typing import Final

import msgspec

from gwd.core.errors import Fault
from gwd.vendors.anthropic_messages.wire import ErrorWire
from gwd.vendors.faults import classify

# The status each error type has over HTTP: inside a stream the type is all there is.
_STATUS: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def fault_in_answer(error: ErrorWire | None) -> Fault:
    """The fault of an error inside an answer: judged as the status its type stands for, which never arrived."""
    found = error or ErrorWire()
    status = _STATUS.get(found.type or "")
    fault = classify(status, {}, code=None, kind=found.type, message=found.message or "")
    return msgspec.structs.replace(fault, status=None)


def unfinished() -> Fault:
    """The fault of a stream that ended without any sign of completion."""
    return Fault(
        reason="upstream_error", message="the vendor's stream ended before its answer was complete"
    )
