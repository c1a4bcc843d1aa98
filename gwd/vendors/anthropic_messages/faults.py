"""The vendor's error envelope to a Fault, from an error status or inside an answer of status 200."""

from collections.abc import Mapping
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


class _Envelope(msgspec.Struct, frozen=True):
    error: ErrorWire | str | None = None
    message: str | None = None


_envelope: Final = msgspec.json.Decoder(_Envelope).decode


def fault(status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """Why an answer of another status than 200 failed; a body in another shape speaks for itself."""
    readable = True
    try:
        envelope = _envelope(body)
    except msgspec.ValidationError:
        envelope = _Envelope(message=body[:2000].decode("utf-8", "replace"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        readable = False
        is_page = body.lstrip()[:1] == b"<"
        envelope = _Envelope(message=None if is_page else body[:2000].decode("utf-8", "replace"))
    error = envelope.error
    if isinstance(error, str):
        error = ErrorWire(message=error)
    kind = error.type if error else None
    message = (error.message if error else None) or envelope.message
    message = message or f"the vendor answered with status {status} and without an error message"
    return classify(status, headers, code=None, kind=kind, message=message, readable=readable)


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
